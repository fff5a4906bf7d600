"""Folders that are written under another name and renamed at the end, so that a half-written one never looks complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.text.text_escaping import clean
from benchmarks.errors import NoAccessError, StoreError
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.typed_paths import path_exists, typed_path


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``target`` at the end, or is removed after an error. Raises StoreError."""
    target = typed_path(target)
    if path_exists(target):
        raise StoreError(f"{clean(str(target))} exists; name another folder.")
    with temporary_folder(target) as folder, writing(target):
        yield folder.path
        _sync(folder.path)
        folder.keep_as(target)
        _sync_file(target.parent)


@contextmanager
def temporary_folder(target: Path) -> Iterator[OwnFolder]:
    """Yield a folder beside ``target`` that is removed at the end. Raises StoreError if it cannot be created."""
    with writing(target):
        folder = OwnFolder(target.parent, mode=0o777)
    with folder:
        yield folder


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise NoAccessError for what the block cannot write."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # MLX reports a full disk as a RuntimeError
        raise NoAccessError(
            f"cannot write {clean(str(target))}: {error}; free some space or name another folder."
        ) from error


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
