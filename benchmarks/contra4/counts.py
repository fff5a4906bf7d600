"""Answer counts: right answers by condition and by table cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.contra4.constants import CONDITIONS
from benchmarks.failure_table import OUTCOMES, OutcomeReader
from benchmarks.stats.intervals import estimate, ratio, resample
from benchmarks.vocabulary import Estimate, Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

CellSelector = Callable[[AnswerKind], str | None]
"""A function from a kind of answer to its table cell, or None."""


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


def tally(answers: Answers, cells: tuple[str, ...], cell: CellSelector, read: OutcomeReader) -> Contra4Counts:
    """Return the counts of ``answers`` as read by ``read``; unknown conditions and cells are left out."""
    known = answers.mask(lambda kind: kind.condition in CONDITIONS)
    samples, sample = number_groups(answers.group[known])
    counts = np.zeros((samples, len(CONDITIONS), len(cells), 2), dtype=np.int64)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    cell_index = {name: i for i, name in enumerate(cells)}
    places = np.full((len(answers.kinds), 3), -1, dtype=np.int64)
    for number, (kind, size) in enumerate(zip(answers.kinds, answers.sizes.tolist(), strict=True)):
        if kind.condition in CONDITIONS:
            condition = CONDITIONS.index(kind.condition)
            outcome, right = read(kind)
            outcomes[condition, OUTCOMES.index(outcome)] += size
            column = cell_index.get(cell(kind) or "")
            if column is not None and outcome in ("labelled", "unparsed"):
                places[number] = condition, column, right
    condition_of, column_of, right_of = places[answers.kind[known]].T
    counted = condition_of >= 0
    place = sample[counted], condition_of[counted], column_of[counted]
    np.add.at(counts, place, np.column_stack([right_of[counted], np.ones_like(place[0])]))
    return Contra4Counts(cells, counts, outcomes)


def official_outcome(kind: AnswerKind) -> tuple[Outcome, bool]:
    """Return the outcome of answers as the published evaluation counts them, whatever the judge."""
    return kind.text_outcome, kind.reading.official
