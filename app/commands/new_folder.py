"""Folders that are written whole or not at all."""

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


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``target`` at the end, or is removed after an error. Raises StoreError.

    Those that killed processes left for ``target`` are removed.
    """
    target = typed_path(target)
    if path_exists(target):
        raise StoreError(f"{clean(str(target))} exists; name another folder.")
    hidden = target.parent / f".{target.name}-{os.getpid()}.writing"
    for leftover in target.parent.glob(f".{glob.escape(target.name)}-*.writing"):
        if not is_alive(leftover.name.removeprefix(f".{target.name}-").removesuffix(".writing")):
            shutil.rmtree(leftover, ignore_errors=True)
    try:
        hidden.mkdir(parents=True)
        yield hidden
        os.rename(hidden, target)
    except (OSError, RuntimeError) as error:  # MLX reports a full disk as a RuntimeError
        raise NoAccessError(
            f"cannot write {clean(str(target))}: {error}; free some space or name another folder."
        ) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
