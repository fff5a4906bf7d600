"""Deleted runs, which can be brought back until whoever deleted them is done.

A run is deleted by one rename into a folder beside the runs, on the same file system: whatever is killed when, it is whole in
one place or the other. Each :class:`Trash` has a folder of its own there and holds its lock. A folder whose owner ended without
emptying it is taken over by the next trash, so no run stays where nobody sees it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from app.store.database import DATABASE
from app.store.locks import FileLock
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import make_folder

FOLDER = ".trash"
"""The folder among a workspace's runs that holds the deleted ones; names that begin with a dot are no runs."""
_LOCK = ".lock"
_HALF = ".half-"
"""How names begin that nobody takes over: a folder that is being made, or a run that is being removed for good."""


class Trash:
    """The runs that were deleted here, the last one last."""

    def __init__(self, workspace: Workspace) -> None:
        self._runs = workspace.runs_folder
        self._folder = self._runs / FOLDER / uuid4().hex
        self._lock: FileLock | None = None
        self._deleted: list[Path] = []

    @property
    def names(self) -> list[str]:
        """The names of the runs that can be brought back."""
        return [_name(run) for run in self._deleted]

    def delete(self, run: Path) -> None:
        """Move a run into the trash. Raises StoreError while a process works on it."""
        if run.is_symlink() or not (run / DATABASE).is_file():
            raise StoreError(f"{run} is not a run's own folder; delete it by hand.")
        with FileLock(run / "lock") as lock:
            if not lock.acquire("rashomon, deleting"):
                raise StoreError(f"{lock.holder() or 'another process'} works on {run.name}; stop it first.")
            self._keep(run, run.name)

    def restore(self) -> Path:
        """Bring back the run that was deleted last; its folder. Raises StoreError where another run has its name now."""
        if not self._deleted:
            raise StoreError("there is no deleted run to bring back.")
        run = self._deleted[-1]
        place = self._runs / _name(run)
        if os.path.lexists(place):
            raise StoreError(
                f"another run is called {place.name} now; delete or move that one, then bring this one back."
            )
        _rename(run, place)
        self._deleted.pop()
        return place

    def take_over(self) -> list[str]:
        """Take over what those deleted who ended without emptying their trash; the runs' names."""
        before = len(self._deleted)
        if (self._runs / FOLDER).is_symlink():  # in a received workspace; it would lead to any folder of the user's
            return []
        with suppress(OSError):
            for left in sorted((self._runs / FOLDER).iterdir()):
                if left != self._folder and not left.name.startswith(_HALF) and not left.is_symlink():
                    with suppress(OSError, StoreError):
                        self._take(left)
        return self.names[before:]

    def empty(self) -> None:
        """Remove the deleted runs for good. One that cannot be removed is left for the next to take over."""
        if self._lock is None:
            return
        for run in self._deleted:
            _remove(run)
        self._deleted.clear()
        if not [entry for entry in self._folder.iterdir() if entry.name != _LOCK]:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.release()
        self._lock = None
        with suppress(OSError):  # others use it
            self._folder.parent.rmdir()

    def _take(self, left: Path) -> None:
        with FileLock(left / _LOCK) as lock:
            if not lock.acquire("rashomon, taking over"):
                return
            for run in sorted(left.iterdir()):
                if run.name.startswith(_HALF):
                    shutil.rmtree(run, ignore_errors=True)
                elif run.name != _LOCK:
                    self._keep(run, _name(run))
            shutil.rmtree(left, ignore_errors=True)

    def _keep(self, run: Path, name: str) -> None:
        place = self._own() / f"{len(self._deleted):04}-{name}"
        _rename(run, place)
        self._deleted.append(place)

    def _own(self) -> Path:
        """The folder of this trash, which appears with its lock held."""
        if self._lock is None:
            half = self._folder.with_name(f"{_HALF}{self._folder.name}")
            try:
                make_folder(self._runs, FOLDER)
                half.mkdir()
                lock = FileLock(half / _LOCK)
                lock.acquire(f"process {os.getpid()}")
                half.rename(self._folder)
            except OSError as error:
                raise StoreError(f"cannot write {half.parent}: {error.strerror}; it must be writable.") from error
            self._lock = lock
        return self._folder


def _name(run: Path) -> str:
    """The name that a deleted run had: its folder's without the number that tells namesakes apart."""
    return run.name.partition("-")[2]


def _rename(run: Path, place: Path) -> None:
    try:
        run.rename(place)
    except OSError as error:
        raise StoreError(f"cannot move {error.filename or run}: {error.strerror}.") from error


def _remove(run: Path) -> None:
    """Remove a run for good; by one rename first, so that no half of one can be brought back."""
    gone = run.with_name(f"{_HALF}{uuid4().hex}")
    with suppress(OSError):
        run.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
