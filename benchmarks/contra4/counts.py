"""Answer counts: right answers by condition and by table cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.contra4.constants import CONDITIONS
from benchmarks.contra4.parse_answer import contains_answer
from benchmarks.failure_table import OUTCOMES, OutcomeReader
from benchmarks.stats.intervals import estimate, ratio, resample
from benchmarks.text.answer_text import answer_outcome
from benchmarks.vocabulary import Estimate, Outcome, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

CellSelector = Callable[[Record], str | None]
"""A function from a record to its table cell, or None."""


@dataclass(frozen=True)
class Contra4Counts:
    """The counts of one run under one way of reading its answers.

    ``counts`` has shape (samples, conditions, cells, 2): answers that are right, and answers. Labelled and unparsed answers
    are counted, an unparsed one as not right, as the paper's accuracy counts it. ``outcomes`` counts the records by
    ``OUTCOMES``, shape (conditions, outcomes).
    """

    cells: tuple[str, ...]
    counts: NDArray[np.int64]
    outcomes: NDArray[np.int64]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that have records."""
        return tuple(name for i, name in enumerate(CONDITIONS) if self.outcomes[i].any())

    def accuracies(
        self, condition: str, columns: Sequence[Sequence[str]], resamples: int, seed: int
    ) -> tuple[Estimate, ...]:
        """Return the share of right answers in each column's cells, with a bootstrap interval over samples."""
        row = CONDITIONS.index(condition)
        places = [[self.cells.index(cell) for cell in cells] for cells in columns]
        per_sample = np.stack([self.counts[:, row, columns_of_cell].sum(1) for columns_of_cell in places], 1)
        resampled = resample(per_sample[per_sample[..., 1].any(1)], resamples, seed)
        totals = per_sample.sum(0).astype(np.float64)
        return tuple(
            estimate(
                float(ratio(totals[i, 0], totals[i, 1])),
                ratio(resampled[:, i, 0], resampled[:, i, 1]),
                int(totals[i, 1]),
                reason="no such question is answered",
            )
            for i in range(len(columns))
        )


def tally(records: Sequence[Record], cells: tuple[str, ...], cell: CellSelector, read: OutcomeReader) -> Contra4Counts:
    """Return the counts of ``records`` as read by ``read``; unknown conditions and cells are left out."""
    known = [record for record in records if record.instance.condition in CONDITIONS]
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in known))}
    counts = np.zeros((len(groups), len(CONDITIONS), len(cells), 2), dtype=np.int64)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    cell_index = {name: i for i, name in enumerate(cells)}
    for record in known:
        condition = CONDITIONS.index(record.instance.condition)
        outcome, right = read(record)
        outcomes[condition, OUTCOMES.index(outcome)] += 1
        column = cell_index.get(cell(record) or "")
        if column is not None and outcome in ("labelled", "unparsed"):
            counts[groups[record.instance.group], condition, column] += (right, 1)
    return Contra4Counts(cells, counts, outcomes)


def official_outcome(record: Record) -> tuple[Outcome, bool]:
    """Return the record's outcome as the published evaluation counts it, whatever the judge."""
    record_outcome = answer_outcome(record)
    if record.answer is None or record_outcome != "labelled":
        return record_outcome, False
    return record_outcome, contains_answer(record.answer.text, (*record.instance.references.get("gold", ()), "")[0])
