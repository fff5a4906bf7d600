"""Fetch plans: files, size, licences, target folder and free disk space, known before the download starts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.system.project_paths import disk_of, free_space
from app.text.plural import count_of
from app.text.text_escaping import clean, size
from benchmarks.fetch.file_download import MAX_PARALLEL, Timeouts, connection_failed, length_of, refused
from benchmarks.fetch.hub_repository import hub_token
from benchmarks.fetch.remote_file import FetchError, RemoteFile, distinct_files

SIZE_SAMPLE = 24
"""The number of files of unknown size whose size is requested; the others count as the average of these."""

RESERVED_BYTES = 256 * 2**20
"""Bytes that stay free on the disk."""

_ATTEMPTS, _SIZE_SECONDS = 3, 10.0
"""Attempts to request the size of a file, and the seconds that each may take."""


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The plan to fetch ``missing`` of ``files`` to ``folder``; the number of ``bytes`` is exact unless ``estimated``.

    No two files have the same path.
    """

    name: str
    folder: Path
    files: tuple[RemoteFile, ...]
    missing: tuple[RemoteFile, ...]
    bytes: int
    estimated: bool
    free: int
    licences: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines that describe the plan."""
        present = len(self.files) - len(self.missing)
        approximately = "about " if self.estimated else ""
        fetched = (
            f"{count_of(len(self.missing), 'file')}, {approximately}{size(self.bytes)}" if self.missing else "nothing"
        )
        yield f"{self.name}: to fetch {fetched}" + (f"; {count_of(present, 'file')} already here" if present else "")
        for licence in self.licences:
            yield f"  licence   {clean(licence)}"
        yield f"  to        {clean(str(self.folder))}"
        yield f"  disk      {size(self.free)} free"
        for note in self.notes:
            yield f"  note      {clean(note)}"

    def check_disk_space(self) -> None:
        """Raise FetchError if the disk has too little free space."""
        if problem := disk_problem({self.folder: self.bytes}, self.name):
            raise FetchError(problem)


def disk_problem(needs: Mapping[Path, int], name: str) -> str:
    """Return which disk has too little free space for the bytes that ``name`` needs in each folder; "" if all have enough."""
    folders: dict[int, list[Path]] = {}
    for folder in needs:
        if needs[folder]:
            folders.setdefault(disk_of(folder), []).append(folder)
    for first, *others in folders.values():
        needed, free = sum(needs[folder] for folder in (first, *others)), free_space(first)
        if (short := needed + RESERVED_BYTES - free) > 0:
            return (
                f"the disk of {first} has {size(free)} free, but {name} needs {size(needed)}; free {size(short)} more, or "
                "choose a folder on another disk."
            )
    return ""


def make_plan(
    name: str,
    folder: Path,
    files: Sequence[RemoteFile],
    licences: Sequence[str],
    notes: Sequence[str] = (),
    timeouts: Timeouts | None = None,
) -> FetchPlan:
    """Return the plan for ``files``, with unknown sizes requested. Files with the same path and content count once.

    Raises FetchError if access is denied, and SourceError if different files have the same path.
    """
    files = distinct_files(files)
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        is_present = list(pool.map(RemoteFile.is_complete, files))
    missing = tuple(file for file, complete in zip(files, is_present, strict=True) if not complete)
    known = sum(file.size - file.begun() for file in missing if file.size is not None)
    unknown = [file for file in missing if file.size is None]
    sampled = unknown[:: max(1, len(unknown) // SIZE_SAMPLE)][:SIZE_SAMPLE]
    # One file of each repository shows whether access is granted.
    representatives = {file.owner: file for file in reversed(missing) if file.hub}
    requested = _sizes([*sampled, *representatives.values()], timeouts or Timeouts())
    sizes = [count for count in requested[: len(sampled)] if count]
    average = sum(sizes) / len(sizes) if sizes else 0
    return FetchPlan(
        name,
        folder,
        files,
        missing,
        known + round(average * len(unknown)),
        len(sizes) < len(unknown),
        free_space(folder),
        tuple(licences),
        tuple(notes),
    )


def read_small(file: RemoteFile) -> bytes:
    """Return the bytes of a small file that lists the other files, from the disk or the server, without storing it.

    Raises FetchError if it cannot be fetched or differs from the published file.
    """
    from benchmarks.fetch.file_download import download
    from benchmarks.untrusted.own_files import scratch_folder

    if file.is_complete():
        return file.path.read_bytes()
    with scratch_folder() as folder:
        copy = RemoteFile(file.url, folder / file.path.name, file.owner, file.size, file.digest)
        failures = download([copy])
        if failures:
            raise FetchError(f"{file.path.name} of {file.owner} cannot be fetched: {failures[copy]}; try again later.")
        return copy.path.read_bytes()


def _sizes(files: Sequence[RemoteFile], timeouts: Timeouts) -> list[int]:
    """Return the sizes that servers report, 0 if unknown. Raises FetchError if access is denied or a server is unreachable."""
    if not files:
        return []
    from benchmarks.fetch.web_requests import client

    with client(_SIZE_SECONDS) as session, ThreadPoolExecutor(MAX_PARALLEL) as pool:
        token = hub_token() if any(file.hub for file in files) else None
        return list(pool.map(lambda file: _size(session, file, token if file.hub else None, timeouts), files))


def _size(session: Any, file: RemoteFile, token: str | None, timeouts: Timeouts) -> int:
    import httpx2

    from benchmarks.fetch.web_requests import OddReplyError, response_to, transport_problem

    end = time.monotonic() + _SIZE_SECONDS
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with response_to(
                session, "HEAD", file.url, token=token, seconds=_SIZE_SECONDS, elsewhere=bool(file.digest)
            ) as response:
                break
        except OddReplyError:
            return 0
        except httpx2.TransportError as error:
            if attempt == _ATTEMPTS or time.monotonic() > end:
                raise connection_failed(file, f"it {transport_problem(error)}", attempt) from error
            time.sleep(timeouts.wait)
    if response.status_code in (401, 403):
        raise refused(file, response)
    return (length_of(response) or 0) if response.status_code == 200 else 0
