"""Tables of POPE: CLASH's Table 14, and the metrics that POPE reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import LabelMetrics
from benchmarks.failure_table import failures_table
from benchmarks.pope.parse_answer import parse_official, read_yes_no
from benchmarks.pope.source import SETTINGS
from benchmarks.stats.intervals import estimate, resample
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Cell, Estimate, Record, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

Runs = Mapping[str, Sequence[Record]]
_Row = tuple[str, tuple[Cell, ...]]
_Parser = Callable[[Record], str | None]
"""A function from a record to yes, no or neither; None excludes the record."""

_ANSWERS = ("yes", "no")
_PARSED = ("yes", "no", "neither")

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
    """Return the tables of these records: main, pope, official, failures."""

    def judged(record: Record) -> str | None:
        outcome = record.outcome(judge)
        if outcome == "unparsed":
            return "neither"
        gold = _gold(record)
        if outcome != "labelled" or gold is None:
            return None
        return gold if record.verdicts[judge].label == "CORRECT" else _wrong_answer(record, gold)

    judged_counts = {run: _counts(records, judged, resamples, seed) for run, records in runs.items()}
    official_counts = {run: _counts(records, _by_official_rule, resamples, seed) for run, records in runs.items()}
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
    """Return Table 14's columns as shares of the first of ``labels``, the correct one; an empty answer counts as the second."""

    def share(setting: int) -> Callable[[Counts], Counts]:
        return lambda counts: _ratio(counts[..., setting, 0], counts[..., setting, :].sum(-1))

    columns = {title: share(i) for i, title in enumerate(_titles())}
    return LabelMetrics(SETTINGS, labels, columns, unparsed=labels[1])


def _titles() -> tuple[str, ...]:
    return tuple(setting.capitalize() for setting in SETTINGS)


def _ratio(part: Counts, whole: Counts) -> Counts:
    quotient: Counts = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)
    return quotient


def _gold(record: Record) -> str | None:
    answers = record.instance.references.get("answer", ())
    return answers[0] if answers and answers[0] in _ANSWERS else None


def _wrong_answer(record: Record, gold: str) -> str:
    """Return what a wrong answer says, the other word or neither, which its label does not tell."""
    answer, _ = read_yes_no(visible_answer(record.answer.text)) if record.answer else (None, "")
    return "neither" if answer is None else _ANSWERS[1 - _ANSWERS.index(gold)]


def _by_official_rule(record: Record) -> str | None:
    if record.answer is None or record.answer.finish_reason == "error":
        return None
    return parse_official(visible_answer(record.answer.text))


def _counts(records: Sequence[Record], parse: _Parser, resamples: int, seed: int) -> tuple[Counts, Counts]:
    """Return the counts, shape (settings, gold, answer), and their resamples, shape (resamples, settings, gold, answer)."""
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in records))}
    counts = np.zeros((len(groups), len(SETTINGS), len(_ANSWERS), len(_PARSED)))
    for record in records:
        gold, answer = _gold(record), parse(record)
        if gold is not None and answer is not None and record.instance.condition in SETTINGS:
            place = SETTINGS.index(record.instance.condition), _ANSWERS.index(gold), _PARSED.index(answer)
            counts[(groups[record.instance.group], *place)] += 1
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
