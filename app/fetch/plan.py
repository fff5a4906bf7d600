"""What is to be fetched, said before a byte of it comes: files, size, licence, where to, and whether the disk has room."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.fetch.download import AT_ONCE, Timeouts, client, hub_headers, refused, unreachable
from app.fetch.remote_file import FetchError, RemoteFile
from app.system.paths import free_space
from app.text.escape import clean, size

SAMPLE = 24
"""So many files of unknown size are asked for it; the others are taken to be as large as these on average."""

SPARE = 256 * 2**20
"""Bytes that are to stay free on the disk."""

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What is to be fetched to ``folder``: ``missing`` of ``files``, some ``bytes``; exactly that many unless ``estimated``."""

    name: str
    folder: Path
    files: int
    missing: tuple[RemoteFile, ...]
    bytes: int
    estimated: bool
    free: int
    licences: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The plan in words."""
        here = self.files - len(self.missing)
        about = "about " if self.estimated else ""
        fetched = f"{len(self.missing):,} files, {about}{size(self.bytes)}" if self.missing else "nothing"
        yield f"{self.name}: to fetch {fetched}" + (f"; {here:,} files are here" if here else "")
        for licence in self.licences:
            yield f"  licence   {clean(licence)}"
        yield f"  to        {clean(str(self.folder))}"
        yield f"  disk      {size(self.free)} free"
        for note in self.notes:
            yield f"  note      {clean(note)}"

    def check_room(self) -> None:
        """Raises FetchError where the disk is too small."""
        short = self.bytes + SPARE - self.free
        if self.missing and short > 0:
            raise FetchError(
                f"the disk of {self.folder} has {size(self.free)} free and {self.name} needs {size(self.bytes)}: free "
                f"{size(short)} more, or name a folder on another disk."
            )


def make_plan(
    name: str,
    folder: Path,
    files: Sequence[RemoteFile],
    licences: Sequence[str],
    notes: Sequence[str] = (),
    patience: Timeouts | None = None,
) -> FetchPlan:
    """The plan for ``files``. Sizes that are not known are asked for. Raises FetchError where access is refused."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        here = list(pool.map(RemoteFile.is_here, files))
    missing = tuple(file for file, whole in zip(files, here, strict=True) if not whole)
    known = sum(file.size - file.begun() for file in missing if file.size is not None)
    unknown = [file for file in missing if file.size is None]
    asked = unknown[:: max(1, len(unknown) // SAMPLE)][:SAMPLE]
    doors = {
        file.owner: file for file in reversed(missing) if file.hub
    }  # one of each repository: whether it lets us in
    told = [count for count in _sizes([*asked, *doors.values()], patience or Timeouts())[: len(asked)] if count]
    average = sum(told) / len(told) if told else 0
    return FetchPlan(
        name,
        folder,
        len(files),
        missing,
        known + round(average * len(unknown)),
        len(asked) < len(unknown),
        free_space(folder),
        tuple(licences),
        tuple(notes),
    )


def read_small(file: RemoteFile) -> bytes:
    """The bytes of a small file that says what else is needed, from its place or from the server; nothing is written.

    Raises FetchError where it cannot be had, or is not what was published.
    """
    import tempfile

    from app.fetch.download import download

    if file.is_here():
        return file.path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        there = RemoteFile(file.url, Path(folder) / file.path.name, file.owner, file.size, file.digest)
        lost = download([there])
        if lost:
            raise FetchError(f"{file.path.name} of {file.owner} cannot be had: {lost[there]}; try again later.")
        return there.path.read_bytes()


def _sizes(files: Sequence[RemoteFile], patience: Timeouts) -> list[int]:
    """What the server says of their sizes, 0 where it says none. Raises FetchError where it refuses or is not there."""
    if not files:
        return []
    with client(patience.silence) as session, ThreadPoolExecutor(AT_ONCE) as pool:
        token = hub_headers() if any(file.hub for file in files) else {}
        return list(pool.map(lambda file: _size(session, file, token if file.hub else {}, patience), files))


def _size(session: Any, file: RemoteFile, headers: dict[str, str], patience: Timeouts) -> int:
    import httpx2

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            response = session.head(file.url, headers={"Accept-Encoding": "identity", **headers})
            break
        except httpx2.TransportError as error:
            if attempt == _ATTEMPTS:
                raise unreachable(file, f"the connection failed ({error.__class__.__name__})", attempt) from error
            time.sleep(patience.wait)
    if response.status_code in (401, 403):
        raise refused(file.owner, response.status_code, response.headers.get("X-Error-Code", ""), file.page)
    length = response.headers.get("Content-Length", "")
    return int(length) if response.status_code == 200 and length.isdigit() else 0
