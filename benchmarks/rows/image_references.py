"""Pictures that a row names by the index of another row, as VLMEvalKit's tables do where rows share one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.rows.cell_images import SHORTEST_BASE64
from benchmarks.rows.files import RawRow, SkippedRow
from benchmarks.rows.nested_keys import plain_names
from benchmarks.rows.record_file import RecordFile

_LONGEST_INDEX = SHORTEST_BASE64 - 1
"""VLMEvalKit takes shorter cells for the index of another row."""


class ImageReferences:
    """The pictures of a file by the index of their row, in a temporary file; read when the first row refers to another."""

    def __init__(self, rows: Callable[[], Iterable[RawRow | SkippedRow]]) -> None:
        self._rows = rows
        self._stored = RecordFile()
        self._places: dict[str, tuple[int, int]] | None = None

    def resolved(self, value: object) -> object:
        """Return the picture of the row that a short ``value`` names by its index; another value as it is."""
        text = str(value).strip()
        if isinstance(value, list | dict) or len(text) > _LONGEST_INDEX:
            return value
        if self._places is None:
            self._places = dict(self._pictures())
        place = self._places.get(text)
        return self._stored.read_bytes(*place).decode() if place is not None else value

    def _pictures(self) -> Iterable[tuple[str, tuple[int, int]]]:
        for row in self._rows():
            if not isinstance(row, RawRow):
                continue
            fields = plain_names(row.fields)
            image = fields.get("image")
            if isinstance(image, str) and len(image.strip()) > _LONGEST_INDEX:
                yield str(fields.get("index")).strip(), self._stored.add_bytes(image.encode("utf-8", "replace"))
