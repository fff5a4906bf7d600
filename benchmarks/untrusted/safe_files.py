"""Files of runs, builds, caches and exports, opened so that no link, FIFO or device in such a folder is ever followed.

``folder`` is a location that the user chose: links on the way to it are the user's own and are followed. ``name`` is a path
inside it (``"lock"``, ``"media/ab.png"``), and nothing on that path may be a link. Only regular files are opened, those of
this user or of the folder's owner (for reading also root's), and none is written that has a second name elsewhere (a hard
link). Raises OSError as ``open`` does where a file is missing or not permitted.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path, PurePosixPath

from benchmarks.errors import StoreError

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)
_COMMON = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_MEGABYTE = 1 << 20


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class UnsafeFileError(StoreError):
    """A name in a run, build, cache or export folder under which no file of this program's lies."""


def open_read(folder: Path, name: str) -> BufferedReader:
    """Open a file for reading. Raises OSError where it is missing, UnsafeFileError where it is no regular file."""
    return os.fdopen(open_descriptor(folder, name, os.O_RDONLY), "rb")


def open_write(folder: Path, name: str, *, append: bool = False, new: bool = False) -> BufferedWriter:
    """Open a file for writing, emptied unless ``append``; with ``new`` FileExistsError where the name is taken."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0) | (os.O_EXCL if new else 0)
    descriptor = open_descriptor(folder, name, flags)
    try:
        if not append and not new:
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, "ab" if append else "wb")
    except BaseException:
        os.close(descriptor)
        raise


def open_descriptor(folder: Path, name: str, flags: int) -> int:
    """Open a file with ``flags`` of :func:`os.open`, checked; O_TRUNC is not among them, since it acts before the check."""
    with _parent(folder, name) as (place, last, owner):
        _check_kind(place, last, folder / name)
        descriptor = os.open(last, flags | _COMMON, 0o666, dir_fd=place)
        try:
            write = flags & os.O_ACCMODE != os.O_RDONLY
            _check(os.fstat(descriptor), folder / name, owner, write=write)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def read_bytes(folder: Path, name: str, *, limit: int) -> bytes:
    """Return a file's bytes. Raises UnsafeFileError where there are more than ``limit``."""
    with open_read(folder, name) as stream:
        if os.fstat(stream.fileno()).st_size <= limit:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return data
    raise UnsafeFileError(f"{folder / name} is larger than {limit // _MEGABYTE:,} MB; replace it with the file it was.")


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Write a file whole, in place of one of that name, by a rename of a new file beside it that is on the disk by then."""
    with _parent(folder, name) as (place, last, _):
        part = f".{last}.{secrets.token_hex(4)}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON, 0o666, dir_fd=place)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(part, last, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=place)
            raise


def is_full(error: OSError) -> bool:
    """Whether a file could not be written for want of room: a full disk, a quota, or the largest size of a file."""
    return error.errno in _FULL


def open_regular(path: Path) -> BufferedReader:
    """Open a file that the user names, through links; OSError where it is no regular file: nothing waits or never ends."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"it is {_kind(mode)}", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_file(folder: Path, name: str, *, write: bool) -> bool:
    """Check a file that a library opens by its path; False where there is none. Raises UnsafeFileError."""
    try:
        with _parent(folder, name) as (place, last, owner):
            found = os.stat(last, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    _check(found, folder / name, owner, write=write)
    return True


def check_database(folder: Path, name: str, *, write: bool) -> bool:
    """Check an SQLite database and the files that SQLite keeps beside it; False where there is no database."""
    there = [check_file(folder, name + suffix, write=write) for suffix in _DATABASE_SUFFIXES]
    return there[0]


def is_there(folder: Path, name: str) -> bool:
    """Return whether the name is taken, by whatever it may be, without following it."""
    try:
        with _parent(folder, name) as (place, last, _):
            os.stat(last, dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return True


def remove_file(folder: Path, name: str) -> None:
    """Remove a name, never what a link of that name leads to. Raises FileNotFoundError where there is none."""
    with _parent(folder, name) as (place, last, _):
        os.unlink(last, dir_fd=place)


def make_folder(folder: Path, name: str) -> Path:
    """Make a folder inside ``folder``, which itself is there, unless there is one; return it. Raises UnsafeFileError."""
    with _inside(folder, _parts(folder, name), make=True):
        return folder / name


@contextmanager
def _parent(folder: Path, name: str) -> Iterator[tuple[int, str, int]]:
    """A descriptor of the folder in which ``name`` lies, the last part of the name, and the owner of ``folder``."""
    *before, last = _parts(folder, name)
    with _inside(folder, before) as (place, owner):
        yield place, last, owner


def _parts(folder: Path, name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or "\0" in name or parts[0].startswith("/") or ".." in parts:
        raise UnsafeFileError(f"{name!r} is no name of a file inside {folder}; remove what names it.")
    return parts


@contextmanager
def _inside(folder: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[tuple[int, int]]:
    """A descriptor of the folder at ``parts`` inside ``folder``, and the owner of ``folder``."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        owner = os.fstat(place).st_uid
        path = folder
        for part in parts:
            path /= part
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=place)
            inner = _enter(place, part, path)
            os.close(place)
            place = inner
        yield place, owner
    finally:
        os.close(place)


def _enter(place: int, part: str, path: Path) -> int:
    found = os.stat(part, dir_fd=place, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFileError(f"{path} is {_kind(found.st_mode)} where a folder belongs; remove it.")
    return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)


def _check_kind(place: int, name: str, path: Path) -> None:
    """Refuse what is no regular file before it is opened, since opening alone can wait, or rewind a tape."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise _refusal(path, _kind(mode))


def _check(found: os.stat_result, path: Path, owner: int, *, write: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _refusal(path, _kind(found.st_mode))
    mine = (os.geteuid(), owner) if write else (os.geteuid(), owner, 0)
    if found.st_uid not in mine:
        raise UnsafeFileError(f"{path} belongs to another user than its folder; copy the folder to make it your own.")
    if write and found.st_nlink > 1:
        raise _refusal(path, "a hard link to another file")


def _kind(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "a regular file" if stat.S_ISREG(mode) else "no file")


def _refusal(path: Path, what: str) -> UnsafeFileError:
    return UnsafeFileError(
        f"{path} is {what} where a regular file belongs; remove it, or put a copy of the file there."
    )
