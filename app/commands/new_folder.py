"""Folders that are written under another name and renamed at the end, so that a half-written one never looks complete."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.system.signals import is_alive
from app.text.escape import clean
from benchmarks.errors import NoAccessError, StoreError
from benchmarks.untrusted.typed_paths import path_exists, typed_path

_ENDING = ".writing"


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``target`` at the end, or is removed after an error. Raises StoreError.

    Those that killed processes left for ``target`` are removed.
    """
    target = typed_path(target)
    if path_exists(target):
        raise StoreError(f"{clean(str(target))} exists; name another folder.")
    with temporary_folder(target) as folder, writing(target):
        yield folder
        _sync(folder)
        os.rename(folder, target)
        _sync_file(target.parent)


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Yield a hidden folder beside ``target`` that is removed at the end. Raises NoAccessError if it cannot be created.

    Those that killed processes left for ``target`` are removed.
    """
    sweep(target)
    hidden = target.parent / f".{target.name}-{os.getpid()}{_ENDING}"
    try:
        with writing(target):
            hidden.mkdir(parents=True)
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise NoAccessError for what the block cannot write."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # MLX reports a full disk as a RuntimeError
        raise NoAccessError(
            f"cannot write {clean(str(target))}: {error}; free some space or name another folder."
        ) from error


def sweep(target: Path) -> None:
    """Remove the hidden folders that killed processes left for ``target``."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}-*{_ENDING}"):
        if not is_alive(leftover.name.removeprefix(f".{target.name}-").removesuffix(_ENDING)):
            shutil.rmtree(leftover, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Write a folder's files through to the disk."""
    for file in folder.iterdir():
        _sync_file(file)
    _sync_file(folder)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
