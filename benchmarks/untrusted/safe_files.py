"""Safe access to files in run, build, cache and export folders: links, FIFOs and devices in them are never followed.

``folder`` is a location that the user chose; links on the way to it are the user's own and are followed. ``name`` is a path
inside it (``"lock"``, ``"media/ab.png"``), no part of which may be a link. Only regular files are opened, owned by this user
or by the folder's owner (or, for reading, by root). No file with a second hard link is written. As with ``open``, a missing
file or a missing permission raises OSError.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path, PurePosixPath

from benchmarks.errors import NoAccessError, StoreError, StoreFullError
from benchmarks.untrusted.own_files import own_file

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
_WRONG_PATHS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP})


class UnsafeFileError(StoreError):
    """A name in a run, build, cache or export folder that is not a file of this program."""


def open_read(folder: Path, name: str) -> BufferedReader:
    """Open a file for reading. Raises OSError if it is missing, UnsafeFileError if it is not a regular file."""
    return os.fdopen(open_descriptor(folder, name, os.O_RDONLY), "rb")


def open_write(folder: Path, name: str, *, append: bool = False, new: bool = False) -> BufferedWriter:
    """Open a file for writing, emptied unless ``append``. With ``new``, raises FileExistsError if the name is taken."""
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
    """Open and check a file with ``flags`` of :func:`os.open`, except O_TRUNC, which would act before the check."""
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
    """Return a file's bytes. Raises UnsafeFileError if there are more than ``limit``."""
    with open_read(folder, name) as stream:
        if os.fstat(stream.fileno()).st_size <= limit:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return data
    raise UnsafeFileError(f"{folder / name} is larger than {limit // _MEGABYTE:,} MB; restore the original file.")


def replace_file(folder: Path, name: str, data: bytes | Iterable[bytes]) -> None:
    """Write a file atomically, replacing one of that name. ``data`` may be given in pieces; see :func:`replacing`."""
    with replacing(folder, name) as stream:
        stream.writelines((data,) if isinstance(data, bytes) else data)


@contextmanager
def replacing(folder: Path, name: str) -> Iterator[BufferedWriter]:
    """Yield a new file, which is synced to disk and renamed to ``name`` after the block.

    If the block raises, the new file is removed, and one of that name remains as it was. What a killed process left in the
    folder is removed.
    """
    with (
        _parent(folder, name) as (place, last, _),
        own_file(place) as (part, descriptor),
        os.fdopen(descriptor, "wb") as stream,
    ):
        yield stream
        stream.flush()
        os.fsync(descriptor)
        os.rename(part, last, src_dir_fd=place, dst_dir_fd=place)


def write_named(path: Path, data: bytes) -> None:
    """Write a file that the user names, following links. Raises StoreError; no folder is created.

    A regular file is replaced atomically, and keeps its owner and permissions. A device or a FIFO is written to, and so is
    whatever standard output or standard error already goes to.
    """
    try:
        try:
            status = os.stat(path)
        except FileNotFoundError:  # a new file, or a link to one
            status = None
        stream = next((number for number in (1, 2) if status is not None and _is_stream(number, status)), None)
        if stream is not None:
            sys.stdout.flush()
            with os.fdopen(os.dup(stream), "wb") as output:
                output.write(data)
        elif status is None or stat.S_ISREG(status.st_mode):
            target = Path(os.path.realpath(path))
            with replacing(target.parent, target.name) as new:
                new.write(data)
                if status is not None:
                    with suppress(OSError):
                        os.fchown(new.fileno(), status.st_uid, status.st_gid)
                    os.fchmod(new.fileno(), stat.S_IMODE(status.st_mode))
        else:
            with open(path, "wb") as output:
                output.write(data)
    except FileNotFoundError as error:
        raise NoAccessError(
            f"cannot write {path}: its folder does not exist; make it, or name another file."
        ) from error
    except IsADirectoryError as error:
        raise NoAccessError(f"cannot write {path}: it is a folder; name a file in it.") from error
    except OSError as error:
        raise write_error(path, error, "free some space" if is_disk_full(error) else "name another file") from error


def _is_stream(number: int, status: os.stat_result) -> bool:
    """Return whether a descriptor of this process is open on the file with this status."""
    try:
        return os.path.samestat(os.fstat(number), status)
    except OSError:  # it is closed
        return False


