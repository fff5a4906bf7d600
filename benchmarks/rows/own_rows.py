"""What a user's own rows become: row by row, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.base import Instance, Media
from benchmarks.rows.files import Loader


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One row: ``where`` it stands, whether something can be made of it, ``told`` what or what is wrong, how to ``mend`` it.

    ``instances`` are what it is asked as: its conditions in which sources meet; empty where nothing is made of it.
    """

    where: str
    usable: bool
    told: str
    mend: str = ""
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class TableCheck:
    """All rows in the file's order, what is to be said of the file, and what gives the media of the instances."""

    rows: Sequence[RowCheck]
    remarks: Sequence[str] = ()
    media: Mapping[Media, Loader] = field(default_factory=dict)

    @property
    def usable(self) -> int:
        """How many rows something is made of."""
        return sum(row.usable for row in self.rows)
