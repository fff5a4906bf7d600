"""Tables of POPE: CLASH's Table 14, and the metrics that POPE reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.failure_table import failures_table
from benchmarks.pope.pope_constants import SETTINGS
from benchmarks.pope.pope_reading import ANSWERS
from benchmarks.stats.intervals import ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets
from benchmarks.vocabulary import LabelMetrics, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

_Reader = Callable[[AnswerKind, tuple[str, ...]], str | None]
"""A function from a kind of answer, and the labels that it counts as, to yes, no or neither; None if it does not count."""

_READ = ("yes", "no", "neither")

_NOTE_SPREAD = (
    "± is the bootstrap standard deviation, intervals are 95%, both over images, so that an image's questions stay together; the "
    "paper does not say what it resamples."
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


# Each metric takes counts of shape (..., gold: yes no, answer: yes no neither) and returns shape (...); undefined is nan.


def accuracy(counts: Counts) -> Counts:
    """Return the share of correct answers."""
    return ratio(counts[..., 0, 0] + counts[..., 1, 1], counts.sum((-2, -1)))


def precision(counts: Counts) -> Counts:
    """Return the share of correct answers among those that say yes."""
    return ratio(counts[..., 0, 0], counts[..., 0].sum(-1))


def recall(counts: Counts) -> Counts:
    """Return the share of yes answers among the questions whose correct answer is yes."""
    return ratio(counts[..., 0, 0], counts[..., 0, :].sum(-1))


def f1(counts: Counts) -> Counts:
    """Return the harmonic mean of precision and recall; 0 if no yes is correct."""
    wrong_count = counts[..., 1, 0] + counts[..., 0, 1] + counts[..., 0, 2]
    return ratio(2 * counts[..., 0, 0], 2 * counts[..., 0, 0] + wrong_count)


def yes_ratio(counts: Counts) -> Counts:
    """Return the share of answers that say yes."""
    return ratio(counts[..., 0].sum(-1), counts.sum((-2, -1)))


def neither(counts: Counts) -> Counts:
    """Return the share of answers that say neither yes nor no."""
    return ratio(counts[..., 2].sum(-1), counts.sum((-2, -1)))


METRICS: Mapping[str, Callable[[Counts], Counts]] = {
    "Accuracy": accuracy,
    "Precision": precision,
    "Recall": recall,
    "F1": f1,
    "Yes ratio": yes_ratio,
    "Neither": neither,
}


def label_metrics(benchmark: Benchmark) -> LabelMetrics:
    """Return Table 14's columns as shares of the benchmark's first label, the correct one."""

    def share(setting: int) -> Callable[[Counts], Counts]:
        return lambda counts: ratio(counts[..., setting, 0], counts[..., setting, :].sum(-1))

    columns = {title: share(i) for i, title in enumerate(_titles())}
    return LabelMetrics(SETTINGS, benchmark.labels, columns)


def _titles() -> tuple[str, ...]:
    return tuple(setting.capitalize() for setting in SETTINGS)


def _grid(read: _Reader) -> Grid:
    """Return the grid of settings, right answers and answers; images without a counted answer are drawn too."""

    def places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
        gold = kind.reading.gold
        if kind.condition in SETTINGS and gold is not None and (answer := read(kind, labels)) is not None:
            yield SETTINGS.index(kind.condition), ANSWERS.index(gold), _READ.index(answer)

    return Grid((len(SETTINGS), len(ANSWERS), len(_READ)), places, every_example=True)


def _judged(judge: str) -> _Reader:
    """Return the reader of ``judge``'s labels."""

    def read(kind: AnswerKind, labels: tuple[str, ...]) -> str | None:
        if not labels:
            return None
        gold: str = kind.reading.gold
        if "CORRECT" in labels:
            return gold
        # A wrong answer says the other word or neither, which its label does not tell.
        is_neither = kind.outcome(judge) == "unparsed" or kind.reading.stated == "neither"
        return "neither" if is_neither else ANSWERS[1 - ANSWERS.index(gold)]

    return read


def _official(kind: AnswerKind, labels: tuple[str, ...]) -> str | None:
    """Return the reading of the published evaluation, whatever the judge."""
    answer: str | None = kind.reading.official
    return answer


def _why_undefined(totals: Counts) -> str:
    return "no answer, or no right answer, is yes" if totals.any() else "no labelled answer"


def _accuracy_in(place: int) -> Column:
    return Column(lambda counts: accuracy(counts[..., place, :, :]), lambda totals: totals[place].sum())


def _setting_rows(answers: Answers) -> list[Row]:
    return [Row(f" / {setting}", place) for place, setting in enumerate(SETTINGS)]


_BY_SETTING = {title: _accuracy_in(place) for place, title in enumerate(_titles())}
_COLUMNS = {name: Column(metric, reason=_why_undefined) for name, metric in METRICS.items()}
_OFFICIAL = Layout(
    "official",
    "POPE's figures as its published evaluation reads answers",
    _grid(_official),
    {name: column for name, column in _COLUMNS.items() if name != "Neither"},
    _setting_rows,
    (_NOTE_SPREAD, _NOTE_OFFICIAL),
    spread=True,
    percent=True,
    judges=(),
)


def tables(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return the tables of these answers: main, pope, official, failures."""
    grid, notes = _grid(_judged(judge)), (_NOTE_SPREAD, _NOTE_NEITHER)
    layouts = (
        Layout("main", "Accuracy by setting (Table 14)", grid, _BY_SETTING, notes=notes, spread=True, percent=True),
        Layout("pope", "POPE's figures by setting", grid, _COLUMNS, _setting_rows, notes, spread=True, percent=True),
        _OFFICIAL,
    )
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    return [*map(sheets.table, layouts), failures_table(runs, judge, SETTINGS, scope_note=_ENTERS)]
