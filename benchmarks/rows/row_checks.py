"""Results of checking a user's own rows, row by row, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.rows.files import Loader
from benchmarks.vocabulary import Instance, Media


@dataclass(frozen=True, slots=True)
class RowCheck:
    """The result of checking one row: its location, its usability, and a message.

    ``message`` says what is built from the row or what is wrong with it, and ``fix`` how to correct it. ``instances`` are the
    instances built from it under the conditions that combine sources; an unusable row has none.
    """

    where: str
    usable: bool
    message: str
    fix: str = ""
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class TableCheck:
    """The checks of all rows in the file's order, remarks on the file, and loaders of the instances' media."""

    rows: Sequence[RowCheck]
    remarks: Sequence[str] = ()
    media: Mapping[Media, Loader] = field(default_factory=dict)

    @property
    def usable(self) -> int:
        """The number of usable rows."""
        return sum(row.usable for row in self.rows)
