"""UnderWay: what a worker has before its model, written where whoever finds the worker dead can read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.store.rows import PendingInstance
from benchmarks.base import Request, canonical_json
from benchmarks.errors import RashomonError
from benchmarks.untrusted.safe_files import open_descriptor, read_bytes, remove_file
from benchmarks.untrusted.safe_json import parse_json

_NAME = "under-way.json"
_LARGEST = 1 << 24


class InFlight:
    """The requests that are under way in one run; a context manager around the answering.

    They stand in a file beside the store, which is gone when the block is left in order. It is written in one call and not
    waited for: it has to survive the worker, not the machine. ``width`` is how many the worker has under way at most,
    ``engine`` what answers.
    """

    def __init__(self, folder: Path, width: int, engine: Mapping[str, Any]) -> None:
        self._folder = folder
        self._about = {"width": width, "engine": engine}
        self._size = 0
        self._fd: int | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a full disk is the store's to tell
            self._fd = open_descriptor(self._folder, _NAME, os.O_WRONLY | os.O_CREAT)
            os.ftruncate(self._fd, 0)
        self.note(())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
        if kind is None:
            forget(self._folder)

    def note(self, asked: Iterable[tuple[PendingInstance, Request]]) -> None:
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
    request, and instance id. None where it left nothing that can be read, or something else stands there."""
    try:
        found: dict[str, Any] = parse_json(read_bytes(folder, _NAME, limit=_LARGEST))
    except (OSError, ValueError, RashomonError):
        return None
    match found:
        case {"width": int(), "engine": dict(), "asked": [*rows]} if all(map(_is_row, rows)):
            return found
    return None


def _is_row(row: Any) -> bool:
    match row:
        case [int(), str(), int(), str(), str()]:
            return True
    return False


def forget(folder: Path) -> None:
    """Forget what an earlier worker left."""
    with suppress(FileNotFoundError):
        remove_file(folder, _NAME)