def is_disk_full(error: OSError) -> bool:
    """Return whether a write failed for lack of space: a full disk, a quota or the maximum file size."""
    return error.errno in _FULL


def write_error(path: Path, error: OSError, advice: str) -> StoreError:
    """Return the error for a file that could not be written: StoreFullError for lack of space, StoreError for a wrong path."""
    kind = StoreFullError if is_disk_full(error) else StoreError if error.errno in _WRONG_PATHS else NoAccessError
    return kind(f"cannot write {path}: {error.strerror or error}; {advice}.")


def open_regular(path: Path) -> BufferedReader:
    """Open a file that the user names, following links. Raises OSError if it is not a regular file, without waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"it is {_kind(mode)}", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, *, limit: int) -> bytes:
    """Return the bytes of a file that the user names. Raises OSError as :func:`open_regular`, and for more than ``limit``."""
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size <= limit:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return data
    raise OSError(errno.EFBIG, f"it is larger than {limit // 1024:,} KiB", str(path))


def check_file(folder: Path, name: str, *, write: bool) -> bool:
    """Check a file that a library opens by its path; return False if it does not exist. Raises UnsafeFileError."""
    try:
        with _parent(folder, name) as (place, last, owner):
            status = os.stat(last, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    _check(status, folder / name, owner, write=write)
    return True


def check_database(folder: Path, name: str, *, write: bool) -> bool:
    """Check an SQLite database and its auxiliary files; return False if there is no database. Raises UnsafeFileError."""
    present = [check_file(folder, name + suffix, write=write) for suffix in _DATABASE_SUFFIXES]
    return present[0]


def exists(folder: Path, name: str) -> bool:
    """Return whether the name exists, as anything, without following it."""
    try:
        with _parent(folder, name) as (place, last, _):
            os.stat(last, dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return True


def remove_file(folder: Path, name: str) -> None:
    """Remove a name, never the target of a link. Raises FileNotFoundError if it does not exist."""
    with _parent(folder, name) as (place, last, _):
        os.unlink(last, dir_fd=place)


def make_folder(folder: Path, name: str) -> Path:
    """Create a folder inside the existing ``folder``, unless it exists, and return it. Raises UnsafeFileError."""
    with _inside(folder, _parts(folder, name), make=True):
        return folder / name


@contextmanager
def _parent(folder: Path, name: str) -> Iterator[tuple[int, str, int]]:
    """Yield a descriptor of the folder that contains ``name``, the last part of the name, and the owner of ``folder``."""
    *before, last = _parts(folder, name)
    with _inside(folder, before) as (place, owner):
        yield place, last, owner


def _parts(folder: Path, name: str) -> tuple[str, ...]:
    parts = PurePosixPath(name).parts
    if not parts or "\0" in name or parts[0].startswith("/") or ".." in parts:
        raise UnsafeFileError(f"{name!r} is not a valid file name inside {folder}; remove the entry that names it.")
    return parts


@contextmanager
def _inside(folder: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[tuple[int, int]]:
    """Yield a descriptor of the folder at ``parts`` inside ``folder``, and the owner of ``folder``."""
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
    """Return a descriptor of the subfolder ``part``. Raises UnsafeFileError if it is not a folder."""
    mode = os.stat(part, dir_fd=place, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        raise UnsafeFileError(f"{path} is {_kind(mode)} where a folder belongs; remove it.")
    return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)


def _check_kind(place: int, name: str, path: Path) -> None:
    """Refuse anything but a regular file before opening it, since opening alone can block or rewind a tape."""
    with suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise _refusal(path, _kind(mode))


def _check(status: os.stat_result, path: Path, owner: int, *, write: bool) -> None:
    """Raise UnsafeFileError unless the file is regular, has a trusted owner and, to be written, no second hard link."""
    if not stat.S_ISREG(status.st_mode):
        raise _refusal(path, _kind(status.st_mode))
    trusted = (os.geteuid(), owner) if write else (os.geteuid(), owner, 0)
    if status.st_uid not in trusted:
        raise UnsafeFileError(f"{path} belongs to another user than its folder; copy the folder to become its owner.")
    if write and status.st_nlink > 1:
        raise _refusal(path, "a hard link to another file")


def _kind(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "a regular file" if stat.S_ISREG(mode) else "no file")


def _refusal(path: Path, kind: str) -> UnsafeFileError:
    return UnsafeFileError(
        f"{path} is {kind} where a regular file belongs; remove it or replace it with a copy of the file."
    )
