"""Records counted: which answers are right, by condition and by a cell of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Estimate, Outcome, Record
from benchmarks.contra4.constants import CONDITIONS
from benchmarks.contra4.parse_answer import contains
from benchmarks.failure_table import OUTCOMES, Read
from benchmarks.stats.intervals import estimate, ratio, resample
from benchmarks.text.answer_text import outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cell = Callable[[Record], str | None]
"""The cell of a table that a record belongs to; None: none of them."""


@dataclass(frozen=True)
class Contra4Counts:
    """One run as it is read.

    ``counts`` has shape (samples, conditions, cells, 2): answers that are right, and answers. Labelled and unparsed answers
    are counted, an unparsed one as not right, as the paper's accuracy counts it. ``outcomes`` counts the records by
    ``failures.OUTCOMES``, shape (conditions, outcomes).
    """

    cells: tuple[str, ...]
    counts: NDArray[np.int64]
    outcomes: NDArray[np.int64]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Those that anything was asked under."""
        return tuple(name for i, name in enumerate(CONDITIONS) if self.outcomes[i].any())

    def accuracies(
        self, condition: str, columns: Sequence[Sequence[str]], resamples: int, seed: int
    ) -> tuple[Estimate, ...]:
        """The share of right answers over each column's cells together, with its interval by the bootstrap over samples."""
        at = CONDITIONS.index(condition)
        places = [[self.cells.index(cell) for cell in cells] for cells in columns]
        counted = np.stack([self.counts[:, at, place].sum(1) for place in places], 1)
        drawn = resample(counted[counted[..., 1].any(1)], resamples, seed)
        totals = counted.sum(0).astype(np.float64)
        return tuple(
            estimate(
                float(ratio(totals[i, 0], totals[i, 1])),
                ratio(drawn[:, i, 0], drawn[:, i, 1]),
                int(totals[i, 1]),
                reason="no such question is answered",
            )
            for i in range(len(columns))
        )


def tally(records: Sequence[Record], cells: tuple[str, ...], cell: Cell, read: Read) -> Contra4Counts:
    """``records`` counted by ``read``; those of an unknown condition are left out, as are those of no cell from ``counts``."""
    known = [record for record in records if record.instance.condition in CONDITIONS]
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in known))}
    counts = np.zeros((len(groups), len(CONDITIONS), len(cells), 2), dtype=np.int64)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    at = {name: i for i, name in enumerate(cells)}
    for record in known:
        condition = CONDITIONS.index(record.instance.condition)
        outcome, right = read(record)
        outcomes[condition, OUTCOMES.index(outcome)] += 1
        place = at.get(cell(record) or "")
        if place is not None and outcome in ("labelled", "unparsed"):
            counts[groups[record.instance.group], condition, place] += (right, 1)
    return Contra4Counts(cells, counts, outcomes)


def officially(record: Record) -> tuple[Outcome, bool]:
    """As the published evaluation counts, whoever judged."""
    found = outcome(record)
    if record.answer is None or found != "labelled":
        return found, False
    return found, contains(record.answer.text, (*record.instance.references.get("gold", ()), "")[0])
