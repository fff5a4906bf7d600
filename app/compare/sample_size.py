"""How many examples and hours an interval of a wanted width takes, judged by a pilot run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from app.compare.non_inferiority import ACCURACY, ERROR, TargetMetric, TargetShares, basis, measure_of
from app.compare.pairs import own_counts
from app.compare.run_view import RunView, RunViews, load
from benchmarks.base import Cell, Estimate, Table
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError
from benchmarks.stats.intervals import resample
from benchmarks.stats.paired_tests import share_of

RESAMPLES = 2_000
POWER = 0.8

_NORMAL = NormalDist()
_TWO_SIDED = _NORMAL.inv_cdf(0.975)
_FEW = 30
_COLUMNS = ("now", "width now", "examples now", "examples", "instances", "hours")


def plan(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    width: float,
    margin: float,
    metric: str | None = None,
    lower_is_better: bool = False,
) -> Table:
    """What a 95% interval ``width`` wide takes, for each figure of each run, and for how much better each does than the best.

    For two runs or more also what showing the ``margin`` takes, with a chance of 80%, where in truth nothing differs. Raises
    SpecError as :func:`app.compare.recommend.recommend` does.
    """
    if not 0 < width < 1:
        raise SpecError(f"--width {width} is no share between 0 and 1; 0.05 is five points in a hundred.")
    sides = load(folders, judge=judge)
    measure = measure_of(sides, metric, lower_is_better=lower_is_better)
    rows = [row for side in sides.sides for row in _own(side, sides, measure if metric else None, width)]
    if len(sides.sides) > 1:
        models = tuple(side for side in sides.sides if not side.is_policy)
        # Policies are floors: a model beside one is asked about only where it is the only model.
        among = replace(sides, sides=models) if len(models) > 1 else sides
        rows += _paired(basis(among, measure), width, margin)
    examples = max(len({said.group for said in side.said.values()}) for side in sides.sides)
    notes = [
        f"examples: for a 95% interval {width:g} wide, by how much the pilot's examples differ; `--limit` takes that number, or "
        f"`--until-width {width:g}` stops the run when its accuracies are there. "
        "instances: with all the conditions that the pilot was asked; hours: at its seconds an answer.",
        "Widths shrink with the square root of the number of examples. Where all answers of the pilot agree, one more of each "
        "kind is imagined.",
        *([f"The build has {there} examples." for there in _in_build(folders[0], sides)]),
    ]
    if examples < _FEW:
        notes.append(
            f"The pilot has {examples} examples; by so few the variance is hardly known: ask {_FEW} or more first."
        )
    return Table("plan", "What an interval of the wanted width takes", _COLUMNS, tuple(rows), tuple(notes))


def _own(side: RunView, sides: RunViews, only: TargetMetric | None, width: float) -> list[tuple[str, tuple[Cell, ...]]]:
    counts = own_counts(side, sides.figures)
    drawn = resample(counts, RESAMPLES, sides.seed)
    figures = {only.name: _figure(only, sides)} if only else dict(sides.figures.of)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, figure in figures.items():
        value, replicates = float(figure(counts.sum(0))), np.asarray(figure(drawn))
        error = float(np.nanstd(replicates)) if np.isfinite(replicates).any() else math.nan
        if not error and share_of(figure, sides.figures) is not None:
            # All agree, so that the examples seem not to differ at all: as if one more had been right, and one more wrong.
            adjusted = (value * len(counts) + 1) / (len(counts) + 2)
            error = math.sqrt(adjusted * (1 - adjusted) / (len(counts) + 2))
        rows.append((f"{side.label} / {name}", _cells(value, error, len(counts), width, side)))
    return rows


def _figure(measure: TargetMetric, sides: RunViews) -> Any:
    if measure.name != ACCURACY:
        return sides.figures.of[measure.name]

    def accuracy(counts: Any) -> Any:
        whole = counts.sum((-1, -2))
        return np.divide(
            (counts * measure.hits).sum((-1, -2)), whole, out=np.full(whole.shape, np.nan), where=whole > 0
        )

    return accuracy


def _cells(value: float, error: float, groups: int, width: float, side: RunView) -> tuple[Cell, ...]:
    if math.isnan(value) or math.isnan(error) or not error:
        nothing = Estimate(None, n=groups, reason="undefined in the pilot, or its examples do not differ")
        return (nothing, nothing, groups, nothing, nothing, nothing)
    now = 2 * _TWO_SIDED * error
    wanted = math.ceil(groups * (now / width) ** 2 - 1e-9)
    return (Estimate(value, n=groups), Estimate(now, n=groups), groups, *_takes(wanted, [side]))


def _takes(examples: int, sides: Sequence[RunView]) -> tuple[Cell, ...]:
    """Examples, the instances they are, and the hours that all of ``sides`` take for them."""
    each = [len(side.said) / max(1, len({said.group for said in side.said.values()})) for side in sides]
    seconds = [side.cost.seconds_per_answer for side in sides]
    hours: Cell = Estimate(None, reason="no answer of the pilot was timed")
    if all(one is not None for one in seconds):
        hours = Estimate(sum(examples * n * (s or 0) for n, s in zip(each, seconds, strict=True)) / 3600, n=examples)
    return (examples, math.ceil(examples * max(each)), hours)


def _paired(found: TargetShares, width: float, margin: float) -> list[tuple[str, tuple[Cell, ...]]]:
    sides, best = found.sides.sides, found.best
    reach = _NORMAL.inv_cdf(1 - ERROR) + _NORMAL.inv_cdf(POWER)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, side in enumerate(sides):
        if run == best:
            continue
        apart = found.difference(run, best)
        now = (
            Estimate(apart.value, n=found.groups),
            Estimate(2 * _TWO_SIDED * apart.error, n=found.groups),
            found.groups,
        )
        both = (side, sides[best])
        name = f"{side.label} / {found.measure.name} beside {sides[best].label}"
        rows.append((name, (*now, *_takes(apart.groups_for(width / 2 / _TWO_SIDED), both))))
        shown = _takes(apart.groups_for(margin / reach), both)
        rows.append((f"{name}, to show the margin {margin:g}", (*now, *shown)))
    return rows


def _in_build(folder: Path, sides: RunViews) -> list[int]:
    """How many examples the first run's build has; nothing where it is not here."""
    from app.store.run import RunStore

    with RunStore.read(folder) as store:
        data = store.meta("data")
    try:
        build = Build.open(Path(data or ""))
        instances = sides.benchmark.instances(build, str(sides.sides[0].spec["prompt_set"]))
        return [len({instance.group for instance in instances})]
    except RashomonError:
        return []
