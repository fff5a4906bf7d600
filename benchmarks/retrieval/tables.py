"""CMC-Bench's tables of a log's conflicts, and the labels of those that nobody can decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.cmc_bench.constants import LABELS
from benchmarks.cmc_bench.metrics import label_shares
from benchmarks.cmc_bench.tables import NOTE_WRONG_IMAGE
from benchmarks.cmc_bench.tables import tables as cmc_tables
from benchmarks.failure_table import failures_table
from benchmarks.retrieval.constants import CONDITIONS, UNDECIDED
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NOTE = "The reference of a wrong source is what the readers of the build read in it alone, or what the log says it answers."


def tables(runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return CMC-Bench's tables, and the table ``undecided`` if there are conflicts without a right answer."""
    shared = [_with_own_notes(table) for table in cmc_tables(runs, judge, resamples=resamples, seed=seed)]
    shared = [failures_table(runs, judge, CONDITIONS) if table.name == "failures" else table for table in shared]
    if not any(kind.condition == UNDECIDED for answers in runs.values() for kind in answers.kinds):
        return shared
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        counts = _undecided(answers, judge)
        totals, draws = counts.sum(0).astype(np.float64), resample(counts, resamples, seed)
        shares, drawn, n = label_shares(totals), label_shares(draws), int(totals.sum())
        cells = (
            estimate(float(shares[i]), drawn[:, i], n, reason="no labelled answer under undecided")
            for i in range(len(LABELS))
        )
        rows.append((run, tuple(cells)))
    notes = (
        "Shares of the labels in conflicts whose right answer the log does not have. BOTH and ABSTAIN, which show the conflict, "
        "count as accurate.",
    )
    title = "Label proportions where nobody knows which source is right"
    return [*shared, Table(UNDECIDED, title, LABELS, tuple(rows), notes, chart="stacked")]


def _with_own_notes(table: Table) -> Table:
    notes = tuple(_NOTE if note == NOTE_WRONG_IMAGE else note for note in table.notes)
    return replace(table, notes=notes)


def _undecided(answers: Answers, judge: str) -> NDArray[np.int32]:
    """Return one-hot counts of shape (examples, labels)."""

    def code(kind: AnswerKind) -> int:
        is_counted = kind.condition == UNDECIDED and kind.outcome(judge) == "labelled"
        return LABELS.index(kind.label(judge)) if is_counted else -1

    codes = answers.codes(code)
    labelled = codes >= 0
    examples, places = number_groups(answers.group[labelled])
    counts = np.zeros((examples, len(LABELS)), dtype=np.int32)
    counts[places, codes[labelled]] = 1
    return counts
