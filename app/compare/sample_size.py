"""Sample sizes: the examples and hours that an interval of a given width takes, estimated from a pilot run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from app.compare.non_inferiority import ACCURACY, ALPHA, TargetMetric, TargetShares, target_metric, target_shares
from app.compare.pairs import MetricFunction, label_counts
from app.compare.run_view import RunView, RunViews, load_views
from app.store.run import RunStore
from benchmarks import number_ranges as ranges
from benchmarks.build import Build
from benchmarks.errors import RashomonError
from benchmarks.factors.instances import instances_of
from benchmarks.stats.intervals import ratio, resample
from benchmarks.stats.paired_tests import share_labels
from benchmarks.vocabulary import Cell, Estimate, Table

RESAMPLES = 2_000
POWER = 0.8

_NORMAL = NormalDist()
_TWO_SIDED = _NORMAL.inv_cdf(0.975)
_FEW = 30
_COLUMNS = ("now", "width now", "examples now", "examples", "instances", "hours")


def sample_size_table(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    width: float,
    margin: float,
    metric: str | None = None,
    lower_is_better: bool = False,
) -> Table:
    """Return the cost of a 95% interval ``width`` wide, for each metric of each run and for each run's lead over the best.

    For two runs or more also the cost of showing the ``margin`` with a power of 80%, where in truth nothing differs.

    Raises:
        SpecError: As :func:`app.compare.recommend.recommend` does.
    """
    ranges.WIDTH.check("--width", width)
    views = load_views(folders, judge=judge)
    target = target_metric(views, metric, lower_is_better=lower_is_better)
    rows = [row for run in views.runs for row in _run_rows(run, views, target if metric else None, width)]
    if len(views.runs) > 1:
        models = tuple(run for run in views.runs if not run.is_policy and not run.is_oracle)
        # Policies are floors: a model is compared with one only if it is the only model.
        compared = replace(views, runs=models) if len(models) > 1 else views
        rows += _paired_rows(target_shares(compared, target), width, margin)
    examples = max(run.examples for run in views.runs)
    notes = [
        f"examples: for a 95% interval {width:g} wide, given the variance among the pilot's examples; pass it to `--limit`, or "
        f"`--until-width {width:g}` stops the run once its accuracies reach that width. "
        "instances: with all the conditions of the pilot; hours: at its seconds per answer.",
        "Widths shrink with the square root of the number of examples. Where all answers of the pilot agree, one more of each "
        "kind is assumed.",
        *([f"The build has {size} examples." for size in _build_size(folders[0], views)]),
    ]
    if examples < _FEW:
        notes.append(
            f"The pilot has {examples} examples, too few to estimate the variance well: run {_FEW} or more first."
        )
    return Table("plan", "What an interval of the wanted width takes", _COLUMNS, tuple(rows), tuple(notes))


def _run_rows(
    run: RunView, views: RunViews, only: TargetMetric | None, width: float
) -> list[tuple[str, tuple[Cell, ...]]]:
    counts = label_counts(run, views.label_metrics)
    draws = resample(counts, RESAMPLES, views.seed)
    metrics = {only.name: _metric_function(only, views)} if only else dict(views.label_metrics.of)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, metric in metrics.items():
        value, replicates = float(metric(counts.sum(0))), np.asarray(metric(draws))
        error = float(np.nanstd(replicates)) if np.isfinite(replicates).any() else math.nan
        if not error and share_labels(metric, views.label_metrics) is not None:
            # All examples agree, so their variance seems to be zero: assume one more right and one more wrong example.
            adjusted = (value * len(counts) + 1) / (len(counts) + 2)
            error = math.sqrt(adjusted * (1 - adjusted) / (len(counts) + 2))
        rows.append((f"{run.label} / {name}", _cells(value, error, len(counts), width, run)))
    return rows


def _metric_function(target: TargetMetric, views: RunViews) -> MetricFunction:
    if target.name != ACCURACY:
        return views.label_metrics.of[target.name]

    def accuracy(counts: Any) -> Any:
        return ratio((counts * target.hits).sum((-1, -2)), counts.sum((-1, -2)))

    return accuracy


def _cells(value: float, error: float, groups: int, width: float, run: RunView) -> tuple[Cell, ...]:
    if math.isnan(value) or math.isnan(error) or not error:
        undefined = Estimate(None, n=groups, reason="undefined in the pilot, or its examples do not differ")
        return (undefined, undefined, groups, undefined, undefined, undefined)
    width_now = 2 * _TWO_SIDED * error
    examples = math.ceil(groups * (width_now / width) ** 2 - 1e-9)
    return (Estimate(value, n=groups), Estimate(width_now, n=groups), groups, *_effort_cells(examples, [run]))


def _effort_cells(examples: int, runs: Sequence[RunView]) -> tuple[Cell, ...]:
    """Return ``examples``, their number of instances, and the hours that all of ``runs`` take for them."""
    instances = [len(run.answers) / max(1, run.examples) for run in runs]
    seconds = [run.cost.seconds_per_answer for run in runs]
    hours: Cell = Estimate(None, reason="no answer of the pilot was timed")
    if all(duration is not None for duration in seconds):
        hours = Estimate(
            sum(examples * n * (s or 0) for n, s in zip(instances, seconds, strict=True)) / 3600, n=examples
        )
    return (examples, math.ceil(examples * max(instances)), hours)


def _paired_rows(shares: TargetShares, width: float, margin: float) -> list[tuple[str, tuple[Cell, ...]]]:
    runs, best = shares.views.runs, shares.best
    reach = _NORMAL.inv_cdf(1 - ALPHA) + _NORMAL.inv_cdf(POWER)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for index, run in enumerate(runs):
        if index == best:
            continue
        difference = shares.difference(index, best)
        now = (
            Estimate(difference.value, n=shares.groups),
            Estimate(2 * _TWO_SIDED * difference.error, n=shares.groups),
            shares.groups,
        )
        pair = (run, runs[best])
        name = f"{run.label} / {shares.metric.name} beside {runs[best].label}"
        rows.append((name, (*now, *_effort_cells(difference.groups_needed(width / 2 / _TWO_SIDED), pair))))
        effort = _effort_cells(difference.groups_needed(margin / reach), pair)
        rows.append((f"{name}, to show the margin {margin:g}", (*now, *effort)))
    return rows


def _build_size(folder: Path, views: RunViews) -> list[int]:
    """Return the number of examples in the first run's build; empty where the build is not on this machine."""
    with RunStore.read(folder) as store:
        data = store.meta("data")
    try:
        build = Build.open(Path(data or ""))
        instances = instances_of(views.benchmark, build, next(iter(views.benchmark.prompt_sets)))
        return [len({instance.group for instance in instances})]
    except RashomonError:
        return []
