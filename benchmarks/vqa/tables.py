"""Tables of OK-VQA and GQA: CLASH's Table 15, and scores by type of question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.base import LabelMetrics
from benchmarks.failure_table import failures_table
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Estimate, Table
from benchmarks.vqa.constants import CONDITION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_SPREAD = (
    "± is the bootstrap standard deviation, intervals are 95% percentiles, over images, so that an image's questions stay "
    "together; the paper does not say what it resamples."
)
_COUNTED = "The whole answer is compared, as in the published scoring; an empty answer scores 0."
_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as 0."


def tables(
    runs: Mapping[str, Answers], judge: str, column: str, scores: Mapping[str, float], *, resamples: int, seed: int
) -> list[Table]:
    """Return the tables of these answers: main (Table 15), types, failures."""
    types = sorted({kind.strata.get("type", "") for answers in runs.values() for kind in answers.kinds} - {""})
    counts = {run: _counts(answers, judge, scores, types) for run, answers in runs.items()}
    values = np.array(list(scores.values()))
    rows, by_type = [], []
    for run, run_counts in counts.items():
        resampled = resample(run_counts, resamples, seed)
        rows.append((run, (_cell(run_counts.sum((0, 1)), resampled.sum(1), values),)))
        totals = run_counts.sum(0)
        by_type.append((run, tuple(_cell(totals[i], resampled[:, i], values) for i in range(len(types)))))
    notes = (_COUNTED, _SPREAD)
    return [
        Table("main", f"Accuracy on {column} (Table 15)", (column,), tuple(rows), notes, percent=True),
        Table("types", "Accuracy by type of question", tuple(types), tuple(by_type), notes, percent=True),
        failures_table(runs, judge, (CONDITION,), scope_note=_ENTERS),
    ]


def label_metrics(column: str, scores: Mapping[str, float]) -> LabelMetrics:
    """Return the mean score of the labels, as a metric that human labels can correct."""
    values = np.array(list(scores.values()))

    def mean(counts: Any) -> Any:
        return _mean(counts[..., 0, :], values)

    return LabelMetrics((CONDITION,), tuple(scores), {column: mean})


def _mean(counts: Counts, values: Counts) -> Counts:
    """Return the mean score of counts of labels, shape (..., labels); nan without any."""
    total = counts.sum(-1)
    mean: Counts = np.divide(counts @ values, total, out=np.full(np.shape(total), np.nan), where=np.asarray(total) > 0)
    return mean


def _counts(answers: Answers, judge: str, scores: Mapping[str, float], types: Sequence[str]) -> Counts:
    """Return the counts of labels by image and type, shape (images, types, labels)."""
    labels = list(scores)

    def cell(kind: AnswerKind) -> int:
        outcome, kind_type = kind.outcome(judge), kind.strata.get("type", "")
        if outcome not in ("labelled", "unparsed") or kind_type not in types:
            return -1
        label = kind.label(judge) if outcome == "labelled" else labels[-1]
        return types.index(kind_type) * len(labels) + labels.index(label) if label in labels else -1

    images, image = number_groups(answers.group)
    cells, size = answers.codes(cell), len(types) * len(labels)
    counted = cells >= 0
    totals = np.bincount(image[counted] * size + cells[counted], minlength=images * size)
    return totals.astype(np.float64).reshape(images, len(types), len(labels))


def _cell(counts: Counts, resampled: Counts, values: Counts) -> Estimate:
    replicates = _mean(resampled, values)
    cell = estimate(float(_mean(counts, values)), replicates, int(counts.sum()), reason="no labelled answer")
    return cell if cell.low is None else replace(cell, sd=float(np.nanstd(replicates)))
