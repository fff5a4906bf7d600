"""CMC-Bench's tables and metrics of a log's conflicts, and the labels of those that nobody can decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.cmc_bench.cmc_constants import LABELS, PAPER_CONDITIONS
from benchmarks.cmc_bench.cmc_metrics import LOWER_IS_BETTER, MAIN_METRICS
from benchmarks.cmc_bench.cmc_tables import NOTE_WRONG_IMAGE, share_columns
from benchmarks.cmc_bench.cmc_tables import tables as cmc_tables
from benchmarks.source_agreement import UNDECIDED
from benchmarks.tables.declared_tables import Grid, Layout, Sheets
from benchmarks.vocabulary import LabelMetrics, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    Array = NDArray[np.float64]

_NOTE = "The reference of a wrong source is what the readers of the build read in it alone, or what the log says it answers."


def _places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int]]:
    if kind.condition == UNDECIDED:
        yield from ((LABELS.index(label),) for label in labels)


_LAYOUT = Layout(
    UNDECIDED,
    "Label proportions where nobody knows which source is right",
    Grid((len(LABELS),), _places),
    share_columns("no labelled answer under undecided"),
    notes=(
        "Shares of the labels in conflicts whose right answer the log does not have. BOTH and ABSTAIN, which show the conflict, "
        "count as accurate.",
    ),
    chart="stacked",
)


def tables(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return CMC-Bench's tables, and the table ``undecided`` if there are conflicts without a right answer."""
    shared = [_with_own_notes(table) for table in cmc_tables(benchmark, runs, judge, resamples=resamples, seed=seed)]
    if not any(kind.condition == UNDECIDED for answers in runs.values() for kind in answers.kinds):
        return shared
    return [*shared, Sheets(benchmark, runs, judge, resamples, seed).table(_LAYOUT)]


def _with_own_notes(table: Table) -> Table:
    notes = tuple(_NOTE if note == NOTE_WRONG_IMAGE else note for note in table.notes)
    return replace(table, notes=notes)


def _of_paper(metric: Callable[[Array], Array], counts: Array) -> Array:
    """Return a metric over the paper's conditions, which come first; only the accuracy counts the undecided one."""
    return metric(counts[..., : len(PAPER_CONDITIONS), :])


LABEL_METRICS = LabelMetrics(
    (*PAPER_CONDITIONS, UNDECIDED),
    LABELS,
    {name: partial(_of_paper, metric) for name, metric in MAIN_METRICS.items()},
    lower_is_better=LOWER_IS_BETTER,
)
