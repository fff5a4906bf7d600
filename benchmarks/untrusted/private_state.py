"""Private files of one user on one machine, outside every workspace, run and build.

A received folder can hold anything but these: they record what this machine has made, and what its user has agreed to.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.errors import StoreError
from benchmarks.untrusted.own_files import open_folder, own_file
from benchmarks.untrusted.private_folders import make_private
from benchmarks.untrusted.safe_files import write_error

_MAX_BYTES = 1 << 20


def state_folder() -> Path:
    """Return the folder of these files, which is not the data folder: on macOS that is the workspace too."""
    from platformdirs import user_state_path

    return user_state_path("rashomon-private")


def read(name: str) -> str | None:
    """Return the text of a private file; None where there is none.

    Raises StoreError for a file that is not the user's own.
    """
    path = state_folder() / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_own(path) from error
        raise StoreError(f"cannot read {path}: {error.strerror}; make it readable for your user alone.") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > _MAX_BYTES:
            raise _not_own(path)
        return os.read(descriptor, _MAX_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def write(name: str, text: str, *, replace: bool = True) -> None:
    """Write a private file atomically; without ``replace`` an existing one stays as it is.

    Raises StoreError.
    """
    folder = state_folder()
    try:
        make_private(folder)
        with open_folder(folder) as place, own_file(place, 0o600) as (part, descriptor), open(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
            if replace:
                os.rename(part, name, src_dir_fd=place, dst_dir_fd=place)
            else:
                with suppress(FileExistsError):  # another process was faster
                    os.link(part, name, src_dir_fd=place, dst_dir_fd=place)
                os.unlink(part, dir_fd=place)
    except OSError as error:
        advice = "make room or the folder writable, or name another with XDG_STATE_HOME"
        raise write_error(folder / name, error, advice) from error


@contextmanager
def lock() -> Iterator[None]:
    """Keep other processes from changing private files, while one of them is read and written again.

    A folder that cannot be locked is left to the writing, which reports why; a disk without locks goes without.
    """
    folder, descriptor = state_folder(), None
    try:
        with suppress(OSError):
            make_private(folder)
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove(name: str) -> None:
    """Remove a private file, if there is one. Raises StoreError."""
    path = state_folder() / name
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:
        return
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror}; remove it yourself.") from error


def _not_own(path: Path) -> StoreError:
    return StoreError(f"{path} is not your own file; remove it.")
