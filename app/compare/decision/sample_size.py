"""Sample sizes: the examples and hours that an interval of a given width takes, estimated from a pilot run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

from app.compare.decision.target_metric import ACCURACY, TargetMetric, target_metric
from app.compare.decision.target_shares import ALPHA, TargetShares, target_shares
from app.compare.decision.trust_metric import trust_target
from app.compare.runs.run_pairs import run_metrics, share_of_labels
from app.compare.runs.run_view import RunView, RunViews
from app.compare.runs.view_reader import load_views
from app.store.run_store import RunStore
from app.text.percentage_points import format_points
from benchmarks import number_ranges as ranges
from benchmarks.build import Build
from benchmarks.errors import RashomonError, SpecError
from benchmarks.factors.factor_instances import instances_of
from benchmarks.stats.paired_tests import Difference
from benchmarks.vocabulary import Cell, Estimate, Table

RESAMPLES = 2_000
POWER = 0.8

_NORMAL = NormalDist()
TWO_SIDED = _NORMAL.inv_cdf(0.975)
_FEW = 30
_MOST_EXAMPLES = 1_000_000
_COLUMNS = ("now", "width now", "examples now", "examples", "instances", "hours")


def plan(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    width: float,
    margin: float,
    metric: str | None = None,
    lower_is_better: bool = False,
    trust: str | None = None,
) -> tuple[str, Table]:
    """Return how many examples decide, in a sentence, and the cost of a 95% interval ``width`` wide for each metric.

    What decides is the rule ``trust``, or else the metric. With two runs or more, the examples are those that show the
    ``margin`` with a power of 80%, where in truth nothing differs; the table then has the leads over the best run, too.

    Raises:
        SpecError: As :func:`app.compare.recommend.recommendation.recommend` does.
    """
    ranges.WIDTH.check("--width", width)
    views = load_views(folders, judge=judge)
    if trust is not None and (metric is not None or lower_is_better):
        raise SpecError("--trust decides by what should win; leave --metric and --lower-is-better out.")
    target = trust_target(views, trust) if trust else target_metric(views, metric, lower_is_better=lower_is_better)
    rows = [row for run in views.runs for row in _run_rows(run, views, target if metric else None, width)]
    shares = _decisive_shares(views, target)
    if len(views.runs) > 1:
        rows += _paired_rows(shares, width, margin)
    examples = max(run.examples for run in views.runs)
    notes = [
        f"examples: for a 95% interval {width:g} wide, given the variance among the pilot's pages; pass it to `--limit`, or "
        f"`--until-width {width:g}` stops the run once its accuracies reach that width. "
        "instances: with all the conditions of the pilot; hours: at its seconds per answer.",
        "Widths shrink with the square root of the number of examples, if these are of as many more pages.",
        *([f"The build has {size} examples." for size in _build_size(folders[0], views)]),
    ]
    if examples < _FEW:
        notes.append(
            f"The pilot has {examples} examples, too few to estimate the variance well: run {_FEW} or more first."
        )
    table = Table("plan", "What an interval of the wanted width takes", _COLUMNS, tuple(rows), tuple(notes))
    return _plan_sentence(shares, width, margin), table


def planned_examples(views: RunViews, *, width: float, margin: float, trust: str | None = None) -> str:
    """Return how many examples decide, in the sentence of :func:`plan`. Raises SpecError as that does."""
    target = trust_target(views, trust) if trust else target_metric(views, None, lower_is_better=False)
    return _plan_sentence(_decisive_shares(views, target), width, margin)


def _decisive_shares(views: RunViews, target: TargetMetric) -> TargetShares:
    """Return the shares of the models; policies are floors: a model is compared with one only if it is the only model."""
    models = tuple(run for run in views.runs if run.is_model)
    return target_shares(replace(views, runs=models) if len(models) > 1 else views, target)


def _plan_sentence(shares: TargetShares, width: float, margin: float) -> str:
    """Return how many examples decide, beside how many there are."""
    have, compared = f"you have {shares.examples:,}", shares.metric.compared
    if len(shares.views.runs) > 1:
        needed = examples_for_margin(shares, margin)
        if needed is None:
            return f"How many examples are needed is unknown: one page says nothing of others; {have}."
        return (
            f"About {needed:,} examples show that {_claim(shares, margin)} {compared}, if they are in truth as good. Which is "
            f"better is another question: about {_for_width(shares, width):,} examples give the difference a 95% interval "
            f"{format_points(width)} points wide. You {have.removeprefix('you ')}."
        )
    share = shares.clusters.mean(shares.hit[:, 0], shares.weight)
    if share.low is None or share.high is None:
        return f"How many examples are needed is unknown: {share.reason or 'one page says nothing of others'}; {have}."
    needed = _scaled(shares.examples, share.high - share.low, width)
    return (
        f"About {needed:,} examples give a 95% interval {format_points(width)} points wide for how often "
        f"{shares.views.runs[0].label} is right {compared}; {have}."
    )


def _claim(shares: TargetShares, margin: float) -> str:
    """Return what the margin is to show of the runs; a policy is a floor and never the best."""
    runs, best, points = shares.views.runs, shares.views.runs[shares.best], format_points(margin)
    models = [run.label for run in runs if not run.is_policy]
    if len(models) == len(runs):
        return f"the runs are within {points} points of the best, {best.label},"
    if len(models) == 1 and len(runs) == 2:
        (policy,) = (run.label for run in runs if run.is_policy)
        return f"{models[0]} is less than {points} points worse than its floor, {policy},"
    return f"the runs are within {points} points of one another"


def _for_width(shares: TargetShares, width: float) -> int:
    """Return the number of examples that narrow the 95% interval of each difference to ``width``."""
    others = [shares.difference(run, shares.best) for run in range(len(shares.views.runs)) if run != shares.best]
    widths = [high - low for low, high in (difference.interval() for difference in others)]
    return max(_scaled(shares.examples, now, width) for now in widths)


def _run_rows(
    run: RunView, views: RunViews, only: TargetMetric | None, width: float
) -> list[tuple[str, tuple[Cell, ...]]]:
    metrics = views.label_metrics
    if only is not None and only.name == ACCURACY:
        estimates = {ACCURACY: share_of_labels(run, metrics, only.hits > 0)}
    else:
        names = [only.name] if only else [*metrics.of]
        values = run_metrics(run, metrics, names, resamples=RESAMPLES, seed=views.seed)
        estimates = dict(zip(names, values, strict=True))
    return [(f"{run.label} / {name}", _cells(estimate, width, run)) for name, estimate in estimates.items()]


def _cells(now: Estimate, width: float, run: RunView) -> tuple[Cell, ...]:
    groups = run.examples
    if now.value is None or now.low is None or now.high is None:
        undefined = Estimate(None, n=groups, reason=now.reason or "one page says nothing of others")
        return (undefined, undefined, groups, undefined, undefined, undefined)
    width_now = now.high - now.low
    examples = _scaled(groups, width_now, width)
    return (Estimate(now.value, n=groups), Estimate(width_now, n=groups), groups, *_effort_cells(examples, [run]))


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
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for index, run in enumerate(runs):
        if index == best:
            continue
        difference = shares.difference(index, best)
        low, high = difference.interval()
        examples = shares.examples
        now = (Estimate(difference.value, n=examples), Estimate(high - low, n=examples), examples)
        pair = (run, runs[best])
        name = f"{run.label} / {shares.metric.name} beside {runs[best].label}"
        rows.append((name, (*now, *_effort_cells(_scaled(examples, high - low, width), pair))))
        effort = _effort_cells(examples_to_show(examples, difference.error, margin), pair)
        rows.append((f"{name}, to show the margin {margin:g}", (*now, *effort)))
    return rows


def examples_for_margin(shares: TargetShares, margin: float) -> int | None:
    """Return the number of examples that show all runs to be within the margin of the best with a power of 80%, if they are.

    None where it is unknown: one page says nothing of others.
    """
    others = [shares.difference(run, shares.best) for run in range(len(shares.views.runs)) if run != shares.best]
    if shares.clusters.own_count < 2 or not others:
        return None
    return max(examples_to_show(shares.examples, difference.error, margin) for difference in others)


def examples_to_show(examples: int, error: float, size: float, alpha: float = ALPHA) -> int:
    """Return the number of examples whose one-sided test at ``alpha`` shows a difference of ``size`` with a power of 80%.

    ``error`` is the standard error of the difference in a pilot of ``examples``.
    """
    reach = _NORMAL.inv_cdf(1 - alpha) + _NORMAL.inv_cdf(POWER)
    return _scaled(examples, error, size / reach)


def examples_that_show(difference: Difference, examples: int, limit: float, alpha: float) -> float:
    """Return the number of examples with a power of 80% to show that a difference is above ``limit``, at ``alpha`` one-sided.

    ``difference`` is that of ``examples`` examples, and the true one is as observed; where no answer changed, that is sure to be
    shown again. Infinity where no number does, or the observed examples are on one page.
    """
    is_constant = not difference.gained and not difference.lost
    confidence = 1 - alpha if is_constant else _NORMAL.cdf(_NORMAL.inv_cdf(1 - alpha) + _NORMAL.inv_cdf(POWER))
    least, most = 1.0, _MOST_EXAMPLES / max(examples, 1)
    if difference.clusters < 2 or most <= least or difference.repeated(most).lower(confidence) <= limit:
        return math.inf
    while most > 1.01 * least:
        middle = math.sqrt(least * most)
        least, most = (least, middle) if difference.repeated(middle).lower(confidence) > limit else (middle, most)
    return math.ceil(examples * most)


def fewest_examples(margin: float) -> int:
    """Return the fewest examples, each on a page of its own, that can show a loss below ``margin``: if none changes."""
    unchanged = Difference(0.0, 0.0, 0.0, (_FEW, _FEW), 0.0, _FEW, _FEW)
    return int(examples_that_show(unchanged, _FEW, -margin, ALPHA))


def _scaled(examples: int, now: float, wanted: float) -> int:
    """Return the number of examples, on as many more pages, that reduces a width or an error to the ``wanted`` one."""
    return max(1, math.ceil(examples * (now / wanted) ** 2 - 1e-9))


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
