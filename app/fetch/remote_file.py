"""A file that is somewhere else, what is known of it, and whether it is here, whole."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal

from benchmarks.errors import RashomonError, SourceError

JPEG = b"\xff\xd8\xff"


class FetchError(RashomonError):
    """Something that could not be fetched; what is whole is kept."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file's bytes come to: its sha256, or git's sha1 of a blob."""

    kind: Literal["sha256", "git-sha1"]
    value: str

    def matches(self, file: Path) -> bool:
        """Whether ``file`` has this digest."""
        with file.open("rb") as stream:
            if self.kind == "sha256":
                return hashlib.file_digest(stream, "sha256").hexdigest() == self.value
            made = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
            while piece := stream.read(1 << 20):
                made.update(piece)
            return made.hexdigest() == self.value


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at ``url`` that is to lie at ``path``.

    ``size`` in bytes and ``digest`` are None where they are not known beforehand; ``begins`` is what its first bytes are.
    ``owner`` says in words whose it is, ``page`` where its terms stand. ``hub`` sends the Hub's token along.
    """

    url: str
    path: Path
    owner: str
    size: int | None = None
    digest: Digest | None = None
    begins: bytes = b""
    page: str = ""
    hub: bool = False

    @property
    def part(self) -> Path:
        """Where it lies while it is not whole."""
        return self.path.with_name(f".{self.path.name}.part")

    def is_here(self) -> bool:
        """Whether it lies at its place, of the right size, digest and beginning where these are known."""
        try:
            if not self.path.is_file() or (self.size is not None and self.path.stat().st_size != self.size):
                return False
            with self.path.open("rb") as stream:
                if stream.read(len(self.begins)) != self.begins:
                    return False
            return self.digest is None or self.digest.matches(self.path)
        except OSError:
            return False

    def begun(self) -> int:
        """Bytes of it that an earlier attempt left. Without a digest none count: nothing would say that they go together."""
        try:
            found = self.part.stat().st_size if self.digest else 0
        except OSError:
            return 0
        return found if self.size is None or found <= self.size else 0


def inside(folder: Path, name: str) -> Path:
    """``name``, as a server tells it, as a path in ``folder``. Raises SourceError where it would lead out of it."""
    parts = PurePosixPath(name).parts
    odd = not parts or name.startswith("/") or ".." in parts or "\\" in name or PureWindowsPath(name).drive
    if odd or not name.isprintable():
        raise SourceError(
            f"the server names a file {name[:80]!r}, which would lie outside {folder}; nothing was fetched."
        )
    return folder.joinpath(*parts)
