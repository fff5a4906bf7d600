"""Tables of k passages: the main metrics, curves over each factor, and the labels of every setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.failure_table import failures_table
from benchmarks.k_passages.constants import CONDITIONS, LABELS
from benchmarks.k_passages.metrics import CONDITIONS_OF, METRICS
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int32]

_Setting = tuple[int, int, int, int, int]
"""The numbers of passages and of wrong ones, the order of the place, the numbers of images and of words."""

_INTERVALS = "Intervals: 95%, percentile bootstrap over examples, so that an example's settings stay together."
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


def tables(runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return the tables main, by-passages, by-wrong, by-place, by-images, by-words, settings and failures.

    A curve over a factor with one level is left out.
    """
    curves = (_curve(runs, judge, spec, resamples, seed) for spec in _CURVES)
    return [
        _main(runs, judge, resamples, seed),
        *(table for table in curves if len(table.columns) > 1),
        _settings(runs, judge, resamples, seed),
        failures_table(runs, judge, CONDITIONS),
    ]


def _main(runs: Mapping[str, Answers], judge: str, resamples: int, seed: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        counts = _counts(answers, judge, lambda kind: CONDITIONS.index(kind.condition), len(CONDITIONS))
        totals, draws = counts.sum(0).astype(np.float64), resample(counts, resamples, seed)
        cells = []
        for name, metric in METRICS.items():
            conditions = CONDITIONS_OF[name]
            n = int(sum(totals[CONDITIONS.index(condition)].sum() for condition in conditions))
            reason = f"no labelled answer under {', '.join(conditions)}"
            cells.append(estimate(float(metric(totals)), metric(draws), n, reason=reason))
        rows.append((run, tuple(cells)))
    notes = (
        "Shares of right answers without a wrong passage, with one, and with more wrong ones than the one that is right; of "
        "answers that follow these, that answer a distractor's question, and that give both values or neither.",
        _INTERVALS,
    )
    return Table("main", "Main results", tuple(METRICS), tuple(rows), notes)


def _curve(
    runs: Mapping[str, Answers], judge: str, spec: tuple[str, str, str, str, str], resamples: int, seed: int
) -> Table:
    name, factor, series, title, series_name = spec
    columns = _levels(runs, factor)
    if factor == "place":
        columns = [level for level in columns if level != "only"]
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        for level in _levels(runs, series):

            def place(kind: AnswerKind, level: str = level) -> int:
                at = kind.strata.get(factor, "")
                return columns.index(at) if kind.strata.get(series) == level and at in columns else -1

            counts = _counts(answers, judge, place, len(columns))
            if not counts.any():
                continue
            totals, draws = counts.sum(0).astype(np.float64), resample(counts, resamples, seed)
            cells = tuple(
                estimate(
                    float(_share(totals[i])),
                    _share(draws[:, i]),
                    int(totals[i].sum()),
                    reason="no setting of these levels",
                )
                for i in range(len(columns))
            )
            rows.append((f"{run} / {series_name.format(level)}", cells))
    notes = (f"Columns: {factor}. Every example is in every setting; other factors are pooled.", _INTERVALS)
    return Table(name, title, tuple(columns), tuple(rows), notes, chart="lines")


def _settings(runs: Mapping[str, Answers], judge: str, resamples: int, seed: int) -> Table:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        settings = sorted({_setting(kind) for kind in answers.kinds})
        numbers = {setting: number for number, setting in enumerate(settings)}
        counts = _counts(answers, judge, partial(_number_of, numbers), len(settings))
        totals, draws = counts.sum(0).astype(np.float64), resample(counts, resamples, seed)
        for number, (passages, wrong, place, images, words) in enumerate(settings):
            n = int(totals[number].sum())
            cells = tuple(
                estimate(
                    float(_share(totals[number], label)),
                    _share(draws[:, number], label),
                    n,
                    reason="no labelled answer",
                )
                for label in range(len(LABELS))
            )
            at = next(name for name, order in _PLACE_ORDER.items() if order == place)
            rest = f", {images} images" * bool(images) + f", {words} words" * bool(words)
            rows.append((f"{run} / k={passages}, {wrong} wrong, {at}{rest}", cells))
    return Table("settings", "Labels in every setting", LABELS, tuple(rows), (_INTERVALS,), chart="stacked")


def _number_of(numbers: Mapping[_Setting, int], kind: AnswerKind) -> int:
    return numbers[_setting(kind)]


def _setting(kind: AnswerKind) -> _Setting:
    strata = kind.strata
    passages, wrong, images, words = (int(strata[name]) for name in ("passages", "wrong", "images", "words"))
    return passages, wrong, _PLACE_ORDER[strata["place"]], images, words


def _levels(runs: Mapping[str, Answers], factor: str) -> list[str]:
    """Return the levels of a factor in the runs, in order."""
    levels = {kind.strata[factor] for answers in runs.values() for kind in answers.kinds if factor in kind.strata}
    return sorted(levels, key=lambda level: _PLACE_ORDER[level] if factor == "place" else int(level))


def _share(counts: NDArray[np.float64], label: int = _RIGHT) -> NDArray[np.float64]:
    whole = counts.sum(-1)
    part = counts[..., label]
    ratio: NDArray[np.float64] = np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
    return ratio


def _counts(answers: Answers, judge: str, place: Callable[[AnswerKind], int], places: int) -> Counts:
    """Return the counts of labels of shape (examples, places, labels); ``place`` is -1 for answers that do not count."""

    def code(kind: AnswerKind) -> int:
        at = place(kind) if kind.outcome(judge) == "labelled" else -1
        return -1 if at < 0 else at * len(LABELS) + LABELS.index(kind.label(judge))

    codes = answers.codes(code)
    labelled = codes >= 0
    examples, numbers = number_groups(answers.group[labelled])
    counts: Counts = np.zeros((examples, places, len(LABELS)), dtype=np.int32)
    at, labels = np.divmod(codes[labelled], len(LABELS))
    np.add.at(counts, (numbers, at, labels), 1)
    return counts
