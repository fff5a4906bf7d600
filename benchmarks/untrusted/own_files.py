"""Temporary files and folders that last as long as their process, and the removal of those that a killed process left.

Each is named ``.rashomon-`` and eight hexadecimal digits, lies beside what it becomes, and is locked. The kernel releases the
lock when the process ends, so one that can be locked belongs to nobody any more. On a disk without locks, nothing is removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

_PREFIX = ".rashomon-"
_ATTEMPTS = 10
_NAME = re.compile(re.escape(_PREFIX) + r"[0-9a-f]{8}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_SWEPT: set[tuple[int, int]] = set()
"""The device and inode of the folders in which this process has written a file: each is swept once, since it may be large."""


class OwnFolder:
    """A new folder in ``parent``, which is created if necessary; it is removed with this object, unless it is kept.

    What killed processes left in ``parent`` is removed first. Raises OSError if it cannot be created.
    """

    def __init__(self, parent: Path, *, mode: int = 0o700) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        sweep(parent)
        with open_folder(parent) as place:

            def create(name: str) -> int:
                os.mkdir(name, mode, dir_fd=place)
                return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=place)

            name, descriptor = _claim(place, create)
        self.path = parent / name
        self._finish = weakref.finalize(self, _finish, self.path, descriptor)

    def keep_as(self, path: Path) -> None:
        """Give the folder another name, under which it stays. Raises OSError."""
        os.rename(self.path, path)
        self.remove()

    def remove(self) -> None:
        """Remove the folder, unless it was kept."""
        self._finish()

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a private folder in the system's folder for temporary files, which is removed after the block."""
    with OwnFolder(Path(tempfile.gettempdir())) as folder:
        yield folder.path


@contextmanager
def own_file(place: int, mode: int = 0o666) -> Iterator[tuple[str, int]]:
    """Yield the name and the descriptor of a new file in an open folder, to be renamed; after an error it is removed.

    The caller closes the descriptor, and not before it has renamed the file.
    """
    status = os.fstat(place)
    if (status.st_dev, status.st_ino) not in _SWEPT:
        _SWEPT.add((status.st_dev, status.st_ino))
        _sweep(place)
    name, descriptor = _claim(place, lambda name: os.open(name, _NEW_FILE, mode, dir_fd=place))
    try:
        yield name, descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=place)
        raise


def remove_whole(folder: Path) -> None:
    """Remove a folder that never looks whole meanwhile: it gets another name first, under which a sweep removes the rest.

    Raises OSError if it cannot be renamed; what cannot be removed stays under that name.
    """
    renamed = folder.with_name(f"{_PREFIX}{secrets.token_hex(4)}")
    os.rename(folder, renamed)
    with suppress(OSError), open_folder(renamed.parent) as place:
        _remove(place, renamed.name)


def is_own_name(name: str) -> bool:
    """Return whether a name is one that this module gives."""
    return _NAME.fullmatch(name) is not None


def sweep(folder: Path) -> None:
    """Remove what killed processes of this user left in a folder; whatever cannot be removed stays."""
    with suppress(OSError), open_folder(folder) as place:
        _sweep(place)


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Yield a descriptor of a folder. Raises OSError."""
    place = os.open(folder, _FOLDER)
    try:
        yield place
    finally:
        os.close(place)


def _claim(place: int, create: Callable[[str], int]) -> tuple[str, int]:
    """Return the name and the descriptor of what ``create`` makes, once it is locked."""
    for attempt in count(1):
        name = f"{_PREFIX}{secrets.token_hex(4)}"
        try:
            descriptor = create(name)
        except (FileExistsError, FileNotFoundError):  # the latter if a sweep removed it before it was opened
            if attempt == _ATTEMPTS:
                raise
            continue
        if _lock(place, name, descriptor):
            return name, descriptor
        os.close(descriptor)
    raise AssertionError  # which mypy cannot know


def _lock(place: int, name: str, descriptor: int) -> bool:
    """Lock a file or folder; return False if another process has it, or has removed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a disk without locks
        pass
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=place, follow_symlinks=False))
    return False


def _sweep(place: int) -> None:
    with suppress(OSError), os.scandir(place) as entries:
        for name in [entry.name for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_left(place, name)


def _remove_left(place: int, name: str) -> None:
    """Remove a file or a folder that is this user's and that no process holds; raise OSError otherwise."""
    kind = stat.S_IFMT(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    try:
        status = os.fstat(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same = os.path.samestat(status, os.stat(name, dir_fd=place, follow_symlinks=False))
        if is_same and status.st_uid == os.geteuid():
            _remove(place, name)
    finally:
        os.close(descriptor)


def _remove(place: int, name: str) -> None:
    """Remove a file, or a folder with its contents; never the target of a link."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=place)
        return
    for *_, inner in os.fwalk(name, dir_fd=place):  # a bundle's folders are read-only
        os.fchmod(inner, 0o700)
    shutil.rmtree(name, ignore_errors=True, dir_fd=place)


def _finish(path: Path, descriptor: int) -> None:
    with suppress(OSError), open_folder(path.parent) as place:
        _remove(place, path.name)
    os.close(descriptor)
