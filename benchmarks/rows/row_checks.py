"""Results of checking a user's own rows, row by row, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.lazy_sequence import LazySequence
from benchmarks.rows.closest_file import NearFiles
from benchmarks.rows.files import MISSING_IMAGE, Loader, SkippedRow, file_name
from benchmarks.rows.reader_types import shortened
from benchmarks.rows.record_file import RecordFile
from benchmarks.vocabulary import Instance, Media

LEFT_OUT = "; not "
"""The beginning of the end of a usable row's message: the conditions that it does not have, and why."""

_LONGEST = 1_000
"""The maximum number of characters of a message."""


@dataclass(frozen=True)
class RowPreview:
    """The instances built from a row under the conditions that combine sources, and loaders of their media."""

    instances: tuple[Instance, ...] = ()
    media: Mapping[Media, Loader] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """The result of checking one row: its location, its usability, and a message.

    ``message`` says what is built from the row or what is wrong with it, and ``fix`` how to correct it. ``preview`` constructs
    what is built from it; that of an unusable row is empty. ``warning`` says what is doubtful in a usable row.
    """

    where: str
    usable: bool
    message: str
    fix: str = ""
    preview: Callable[[], RowPreview] = field(default=RowPreview, compare=False)
    warning: str = ""


class RowChecks(LazySequence[RowCheck]):
    """The checks of all rows in the file's order, in a temporary file; memory holds some 20 bytes of each.

    ``preview`` returns the preview of the example with a number.
    """

    def __init__(self, preview: Callable[[int], RowPreview]) -> None:
        self._records = RecordFile()
        self._preview = preview
        self.usable = 0
        self.warnings = 0

    def append(
        self, where: str, usable: bool, message: str, fix: str = "", example: int | None = None, warning: str = ""
    ) -> None:
        """Add the check of a row, with the number of the example that it becomes. Long texts lose their ends."""
        message, fix, warning = (shortened(text, _LONGEST) for text in (message, fix, warning))
        self._records.append([where, usable, message, fix, example, warning])
        self.usable += usable
        self.warnings += bool(warning)

    def warning_remarks(self) -> list[str]:
        """Return a remark with the number of rows that have a warning, if there are any."""
        return [f"{self.warnings} with a warning"] if self.warnings else []

    def __len__(self) -> int:
        return len(self._records)

    def item(self, place: int) -> RowCheck:
        where, usable, message, fix, example, warning = self._records[place]
        preview = RowPreview if example is None else partial(self._preview, example)
        return RowCheck(where, usable, message, fix, preview, warning)


@dataclass(frozen=True)
class TableCheck:
    """The checks of all rows in the file's order, and remarks on the file."""

    rows: RowChecks
    remarks: Sequence[str] = ()

    @property
    def usable(self) -> int:
        """The number of usable rows."""
        return self.rows.usable


def fix_with_file(fix: str, left_out: SkippedRow, near: NearFiles) -> str:
    """Return how to fix a row, with the file it names, relative to the table's folder, and the one that it may mean."""
    if not left_out.place:
        return fix
    place = near.relative(left_out.place)
    if left_out.reason == MISSING_IMAGE and (match := near.nearest(place)):
        return f"did you mean {match}? The row names {place}"
    return f"{fix}: {place}"


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row as it is read: its place, its content or the reason why it is left out, and whether it is used."""

    where: str
    text: str
    usable: bool = True

    @classmethod
    def left_out(cls, row: SkippedRow) -> ReadRow:
        """Return a row that cannot be read, with the reason."""
        return cls(row.row, f"{row.reason}: {row.place}" if row.place else row.reason, usable=False)

    @classmethod
    def of(
        cls, where: str, texts: tuple[str, str], images: Iterable[Loader], passages: Iterable[str], *, usable: bool
    ) -> ReadRow:
        """Return a row with the beginnings of its question, its answer and its passages, and the names of its images."""
        names = (file_name(load) or "a picture in the cell" for load in images)
        parts = [texts[0] or "no question", texts[1] or "no answer", *names, *passages]
        return cls(where, " │ ".join(shortened(" ".join(part.split()), 80) for part in parts), usable)
