"""Files to fetch: their address, size, digest and state on this disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote

from benchmarks.errors import STOPPED, RashomonError
from benchmarks.number_ranges import shortened
from benchmarks.untrusted.file_names import name_key, unsafe_path

JPEG = b"\xff\xd8\xff"


class FetchError(RashomonError):
    """A failed fetch; complete files are kept."""

    exit_code = STOPPED


@dataclass(frozen=True, slots=True)
class Digest:
    """A file's digest: its sha256, or git's sha1 of a blob."""

    kind: Literal["sha256", "git-sha1"]
    value: str

    def matches(self, file: Path) -> bool:
        """Return whether ``file`` has this digest."""
        with file.open("rb") as stream:
            if self.kind == "sha256":
                return hashlib.file_digest(stream, "sha256").hexdigest() == self.value
            sha1 = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
            while piece := stream.read(1 << 20):
                sha1.update(piece)
            return sha1.hexdigest() == self.value


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at ``url`` that belongs at ``path``.

    ``size`` in bytes and ``digest`` are None if unknown; ``begins`` are its first bytes. ``owner`` names the owner, and ``page``
    is the web page with the terms of use. With ``hub``, the Hub's token is sent.
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
    def name(self) -> str:
        """The name of the file at its owner's, which may be stored by its digest."""
        return unquote(self.url.rpartition("/")[2])

    @property
    def part(self) -> Path:
        """The path of the incomplete file."""
        return self.path.with_name(f".{self.path.name}.part")

    def is_complete(self) -> bool:
        """Return whether the file is in place, with the right size, digest and first bytes as far as these are known."""
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
        """Return the bytes of an earlier attempt that can be continued; 0 without a digest, which could not verify the result."""
        try:
            size = self.part.stat().st_size if self.digest else 0
        except OSError:
            return 0
        return size if self.size is None or size <= self.size else 0


def distinct_files(files: Iterable[RemoteFile]) -> tuple[RemoteFile, ...]:
    """Return ``files`` without repetitions.

    Raises FetchError if one of them would overwrite another one or its part file, on a disk that ignores capitals too.
    """
    by_path: dict[str, RemoteFile] = {}
    for file in files:
        other = by_path.setdefault(name_key(str(file.path)), file)
        if other.path != file.path or (other.digest or other.url) != (file.digest or file.url):
            raise overwritten(file.owner, str(file.path))
    for file in by_path.values():
        if name_key(str(file.part)) in by_path:
            raise overwritten(file.owner, str(file.path))
    return tuple(by_path.values())


def overwritten(owner: str, path: str) -> FetchError:
    """Return the error for a listing of ``owner`` with two files that would be one."""
    return FetchError(f"{owner} lists two files for {path}; nothing was fetched. Report this to the data's owner.")


def access_denied(owner: str, status: int, code: str, page: str, token: str = "") -> FetchError:
    """Return the error for a server that responds with 401 or 403; ``code`` is the Hub's error code.

    ``token`` says where the token is from that was sent, if one was: one that counts is never replied to with 401.
    """
    if token and status == 401:
        return FetchError(
            f"the Hub refuses the token from {token} for {owner} (401): it is wrong or has expired; log in with "
            "`hf auth login`, or set HF_TOKEN to a valid one."
        )
    if code == "GatedRepo":
        return FetchError(
            f"{owner} is gated: accept its terms at {page} in a browser, then log in here with `hf auth login` or set HF_TOKEN."
        )
    if code == "RepoNotFound":
        return FetchError(f"there is no {owner}, or it is private; check its name, or log in with `hf auth login`.")
    if page:
        login = "requires a login" if status == 401 else "denies access to this account"
        return FetchError(f"{owner} {login} ({status}); see {page}, and log in with `hf auth login` or set HF_TOKEN.")
    return FetchError(f"{owner} denies access ({status}); try again later, or download it manually.")


def path_inside(folder: Path, name: str) -> Path:
    """Return the path of a server's file ``name`` in ``folder``. Raises FetchError for a name that no file there can have."""
    if problem := unsafe_path(name):
        raise FetchError(
            f"the server lists a file {problem} ({shortened(name)}); nothing was fetched. Report this to the data's owner."
        )
    return folder.joinpath(*PurePosixPath(name).parts)
