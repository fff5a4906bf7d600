"""Private files of one user on one machine, outside every workspace, run and build.

A received folder can hold anything but these: they tell what this machine has made, and what its user has agreed to.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from benchmarks.errors import StoreError

_LONGEST = 1 << 20


def state_folder() -> Path:
    """Return the folder of these files. It is not the data folder, which on macOS is the workspace too."""
    from platformdirs import user_state_path

    return user_state_path("rashomon-private")


def read(name: str) -> str | None:
    """Return the text of a private file; None where there is none. Raise StoreError for one that is not the user's own."""
    path = state_folder() / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_own(path) from error
        raise StoreError(f"cannot read {path}: {error.strerror}; make it readable for you alone.") from error
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > _LONGEST:
            raise _not_own(path)
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def write(name: str, text: str, *, replace: bool = True) -> None:
    """Write a private file, whole or not at all; without ``replace`` one that exists stays as it is. Raise StoreError."""
    folder = state_folder()
    hidden: str | None = None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, hidden = tempfile.mkstemp(prefix=f".{name}.", dir=folder)  # 0600, whatever the umask
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        if replace:
            os.replace(hidden, folder / name)
            hidden = None
        else:
            with suppress(FileExistsError):  # another process was quicker
                os.link(hidden, folder / name)
    except OSError as error:
        raise StoreError(
            f"cannot write {folder / name}: {error.strerror}; make the folder writable, or name another with XDG_STATE_HOME."
        ) from error
    finally:
        if hidden is not None:
            with suppress(OSError):
                os.unlink(hidden)


def _not_own(path: Path) -> StoreError:
    return StoreError(f"{path} is not a file of your own; remove it.")
