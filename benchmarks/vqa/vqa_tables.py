"""Tables of OK-VQA and GQA: CLASH's Table 15, and scores by type of question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.failure_table import failures_table
from benchmarks.stats.intervals import ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Sheets
from benchmarks.vocabulary import LabelMetrics, Table
from benchmarks.vqa.vqa_constants import CONDITION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_SPREAD = (
    "± is the bootstrap standard deviation, intervals are 95%, both over images, so that an image's questions stay together; the "
    "paper does not say what it resamples."
)
_COUNTED = "The whole answer is compared, as in the published scoring; an empty answer scores 0."
_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as 0."


def tables(
    benchmark: Benchmark,
    runs: Mapping[str, Answers],
    judge: str,
    column: str,
    scores: Mapping[str, float],
    *,
    resamples: int,
    seed: int,
) -> list[Table]:
    """Return the tables of these answers: main (Table 15), types, failures."""
    types = sorted({kind.strata.get("type", "") for answers in runs.values() for kind in answers.kinds} - {""})
    grid, values = _grid(types, [*scores]), np.array(list(scores.values()))
    overall = {column: Column(lambda counts: _mean(counts.sum(-2), values))}
    by_type = {name: _of_type(place, values) for place, name in enumerate(types)}
    notes = (_COUNTED, _SPREAD)
    layouts = (
        Layout("main", f"Accuracy on {column} (Table 15)", grid, overall, notes=notes, spread=True, percent=True),
        Layout("types", "Accuracy by type of question", grid, by_type, notes=notes, spread=True, percent=True),
    )
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    return [*map(sheets.table, layouts), failures_table(runs, judge, (CONDITION,), scope_note=_ENTERS)]


def label_metrics(column: str, scores: Mapping[str, float]) -> LabelMetrics:
    """Return the mean score of the labels, as a metric that human labels can correct."""
    values = np.array(list(scores.values()))

    def mean(counts: Any) -> Any:
        return _mean(counts[..., 0, :], values)

    return LabelMetrics((CONDITION,), tuple(scores), {column: mean})


def _mean(counts: Counts, values: Counts) -> Counts:
    """Return the mean score of counts of labels, shape (..., labels); nan without any."""
    return ratio(counts @ values, counts.sum(-1))


def _of_type(place: int, values: Counts) -> Column:
    return Column(lambda counts: _mean(counts[..., place, :], values), lambda totals: totals[place].sum())


def _grid(types: Sequence[str], labels: Sequence[str]) -> Grid:
    """Return the grid of the labels of each type of question; images without a counted answer are drawn too."""

    def places(kind: AnswerKind, counted: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        if (name := kind.strata.get("type")) in types:
            yield from ((types.index(name), labels.index(label)) for label in counted if label in labels)

    return Grid((len(types), len(labels)), places, every_example=True)
