"""Trash for deleted runs, which can be restored until it is emptied.

A run is deleted by a single rename into a folder next to the runs, on the same file system, so that it is always complete in one
place or the other. Each :class:`Trash` has a folder of its own there, and holds its lock. A folder whose owner ended without
emptying it, as ``rashomon runs --prune`` does, is taken over by the next trash, so that no run is lost from sight.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from app.store.file_locks import FileLock
from app.store.run_database import DATABASE
from app.store.workspace import Workspace
from benchmarks.errors import BusyError, NoAccessError, StoreError
from benchmarks.untrusted.file_names import twin
from benchmarks.untrusted.finder_files import folder_entries
from benchmarks.untrusted.own_files import is_own_name, remove_whole, sweep
from benchmarks.untrusted.safe_files import make_folder, write_error

FOLDER = ".trash"
"""The folder for deleted runs in a workspace's folder of runs; names with a leading dot are not runs."""
_LOCK = ".lock"
_HALF = ".half-"
"""The prefix of a folder in creation, which is never taken over."""


class Trash:
    """The runs deleted by this process, in order."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._runs = workspace.runs_folder
        self._folder = self._runs / FOLDER / uuid4().hex
        self._lock: FileLock | None = None
        self._deleted: list[Path] = []

    @property
    def names(self) -> list[str]:
        """The names of the runs that can be restored."""
        return [_name(run) for run in self._deleted]

    def delete(self, run: Path, *, for_good: bool = False) -> None:
        """Move a run into the trash, or remove it ``for_good``. Raises StoreError while it is used, and in an opened bundle.

        Only the trash needs room on the disk: StoreFullError says that there is none.
        """
        self._workspace.require_writable()
        if run.is_symlink() or not (run / DATABASE).is_file():
            raise StoreError(f"{run} is a link or not a run; delete it manually.")
        with FileLock(run / "lock") as lock:
            if not lock.acquire(""):  # a name could not be written on a full disk
                raise BusyError(f"{lock.holder() or 'another process'} is using {run.name}; stop it first.")
            if for_good:
                _remove(run)
                if os.path.lexists(run):
                    raise NoAccessError(f"cannot remove {run}; make {run.parent} writable.")
            else:
                self._move(run, run.name)

    def restore(self, *, skip: int = 0) -> Path:
        """Restore the run that was deleted last, or before the last ``skip`` ones, and return its folder.

        Raises StoreError if its name is taken, or there is no such run.
        """
        if len(self._deleted) <= skip:
            raise StoreError("there is no deleted run to restore.")
        run = self._deleted[-1 - skip]
        place = self._runs / _name(run)
        other = place.name if os.path.lexists(place) else twin(place.name, self._workspace.run_names())
        if other is not None:
            raise StoreError(f"there is another run {other} now; delete or move it, then restore {place.name}.")
        _rename(run, place)
        self._deleted.remove(run)
        return place

    def take_over(self) -> list[str]:
        """Take over the trash of processes that have ended without emptying it; return the names of its runs."""
        count_before = len(self._deleted)
        for folder in self._left():
            with suppress(OSError, StoreError):
                for run in _runs_in(folder):
                    self._move(run, _name(run))
                shutil.rmtree(folder, ignore_errors=True)
        return self.names[count_before:]

    def left(self) -> list[str]:
        """Return the names of the runs that processes have deleted which ended without emptying their trash."""
        return [_name(run) for folder in self._left() for run in _runs_in(folder)]

    def empty_left(self) -> int:
        """Remove what processes that have ended left in the trash, also on a full disk; return the number of bytes."""
        freed = 0
        for folder in self._left():
            for run in _runs_in(folder):
                freed += folder_size(run)
                _remove(run)
            shutil.rmtree(folder, ignore_errors=True)
        sweep(self._runs)  # of a removal that was interrupted
        with suppress(OSError):  # in use by others
            (self._runs / FOLDER).rmdir()
        return freed

    def empty(self) -> None:
        """Remove the deleted runs for good. A run that cannot be removed is left for the next trash to take over."""
        if self._lock is None:
            return
        for run in self._deleted:
            _remove(run)
        self._deleted.clear()
        if not [entry for entry in folder_entries(self._folder) if entry.name != _LOCK]:
            shutil.rmtree(self._folder, ignore_errors=True)
        self.close()
        with suppress(OSError):  # in use by others
            self._folder.parent.rmdir()

    def close(self) -> None:
        """Leave the deleted runs to the next trash that takes over."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _left(self) -> Iterator[Path]:
        """Yield the folders of processes that have ended, each locked meanwhile."""
        if (self._runs / FOLDER).is_symlink():  # a received workspace could point to any folder of the user
            return
        with suppress(OSError):
            for folder in folder_entries(self._runs / FOLDER):
                if folder != self._folder and not folder.name.startswith(_HALF) and not folder.is_symlink():
                    with suppress(OSError, StoreError), FileLock(folder / _LOCK) as lock:
                        if lock.acquire(""):
                            yield folder

    def _move(self, run: Path, name: str) -> None:
        place = self._own_folder() / f"{len(self._deleted):04}-{name}"
        _rename(run, place)
        self._deleted.append(place)

    def _own_folder(self) -> Path:
        """Return the folder of this trash; it is created under its lock."""
        if self._lock is None:
            partial_path = self._folder.with_name(f"{_HALF}{self._folder.name}")
            try:
                make_folder(self._runs, FOLDER)
                partial_path.mkdir()
                lock = FileLock(partial_path / _LOCK)
                lock.acquire(f"process {os.getpid()}")
                partial_path.rename(self._folder)
            except (OSError, StoreError) as error:
                shutil.rmtree(partial_path, ignore_errors=True)
                if isinstance(error, StoreError):
                    raise
                raise write_error(partial_path.parent, error, "make it writable, or free some space") from error
            self._lock = lock
        return self._folder


def _name(run: Path) -> str:
    """Return the original name of a deleted run: its folder's name without the number in front."""
    return run.name.partition("-")[2]


def _rename(run: Path, place: Path) -> None:
    try:
        run.rename(place)
    except OSError as error:
        raise NoAccessError(f"cannot move {error.filename or run}: {error.strerror}.") from error


def _runs_in(folder: Path) -> list[Path]:
    return [run for run in folder_entries(folder) if run.name != _LOCK and not is_own_name(run.name)]


def folder_size(folder: Path) -> int:
    """Return the bytes of a folder's files."""
    return sum(os.lstat(os.path.join(place, file)).st_size for place, _, files in os.walk(folder) for file in files)


def _remove(run: Path) -> None:
    """Remove a run for good, so that an incomplete run cannot be restored."""
    with suppress(OSError):
        remove_whole(run)
