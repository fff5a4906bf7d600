"""Running accuracy and judging progress, from a run's counters alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from app.store.data_types import ConditionProgress, JudgedCounts
from app.store.run_facts import judge_progress
from app.store.workspace import RunSummary
from app.text.escape import clean
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate
from judges.base import newest


def accuracy(progress: ConditionProgress, run: RunSummary) -> Estimate:
    """Return a condition's accuracy so far by the run's first judge, with its 95% Wilson interval.

    It is n/a while nothing is labelled, and without an interval over the cells of a varied build, as each has the same examples.
    """
    return _accuracy([progress], run)


def overall_accuracy(run: RunSummary) -> Estimate:
    """Return the accuracy over all conditions so far; see :func:`accuracy`."""
    return _accuracy(run.progress, run)


class ConflictAccuracy(NamedTuple):
    """A run's accuracy so far under conflict, and the conditions it is over.

    ``of_conflicts`` is False if the run has no condition with a conflict; the accuracy is then over all its conditions.
    """

    estimate: Estimate
    conditions: tuple[str, ...]
    of_conflicts: bool


def conflict_accuracy(run: RunSummary) -> ConflictAccuracy:
    """Return the accuracy so far over the conditions under which the sources disagree (``Benchmark.conflicts``).

    This is the number by which runs are listed: over all conditions, a policy that always follows one source is as accurate as
    a model that reads both, because sources that agree or stand alone make up half of the conditions.
    """
    conflicts = _conflicts(str(run.spec.get("benchmark", "")))
    progress = [p for p in run.progress if p.condition in conflicts]
    counted = progress or run.progress
    return ConflictAccuracy(_accuracy(counted, run), tuple(p.condition for p in counted), bool(progress))


@cache
def _conflicts(benchmark: str) -> frozenset[str]:
    """Return a benchmark's conditions with a conflict; none if its package is not installed."""
    try:
        return frozenset(get_benchmark(benchmark).conflicts)
    except SpecError:
        return frozenset()


def _accuracy(progress: Sequence[ConditionProgress], run: RunSummary) -> Estimate:
    from benchmarks.stats.intervals import wilson

    counts = []
    for p in progress:
        judge = newest(run.spec["judge"][0], p.judged)
        counts.append(JudgedCounts() if judge is None else p.judged[judge])
    estimate = wilson(sum(count.correct for count in counts), sum(count.labelled for count in counts))
    return estimate if run.cells == 1 else replace(estimate, low=None, high=None)


def judging_progress(run: RunSummary) -> list[str]:
    """Return the progress of each judge that is behind the answers, out of all answers of the run that it judges."""
    progress = judge_progress(run.spec, run.progress)
    return [f"{p.judged}/{p.total} judged by {clean(p.judge)}" for p in progress if p.judged < p.now]
