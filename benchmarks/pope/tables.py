"""CLASH's Table 14, and the figures that POPE itself reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Cell, Estimate, LabelMetrics, Record, Table
from benchmarks.failure_table import failures_table
from benchmarks.pope.parse_answer import official, read_yes_no
from benchmarks.pope.source import SETTINGS
from benchmarks.stats.intervals import estimate, resample
from benchmarks.text.answer_text import visible_answer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

Runs = Mapping[str, Sequence[Record]]
_Row = tuple[str, tuple[Cell, ...]]
_Said = Callable[[Record], str | None]
"""yes, no or neither; None for a record that is not counted."""

_ANSWERS = ("yes", "no")
_SAID = ("yes", "no", "neither")

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
    """Every table that the records fill: main, pope, official, failures."""

    def judged(record: Record) -> str | None:
        outcome = record.outcome(judge)
        if outcome == "unparsed":
            return "neither"
        gold = _gold(record)
        if outcome != "labelled" or gold is None:
            return None
        return gold if record.verdicts[judge].label == "CORRECT" else _said_wrongly(record, gold)

    drawn = {run: _drawn(records, judged, resamples, seed) for run, records in runs.items()}
    by_rule = {run: _drawn(records, _by_official_rule, resamples, seed) for run, records in runs.items()}
    notes = (_NOTE_SPREAD, _NOTE_NEITHER)
    main = tuple((run, tuple(_cell(accuracy, *of, i) for i in range(len(SETTINGS)))) for run, of in drawn.items())
    return [
        Table("main", "Accuracy by setting (Table 14)", _titles(), main, notes, percent=True),
        Table("pope", "POPE's figures by setting", tuple(FIGURES), _figures(drawn), notes, percent=True),
        Table(
            "official",
            "POPE's figures as its published evaluation reads answers",
            tuple(FIGURES)[:-1],
            tuple((row, cells[:-1]) for row, cells in _figures(by_rule)),
            (_NOTE_SPREAD, _NOTE_OFFICIAL),
            percent=True,
            judges=(),
        ),
        failures_table(runs, judge, SETTINGS, enters=_ENTERS),
    ]


# Each takes counts of shape (..., gold: yes no, said: yes no neither) and returns shape (...); undefined is nan.


def accuracy(counts: Counts) -> Counts:
    """The share of answers that say what is right."""
    return _ratio(counts[..., 0, 0] + counts[..., 1, 1], counts.sum((-2, -1)))


def precision(counts: Counts) -> Counts:
    """The share of the answers that say yes for which it is right."""
    return _ratio(counts[..., 0, 0], counts[..., 0].sum(-1))


def recall(counts: Counts) -> Counts:
    """The share of the questions whose answer is yes that are answered so."""
    return _ratio(counts[..., 0, 0], counts[..., 0, :].sum(-1))


def f1(counts: Counts) -> Counts:
    """The harmonic mean of precision and recall; 0 where no yes is right."""
    wrong = counts[..., 1, 0] + counts[..., 0, 1] + counts[..., 0, 2]
    return _ratio(2 * counts[..., 0, 0], 2 * counts[..., 0, 0] + wrong)


def yes_ratio(counts: Counts) -> Counts:
    """The share of answers that say yes."""
    return _ratio(counts[..., 0].sum(-1), counts.sum((-2, -1)))


def neither(counts: Counts) -> Counts:
    """The share of answers that say neither yes nor no."""
    return _ratio(counts[..., 2].sum(-1), counts.sum((-2, -1)))


FIGURES: Mapping[str, Callable[[Counts], Counts]] = {
    "Accuracy": accuracy,
    "Precision": precision,
    "Recall": recall,
    "F1": f1,
    "Yes ratio": yes_ratio,
    "Neither": neither,
}


def figures(labels: tuple[str, ...]) -> LabelMetrics:
    """Table 14's columns as shares of the first of ``labels``, the right one; an empty answer is the second."""

    def of(setting: int) -> Callable[[Counts], Counts]:
        return lambda counts: _ratio(counts[..., setting, 0], counts[..., setting, :].sum(-1))

    each = {title: of(i) for i, title in enumerate(_titles())}
    return LabelMetrics(SETTINGS, labels, each, unparsed=labels[1])


def _titles() -> tuple[str, ...]:
    return tuple(setting.capitalize() for setting in SETTINGS)


def _ratio(part: Counts, whole: Counts) -> Counts:
    made: Counts = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)
    return made


def _gold(record: Record) -> str | None:
    answers = record.instance.references.get("answer", ())
    return answers[0] if answers and answers[0] in _ANSWERS else None


def _said_wrongly(record: Record, gold: str) -> str:
    """What an answer says that is not the right one: the other word, or neither. A label alone does not tell which."""
    said, _ = read_yes_no(visible_answer(record.answer.text)) if record.answer else (None, "")
    return "neither" if said is None else _ANSWERS[1 - _ANSWERS.index(gold)]


def _by_official_rule(record: Record) -> str | None:
    if record.answer is None or record.answer.finish_reason == "error":
        return None
    return official(visible_answer(record.answer.text))


def _drawn(records: Sequence[Record], said: _Said, resamples: int, seed: int) -> tuple[Counts, Counts]:
    """The counts, of shape (settings, gold, said), and their resamples, of shape (resamples, settings, gold, said)."""
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in records))}
    counts = np.zeros((len(groups), len(SETTINGS), len(_ANSWERS), len(_SAID)))
    for record in records:
        gold, answer = _gold(record), said(record)
        if gold is not None and answer is not None and record.instance.condition in SETTINGS:
            place = SETTINGS.index(record.instance.condition), _ANSWERS.index(gold), _SAID.index(answer)
            counts[(groups[record.instance.group], *place)] += 1
    return counts.sum(0), resample(counts, resamples, seed)


def _cell(figure: Callable[[Counts], Counts], totals: Counts, draws: Counts, setting: int) -> Estimate:
    whole = totals[setting]
    replicates = figure(draws[:, setting])
    n = int(whole.sum())
    reason = "no labelled answer" if not n else "no answer, or no right answer, is yes"
    made = estimate(float(figure(whole)), replicates, n, reason=reason)
    return made if made.low is None else replace(made, sd=float(np.nanstd(replicates)))


def _figures(drawn: Mapping[str, tuple[Counts, Counts]]) -> tuple[_Row, ...]:
    return tuple(
        (f"{run} / {setting}", tuple(_cell(figure, *of, i) for figure in FIGURES.values()))
        for run, of in drawn.items()
        for i, setting in enumerate(SETTINGS)
    )
