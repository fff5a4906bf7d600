"""Tables of POPE: CLASH's Table 14, and the metrics that POPE reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.base import LabelMetrics
from benchmarks.failure_table import failures_table
from benchmarks.pope.reading import ANSWERS
from benchmarks.pope.source import SETTINGS
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

Runs = Mapping[str, Answers]
_Row = tuple[str, tuple[Cell, ...]]
_Parser = Callable[[AnswerKind], str | None]
"""A function from a kind of answer to yes, no or neither; None excludes it."""

_PARSED = ("yes", "no", "neither")
_SHAPE = len(SETTINGS), len(ANSWERS), len(_PARSED)

_NOTE_SPREAD = (
    "± is the bootstrap standard deviation, intervals are 95% percentiles, over images, so that an image's questions stay "
    "together; the paper does not say what it resamples."
)
_NOTE_NEITHER = (
    "An answer that says neither yes nor no counts as not correct: Table 14's 32 to 35% on rows that are half yes and half no "
    "can hardly come about otherwise (our reading)."
)
_ENTERS = (
    "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as neither."
)
_NOTE_OFFICIAL = (
    "POPE's published evaluation reads every answer without No, no or not before its first full stop as a yes, also one that "
    "answers something else."
)


def tables(runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return the tables of these answers: main, pope, official, failures."""

    def judged(kind: AnswerKind) -> str | None:
        outcome, gold = kind.outcome(judge), kind.reading.gold
        if outcome == "unparsed":
            return "neither"
        if outcome != "labelled" or gold is None:
            return None
        if kind.label(judge) == "CORRECT":
            return str(gold)
        # A wrong answer says the other word or neither, which its label does not tell.
        return "neither" if kind.reading.stated == "neither" else ANSWERS[1 - ANSWERS.index(gold)]

    def official(kind: AnswerKind) -> str | None:
        stated: str | None = kind.reading.official
        return stated

    judged_counts = {run: _counts(answers, judged, resamples, seed) for run, answers in runs.items()}
    official_counts = {run: _counts(answers, official, resamples, seed) for run, answers in runs.items()}
    notes = (_NOTE_SPREAD, _NOTE_NEITHER)
    main = tuple(
        (run, tuple(_cell(accuracy, *counts, i) for i in range(len(SETTINGS)))) for run, counts in judged_counts.items()
    )
    return [
        Table("main", "Accuracy by setting (Table 14)", _titles(), main, notes, percent=True),
        Table("pope", "POPE's figures by setting", tuple(METRICS), _metric_rows(judged_counts), notes, percent=True),
        Table(
            "official",
            "POPE's figures as its published evaluation reads answers",
            tuple(METRICS)[:-1],
            tuple((row, cells[:-1]) for row, cells in _metric_rows(official_counts)),
            (_NOTE_SPREAD, _NOTE_OFFICIAL),
            percent=True,
            judges=(),
        ),
        failures_table(runs, judge, SETTINGS, scope_note=_ENTERS),
    ]


# Each metric takes counts of shape (..., gold: yes no, answer: yes no neither) and returns shape (...); undefined is nan.


def accuracy(counts: Counts) -> Counts:
    """Return the share of correct answers."""
    return _ratio(counts[..., 0, 0] + counts[..., 1, 1], counts.sum((-2, -1)))


def precision(counts: Counts) -> Counts:
    """Return the share of correct answers among those that say yes."""
    return _ratio(counts[..., 0, 0], counts[..., 0].sum(-1))


def recall(counts: Counts) -> Counts:
    """Return the share of yes answers among the questions whose correct answer is yes."""
    return _ratio(counts[..., 0, 0], counts[..., 0, :].sum(-1))


def f1(counts: Counts) -> Counts:
    """Return the harmonic mean of precision and recall; 0 if no yes is correct."""
    wrong_count = counts[..., 1, 0] + counts[..., 0, 1] + counts[..., 0, 2]
    return _ratio(2 * counts[..., 0, 0], 2 * counts[..., 0, 0] + wrong_count)


def yes_ratio(counts: Counts) -> Counts:
    """Return the share of answers that say yes."""
    return _ratio(counts[..., 0].sum(-1), counts.sum((-2, -1)))


def neither(counts: Counts) -> Counts:
    """Return the share of answers that say neither yes nor no."""
    return _ratio(counts[..., 2].sum(-1), counts.sum((-2, -1)))


METRICS: Mapping[str, Callable[[Counts], Counts]] = {
    "Accuracy": accuracy,
    "Precision": precision,
    "Recall": recall,
    "F1": f1,
    "Yes ratio": yes_ratio,
    "Neither": neither,
}


def label_metrics(labels: tuple[str, ...]) -> LabelMetrics:
    """Return Table 14's columns as shares of the first of ``labels``, the correct one."""

    def share(setting: int) -> Callable[[Counts], Counts]:
        return lambda counts: _ratio(counts[..., setting, 0], counts[..., setting, :].sum(-1))

    columns = {title: share(i) for i, title in enumerate(_titles())}
    return LabelMetrics(SETTINGS, labels, columns)


def _titles() -> tuple[str, ...]:
    return tuple(setting.capitalize() for setting in SETTINGS)


def _ratio(part: Counts, whole: Counts) -> Counts:
    quotient: Counts = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)
    return quotient


def _counts(answers: Answers, parse: _Parser, resamples: int, seed: int) -> tuple[Counts, Counts]:
    """Return the counts, shape (settings, gold, answer), and their resamples, shape (resamples, settings, gold, answer)."""

    def cell(kind: AnswerKind) -> int:
        gold, answer = kind.reading.gold, parse(kind)
        if gold is None or answer is None or kind.condition not in SETTINGS:
            return -1
        place = SETTINGS.index(kind.condition), ANSWERS.index(gold), _PARSED.index(answer)
        return int(np.ravel_multi_index(place, _SHAPE))

    # Images without a counted answer are drawn too.
    images, image = number_groups(answers.group)
    cells, size = answers.codes(cell), math.prod(_SHAPE)
    counted = cells >= 0
    totals = np.bincount(image[counted] * size + cells[counted], minlength=images * size)
    counts = totals.astype(np.float64).reshape(images, *_SHAPE)
    return counts.sum(0), resample(counts, resamples, seed)


def _cell(metric: Callable[[Counts], Counts], totals: Counts, resampled: Counts, setting: int) -> Estimate:
    counts = totals[setting]
    replicates = metric(resampled[:, setting])
    n = int(counts.sum())
    reason = "no labelled answer" if not n else "no answer, or no right answer, is yes"
    cell = estimate(float(metric(counts)), replicates, n, reason=reason)
    return cell if cell.low is None else replace(cell, sd=float(np.nanstd(replicates)))


def _metric_rows(counts_by_run: Mapping[str, tuple[Counts, Counts]]) -> tuple[_Row, ...]:
    return tuple(
        (f"{run} / {setting}", tuple(_cell(metric, *counts, i) for metric in METRICS.values()))
        for run, counts in counts_by_run.items()
        for i, setting in enumerate(SETTINGS)
    )
