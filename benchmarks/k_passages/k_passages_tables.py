"""Tables of k passages: the main metrics, curves over each factor, and the labels of every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import failures_table
from benchmarks.k_passages.k_passages_constants import CONDITIONS, LABELS
from benchmarks.k_passages.k_passages_metrics import CONDITIONS_OF, METRICS
from benchmarks.stats.intervals import INTERVALS, ratio
from benchmarks.tables.declared_tables import Column, Grid, Layout, Row, Sheets
from benchmarks.vocabulary import Table

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

Runs = Mapping[str, Answers]
_Setting = tuple[int, int, int, int, int]
"""The numbers of passages and of wrong ones, the order of the place, the numbers of images and of words."""

_RIGHT = LABELS.index("RIGHT")

_CURVES = (
    ("by-passages", "passages", "wrong", "Right answers by the number of passages", "{} wrong"),
    ("by-wrong", "wrong", "passages", "Right answers by the number of wrong passages", "k={}"),
    ("by-place", "place", "passages", "Right answers by the place of the right passage", "k={}"),
    ("by-images", "images", "wrong", "Right answers by the number of images", "{} wrong"),
    ("by-words", "words", "wrong", "Right answers by the length of the passages in words", "{} wrong"),
)
"""Name, factor of the x axis, factor of the series, title, and the name of a series."""

_PLACE_ORDER = {"only": 0, "first": 1, "middle": 2, "last": 3}


def tables(benchmark: Benchmark, runs: Runs, judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return the tables main, by-passages, by-wrong, by-place, by-images, by-words, settings and failures.

    A curve over a factor with one level is left out.
    """
    sheets = Sheets(benchmark, runs, judge, resamples, seed)
    curves = (_curve(sheets, *spec) for spec in _CURVES)
    return [
        sheets.table(_MAIN),
        *(table for table in curves if len(table.columns) > 1),
        sheets.table(_settings(runs)),
        failures_table(runs, judge, benchmark.conditions),
    ]


def _grid(size: int, place: Callable[[AnswerKind], int]) -> Grid:
    """Return the grid of the labels in each of ``size`` places; -1 is none of them."""

    def places(kind: AnswerKind, labels: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        if labels and (at := place(kind)) >= 0:
            yield from ((at, LABELS.index(label)) for label in labels)

    return Grid((size, len(LABELS)), places)


def _main_column(name: str) -> Column:
    conditions = CONDITIONS_OF[name]
    places = [CONDITIONS.index(condition) for condition in conditions]
    reason = f"no labelled answer under {', '.join(conditions)}"
    return Column(METRICS[name], lambda totals: totals[places].sum(), lambda totals: reason)


_MAIN = Layout(
    "main",
    "Main results",
    _grid(len(CONDITIONS), lambda kind: CONDITIONS.index(kind.condition)),
    {name: _main_column(name) for name in METRICS},
    notes=(
        "Shares of right answers without a wrong passage, with one, and with more wrong ones than the one that is right; of "
        "answers that follow these, that answer a distractor's question, and that give both values or neither.",
        INTERVALS,
    ),
)


def _curve(sheets: Sheets, name: str, factor: str, series: str, title: str, series_name: str) -> Table:
    levels = [level for level in _levels(sheets.runs, factor) if level != "only"]
    grid = _grid(len(levels), lambda kind: _index(levels, kind.strata.get(factor, "")))
    columns = {level: _right_in(place) for place, level in enumerate(levels)}
    rows = [
        (f"{run} / {series_name.format(level)}", sheet.cells(columns.values()))
        for run in sheets.runs
        for level in _levels(sheets.runs, series)
        if (sheet := sheets.sheet(run, grid, partial(_has, series, level))).counts.any()
    ]
    note = f"Columns: {factor}. Every example is in every setting; other factors are pooled."
    return sheets.finish(name, title, columns, rows, note, INTERVALS, chart="lines")


def _levels(runs: Runs, factor: str) -> list[str]:
    """Return the levels of a factor in the runs, in order."""
    levels = {kind.strata[factor] for answers in runs.values() for kind in answers.kinds if factor in kind.strata}
    return sorted(levels, key=lambda level: _PLACE_ORDER[level] if factor == "place" else int(level))


def _index(levels: Sequence[str], level: str) -> int:
    return levels.index(level) if level in levels else -1


def _has(factor: str, level: str, kind: AnswerKind) -> bool:
    return kind.strata.get(factor) == level


def _right_in(place: int) -> Column:
    return Column(
        lambda counts: ratio(counts[..., place, _RIGHT], counts[..., place, :].sum(-1)),
        lambda totals: totals[place].sum(),
        lambda totals: "no setting of these levels",
    )


def _settings(runs: Runs) -> Layout:
    settings = sorted({_setting(kind) for answers in runs.values() for kind in answers.kinds})

    def rows(answers: Answers) -> list[Row]:
        present = {_setting(kind) for kind in answers.kinds}
        return [Row(f" / {_setting_name(*at)}", place) for place, at in enumerate(settings) if at in present]

    grid = _grid(len(settings), lambda kind: settings.index(_setting(kind)))
    shares = {label: _share_of(place) for place, label in enumerate(LABELS)}
    return Layout("settings", "Labels in every setting", grid, shares, rows, (INTERVALS,), chart="stacked")


def _setting(kind: AnswerKind) -> _Setting:
    strata = kind.strata
    passages, wrong, images, words = (int(strata[name]) for name in ("passages", "wrong", "images", "words"))
    return passages, wrong, _PLACE_ORDER[strata["place"]], images, words


def _setting_name(passages: int, wrong: int, place: int, images: int, words: int) -> str:
    rest = f", {images} images" * bool(images) + f", {words} words" * bool(words)
    return f"k={passages}, {wrong} wrong, {[*_PLACE_ORDER][place]}{rest}"


def _share_of(label: int) -> Column:
    return Column(lambda counts: ratio(counts[..., label], counts.sum(-1)))
