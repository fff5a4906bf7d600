"""Record of the requests in flight, which survives the worker and is read if the worker dies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.store.store_types import PendingInstance
from benchmarks.errors import RashomonError
from benchmarks.untrusted.safe_files import open_descriptor, read_bytes, remove_file
from benchmarks.untrusted.safe_json import parse_json
from benchmarks.vocabulary import Request, canonical_json

_NAME = "under-way.json"
_LARGEST = 1 << 24


class InFlight:
    """The requests in flight in one run; a context manager around the answering.

    They are kept in a file next to the store, which is removed when the block ends without an error. It is written in one call
    and not synchronised to disk, since it has to survive the worker, not the machine. ``width`` is the most requests that the
    worker has in flight, ``engine`` describes what answers, and ``first`` are those in flight at the beginning.
    """

    def __init__(
        self,
        folder: Path,
        width: int,
        engine: Mapping[str, Any],
        first: Sequence[tuple[PendingInstance, Request]] = (),
    ) -> None:
        self._folder = folder
        self._about = {"width": width, "engine": engine}
        self._size = 0
        self._fd: int | None = None
        self._first = first

    def __enter__(self) -> Self:
        with suppress(OSError):  # the store reports a full disk
            self._fd = open_descriptor(self._folder, _NAME, os.O_WRONLY | os.O_CREAT)
            os.ftruncate(self._fd, 0)
        self.note(self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
        if kind is None:
            remove_leftover(self._folder)

    def note(self, requests: Iterable[tuple[PendingInstance, Request]]) -> None:
        """Record ``requests`` as those in flight from now on."""
        if self._fd is None:
            return
        rows = [[p.ordinal, p.instance.condition, r.step, r.digest, p.instance.id] for p, r in requests]
        text = canonical_json({**self._about, "asked": rows}).encode("utf-8", "backslashreplace")
        with suppress(OSError):
            os.pwrite(self._fd, text.ljust(self._size), 0)  # spaces overwrite the end of a longer record
        self._size = max(self._size, len(text))


def read_leftover(folder: Path) -> dict[str, Any] | None:
    """Read the record that a dead worker left in ``folder``; None if there is no valid one.

    It has "width", "engine", and "asked": rows of ordinal, condition, step, digest of the request, and instance id.
    """
    try:
        content: dict[str, Any] = parse_json(read_bytes(folder, _NAME, limit=_LARGEST))
    except (OSError, ValueError, RashomonError):
        return None
    match content:
        case {"width": int(), "engine": dict(), "asked": [*rows]} if all(map(_is_row, rows)):
            return content
    return None


def _is_row(row: Any) -> bool:
    match row:
        case [int(), str(), int(), str(), str()]:
            return True
    return False


def remove_leftover(folder: Path) -> None:
    """Remove the record of an earlier worker."""
    with suppress(FileNotFoundError):
        remove_file(folder, _NAME)
