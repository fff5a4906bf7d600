"""UnderWay: what a worker has before its model, written where whoever finds the worker dead can read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.store.rows import Pending
from benchmarks.base import Request, canonical_json
from benchmarks.outside_json import read_json_file

_NAME = "under-way.json"


class UnderWay:
    """The requests that are under way in one run; a context manager around the answering.

    They stand in a file beside the store, which is gone when the block is left in order. It is written in one call and not
    waited for: it has to survive the worker, not the machine. ``width`` is how many the worker has under way at most,
    ``engine`` what answers.
    """

    def __init__(self, folder: Path, width: int, engine: Mapping[str, Any]) -> None:
        self._path = folder / _NAME
        self._about = {"width": width, "engine": engine}
        self._size = 0
        self._fd: int | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a full disk is the store's to tell
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self.note(())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
        if kind is None:
            forget(self._path.parent)

    def note(self, asked: Iterable[tuple[Pending, Request]]) -> None:
        """These are under way from now on."""
        if self._fd is None:
            return
        rows = [[p.ordinal, p.instance.condition, r.step, r.digest, p.instance.id] for p, r in asked]
        text = canonical_json({**self._about, "asked": rows}).encode("utf-8", "backslashreplace")
        with suppress(OSError):
            os.pwrite(self._fd, text.ljust(self._size), 0)  # spaces over what is left of a longer one
        self._size = max(self._size, len(text))


def left_under_way(folder: Path) -> dict[str, Any] | None:
    """What a worker that died left under way: "width", "engine", and "asked" as rows of ordinal, condition, step, digest of the
    request, and instance id. None where it left nothing that can be read."""
    try:
        found = read_json_file(folder / _NAME)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def forget(folder: Path) -> None:
    """Forget what an earlier worker left."""
    (folder / _NAME).unlink(missing_ok=True)
