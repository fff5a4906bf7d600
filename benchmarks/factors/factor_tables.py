"""Tables of runs on varied builds: main effects and interactions, psychometric curves, and points of subjective equality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.factors.factor_levels import KINDS, dose_of
from benchmarks.factors.varied_run import FOLLOWS_IMAGE, DrawnSums, VariedRun, measures_of
from benchmarks.stats.fractional_factorial import interaction, main_effect
from benchmarks.stats.intervals import INTERVALS, SHARE, UNBOUNDED, estimate, ratio
from benchmarks.stats.logistic_fit import LogisticFit, curve, fit_logistic
from benchmarks.varied_names import FACTOR_NAMES
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FITTED = "fitted"

_MOST_UNDEFINED = 0.05
"""The share of resamples without a value above which an estimate has no interval."""

_PAIRED = f"{INTERVALS} Each example has all cells, so that levels are compared on the same examples."
_MEANING = (
    f"`{FOLLOWS_IMAGE}`: the share that follow the image, of the answers under conflict that follow the image or the text; "
    "`right`: accuracy."
)

_Row = tuple[str, tuple[Cell, ...]]


def is_varied(answers: Answers) -> bool:
    """Return whether answers are to instances of a varied build."""
    return any(name in kind.strata for kind in answers.kinds for name in FACTOR_NAMES)


def factor_tables(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int
) -> list[Table]:
    """Return the tables of those runs that are on varied builds; none without such runs."""
    varied = {
        run: VariedRun(benchmark, answers, judge, resamples, seed)
        for run, answers in runs.items()
        if is_varied(answers)
    }
    if not varied:
        return []
    measures = [name for name in measures_of(benchmark, judge) if any(name in run.measures for run in varied.values())]
    tables = [_effects(varied, measures), _curves(varied, measures)]
    if FOLLOWS_IMAGE in measures:
        tables.append(_equality(varied))
    return [table for table in tables if table.rows]


def reference_cells(runs: Mapping[str, Answers]) -> Mapping[str, Answers]:
    """Return the runs with the answers of those on varied builds in their first cell only.

    A table that knows no factors would count the repetitions of an example as examples.
    """
    return {run: _reference_cell(answers) if is_varied(answers) else answers for run, answers in runs.items()}


def reference_note(runs: Mapping[str, Answers]) -> str:
    """Return a note for tables of :func:`reference_cells`; empty if no run is on a varied build."""
    cells = [
        ", ".join(f"{name}={level}" for name, level in _first_cell(a).items()) for a in runs.values() if is_varied(a)
    ]
    if not cells:
        return ""
    shown = " or ".join(dict.fromkeys(cells))
    return f"Of a varied build, one cell: {shown}. `factors` compares all cells, and --strata runs another one."


def _first_cell(answers: Answers) -> dict[str, str]:
    first = next(kind for kind in answers.kinds if any(name in kind.strata for name in FACTOR_NAMES))
    return {name: first.strata[name] for name in FACTOR_NAMES if name in first.strata}


def reference_positions(answers: Answers) -> NDArray[np.int64]:
    """Return the positions of the answers of a run on a varied build that are in its first cell."""
    levels = _first_cell(answers)
    return np.flatnonzero(answers.mask(lambda kind: all(kind.strata.get(n) == level for n, level in levels.items())))


def _reference_cell(answers: Answers) -> Answers:
    return answers.at(reference_positions(answers))


# --- effects -------------------------------------------------------------------------------------


def _effects(runs: Mapping[str, VariedRun], measures: Sequence[str]) -> Table:
    rows: list[_Row] = []
    notes = [_MEANING, _PAIRED]
    for name, run in runs.items():
        drawn = {measure: run.draws(measure) for measure in measures if measure in run.measures}
        sizes = [len(levels) for levels in run.levels.values()]
        cells = len(run.cells)
        rows.append((f"{name} / mean of the cells", _contrast_cells(measures, drawn, np.full(cells, 1 / cells), "")))
        for factor, (kind, levels) in enumerate(run.levels.items()):
            for level in range(1, len(levels)):
                weights = main_effect(run.cells, sizes, factor, level)
                label = f"{name} / {kind}: {levels[0]} → {levels[level]}"
                rows.append((label, _contrast_cells(measures, drawn, weights, "confounded with another factor")))
        for a, b in combinations(range(len(sizes)), 2):
            first, second = list(run.levels)[a], list(run.levels)[b]
            weights = interaction(run.cells, sizes, (a, b))
            rows.append(
                (
                    f"{name} / {first} × {second}",
                    _contrast_cells(measures, drawn, weights, "confounded in this fraction"),
                )
            )
        if cells < int(np.prod(sizes)):
            notes.append(
                f"{name} has {cells} of the {int(np.prod(sizes))} cells of its full design; main effects that these cells cannot "
                "tell from interactions assume that there are none."
            )
    if any(len(run.levels) > 1 for run in runs.values()):
        notes.append(
            "A × B is how much the effect of A, from its first to its last level, changes from the first to the last level of B."
        )
    notes.append("Main effects are differences to the first level, averaged over the levels of the other factors.")
    return Table("factors", "Main effects and interactions of the factors", tuple(measures), tuple(rows), tuple(notes))


def _contrast_cells(
    measures: Sequence[str], drawn: Mapping[str, DrawnSums], weights: Array | None, reason: str
) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for measure in measures:
        if weights is None or measure not in drawn:
            cells.append(Estimate(None, reason=reason if weights is None else "no answer"))
            continue
        totals, draws, clusters = drawn[measure]
        used = np.abs(weights) > 1e-12
        value = ratio(totals[used, 0], totals[used, 1]) @ weights[used]
        replicates = ratio(draws[:, used, 0], draws[:, used, 1]) @ weights[used]
        n, reach = int(totals[used, 1].sum()), max(1.0, float(np.abs(weights).sum()) / 2)
        # Sums of weights leave a difference of equal shares a few last bits from 0.
        cells.append(
            _estimate(
                round(float(value), 12) + 0.0,
                replicates.round(12) + 0.0,
                n,
                "a level has no labelled answer",
                clusters,
                (-reach, reach),
            )
        )
    return tuple(cells)


# --- curves --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Series:
    """The cells of a run that a curve pools, by the dose of one factor."""

    name: str
    factor: str
    levels: Sequence[str]
    places: Sequence[Sequence[int]]
    """The cells at each level."""

    @cached_property
    def doses(self) -> Array:
        return np.array([float(level) for level in self.levels])

    @property
    def scaled_doses(self) -> Array:
        """The doses on the scale on which the curve is logistic."""
        return np.log2(self.doses) if KINDS[self.factor].is_log else self.doses

    def pooled(self, counts: Array) -> Array:
        """Return counts of shape (..., cells, 2) by level, shape (..., levels, 2)."""
        return np.stack([counts[..., list(places), :].sum(-2) for places in self.places], -2)


def _series(name: str, run: VariedRun) -> list[_Series]:
    """Return the curves of a run: over each factor with doses, and over it at each level of every other factor."""
    series = []
    for place, (factor, levels) in enumerate(run.levels.items()):
        numeric = [number for number, level in enumerate(levels) if dose_of(level) is not None]
        if len(numeric) < 2:
            continue
        restrictions = [("", -1, -1)] + [
            (f", {other}={level}", at, number)
            for at, (other, others) in enumerate(run.levels.items())
            if at != place
            for number, level in enumerate(others)
        ]
        for suffix, at, number in restrictions:
            places = [
                [
                    index
                    for index, cell in enumerate(run.cells)
                    if cell[place] == level and (at < 0 or cell[at] == number)
                ]
                for level in numeric
            ]
            if all(places):
                series.append(
                    _Series(f"{name} / {factor}{suffix}", factor, [levels[level] for level in numeric], places)
                )
    return series


def _curves(runs: Mapping[str, VariedRun], measures: Sequence[str]) -> Table:
    rows: list[_Row] = []
    is_fitted = FOLLOWS_IMAGE in measures
    for name, run in runs.items():
        drawn = {measure: run.draws(measure) for measure in measures if measure in run.measures}
        for series in _series(name, run):
            pooled = {
                measure: DrawnSums(series.pooled(totals), series.pooled(draws), clusters)
                for measure, (totals, draws, clusters) in drawn.items()
            }
            columns = [
                _share_cells(*pooled[measure])
                if measure in pooled
                else [Estimate(None, reason="no answer")] * len(series.levels)
                for measure in measures
            ]
            if is_fitted:
                columns.insert(1, _fitted_cells(series, pooled.get(FOLLOWS_IMAGE)))
            rows += [
                (f"{series.name} / {level}", tuple(cells))
                for level, cells in zip(series.levels, zip(*columns, strict=True), strict=True)
            ]
    names = (*measures[:1], FITTED, *measures[1:]) if is_fitted else tuple(measures)
    notes = (
        _MEANING,
        *(
            (f"`{FITTED}` is the logistic curve of `{FOLLOWS_IMAGE}` over the dose, by maximum likelihood.",)
            if is_fitted
            else ()
        ),
        _PAIRED,
    )
    return Table("curves", "Shares by dose", names, tuple(rows), notes, chart="curves")


def _share_cells(totals: Array, draws: Array, clusters: int) -> list[Estimate]:
    shares, drawn = ratio(totals[..., 0], totals[..., 1]), ratio(draws[..., 0], draws[..., 1])
    return [
        _estimate(float(shares[level]), drawn[:, level], int(totals[level, 1]), "no labelled answer", clusters, SHARE)
        for level in range(len(shares))
    ]


def _fitted_cells(series: _Series, pooled: DrawnSums | None) -> list[Estimate]:
    if pooled is None:
        return [Estimate(None, reason="no answer")] * len(series.levels)
    fit, fits = _fits(series, pooled.totals, pooled.draws)
    shares, drawn = curve(fit, series.scaled_doses), curve(fits, series.scaled_doses)
    n, changeless = int(pooled.totals[..., 1].sum()), "no curve: the answers change completely, or not at all"
    return [
        _estimate(float(shares[level]), drawn[:, level], n, changeless, pooled.clusters, SHARE)
        for level in range(len(series.levels))
    ]


def _fits(series: _Series, totals: Array, draws: Array) -> tuple[LogisticFit, LogisticFit]:
    doses = series.scaled_doses
    return (
        fit_logistic(doses, totals[..., 0], totals[..., 1]),
        fit_logistic(doses, draws[..., 0], draws[..., 1]),
    )


def _equality(runs: Mapping[str, VariedRun]) -> Table:
    rows: list[_Row] = []
    for name, run in runs.items():
        if FOLLOWS_IMAGE not in run.measures:
            continue
        totals, draws, clusters = run.draws(FOLLOWS_IMAGE)
        for series in _series(name, run):
            pooled = series.pooled(totals)
            fit, fits = _fits(series, pooled, series.pooled(draws))
            n = int(pooled[:, 1].sum())
            rows.append(
                (series.name, (_equality_cell(series, fit, fits, n, clusters), _slope_cell(fit, fits, n, clusters)))
            )
    notes = (
        f"PSE: the dose at which the fitted curve of `{FOLLOWS_IMAGE}` is one half, so that image and text are followed equally "
        "often. It is n/a outside the doses that were tried. Where the answers change completely between two doses, it is their "
        "middle, and its interval goes from one to the other.",
        "slope: the change of the log odds of following the image for one unit of the dose; for one doubling of it with "
        "resolution and distance.",
        _PAIRED,
    )
    return Table("pse", "Points of subjective equality between image and text", ("PSE", "slope"), tuple(rows), notes)


def _equality_cell(series: _Series, fit: LogisticFit, fits: LogisticFit, n: int, clusters: int) -> Estimate:
    doses = series.scaled_doses
    middle = float(fit.midpoint)
    if np.isnan(middle) or not doses.min() < middle < doses.max():
        return Estimate(None, n=n, reason="the curve is nowhere one half between the lowest and the highest dose")
    cell = _estimate(middle, fits.midpoint, n, "", clusters)
    if np.isnan(fit.slope):
        cell = Estimate(middle, float(doses[doses < middle].max()), float(doses[doses > middle].min()), n)
    if not KINDS[series.factor].is_log:
        return cell
    low, high = (None if edge is None else float(np.exp2(edge)) for edge in (cell.low, cell.high))
    return Estimate(float(np.exp2(middle)), low, high, n)


def _slope_cell(fit: LogisticFit, fits: LogisticFit, n: int, clusters: int) -> Estimate:
    reason = "no curve: the answers change completely, or not at all"
    return _estimate(float(fit.slope), fits.slope, n, reason, clusters, UNBOUNDED)


def _estimate(
    value: float,
    replicates: Array,
    n: int,
    reason: str,
    clusters: int,
    within: tuple[float, float] | None = None,
) -> Estimate:
    """Return an estimate, without an interval where too many replicates are undefined."""
    if len(replicates) and np.isnan(replicates).mean() > _MOST_UNDEFINED and not np.isnan(value):
        return Estimate(value, n=n)
    return estimate(value, replicates, n, clusters=clusters, within=within, reason=reason)
