"""Tables of plain data sets: the paper's metrics, the labels by condition, and the conflict types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import failures_table
from benchmarks.plain.own_answers_table import own_answers_table
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets
from benchmarks.vocabulary import LabelMetrics, Table

if TYPE_CHECKING:
    from benchmarks.plain.plain_declaration import Declaration

RIGHT = "Right"
"""The column with the share of right answers under conflict."""


def tables(data_set: Declaration, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return main (the paper's metrics under conflict), own-answers where it has metrics of these, by-type, labels, failures."""
    sheets = Sheets(data_set, runs, judge, resamples, seed)
    grid = Grid((len(data_set.conditions), len(data_set.labels)), partial(_places, data_set))
    conflict = data_set.conditions.index(data_set.conflicts[0])
    main = {name: _column(data_set, metric) for name, metric in _metrics(data_set).items()}
    notes = (*(_formula(name, *metric) for name, metric in data_set.metrics.items()), INTERVALS)
    shares = {label: _column(data_set, ((label,), data_set.labels)) for label in data_set.labels}
    layouts = (
        Layout("main", "Under conflict", grid, main, lambda answers: [Row("", conflict)], notes),
        Layout("by-type", "Under conflict, by conflict type", grid, main, partial(_by_type, conflict), notes),
        Layout(
            "labels",
            "Label proportions by condition",
            grid,
            shares,
            partial(_by_condition, data_set.conditions),
            chart="stacked",
        ),
    )
    first, *others = map(sheets.table, layouts)
    own = [own_answers_table(data_set, runs, judge, resamples=resamples, seed=seed)] if data_set.own_metrics else []
    return [first, *own, *others, failures_table(runs, judge, data_set.conditions)]


def label_metrics(data_set: Declaration) -> LabelMetrics:
    """Return the metrics under conflict, as functions of label counts that human labels can correct."""

    def of_conflict(metric: Callable[[Any], Any], counts: Any) -> Any:
        return metric(counts[..., 0, :])

    metrics = {name: partial(of_conflict, _column(data_set, metric).of) for name, metric in _metrics(data_set).items()}
    return LabelMetrics(data_set.conflicts[:1], data_set.labels, metrics)


def _metrics(data_set: Declaration) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the labels that each metric counts, and those among which it does."""
    right = tuple(label for label in data_set.labels if data_set.correct(data_set.conflicts[0], label))
    own = {name: ((label,), among) for name, (label, among) in data_set.metrics.items()}
    return {RIGHT: (right, data_set.labels), **own}


def _column(data_set: Declaration, metric: tuple[Sequence[str], Sequence[str]]) -> Column:
    counted, among = ([data_set.labels.index(label) for label in labels] for labels in metric)
    return Column(
        lambda counts: ratio(counts[..., counted].sum(-1), counts[..., among].sum(-1)),
        lambda totals: totals[among].sum(),
        lambda totals: f"no answer is labelled {' or '.join(metric[1])}",
    )


def _formula(name: str, label: str, among: Sequence[str]) -> str:
    return f"{name}: {label} / ({' + '.join(among)})."


def _places(data_set: Declaration, kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    condition = data_set.conditions.index(kind.condition)
    yield from ((condition, data_set.labels.index(label)) for label in labels)


def _by_condition(conditions: Sequence[str], answers: Answers) -> list[Row]:
    present = answers.count(lambda kind: kind.condition)
    return [Row(f" / {name}", place) for place, name in enumerate(conditions) if present[name]]


def _by_type(conflict: int, answers: Answers) -> list[Row]:
    present = sorted(answers.count(lambda kind: kind.strata.get("type")))

    def is_of(name: str, kind: AnswerKind) -> bool:
        return kind.strata.get("type") == name

    return [Row(f" / {name}", conflict, partial(is_of, name)) for name in present]
