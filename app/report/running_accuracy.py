"""Running accuracy and judging progress, from a run's counters alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from app.store.data_types import ConditionProgress
from app.store.run_facts import judge_progress
from app.store.workspace import RunSummary
from app.text.escape import clean
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate
from judges.base import newest


def accuracy(progress: ConditionProgress, run: RunSummary) -> Estimate:
    """Return a condition's accuracy so far by the run's first judge, as the tables count; n/a while nothing is labelled.

    It has no interval: the counters do not say which answers share a page.
    """
    return _accuracy([progress], run)


def overall_accuracy(run: RunSummary) -> Estimate:
    """Return the accuracy so far over all conditions under which an answer is right or wrong by itself.

    It is over every condition of a run that has none of these. See :func:`accuracy`.
    """
    benchmark = _benchmark(run)
    counted = (
        run.progress if benchmark is None else [p for p in run.progress if p.condition in _counted(benchmark.name)]
    )
    return _accuracy(counted or run.progress, run)


class ConflictAccuracy(NamedTuple):
    """A run's accuracy so far under conflict, and the conditions it is over.

    ``of_conflicts`` is False if the run has no condition with a conflict; the accuracy is then over all its conditions.
    ``answered`` is the number of answers under the conditions, of which those without a label may not count.
    """

    estimate: Estimate
    conditions: tuple[str, ...]
    of_conflicts: bool
    answered: int

    @property
    def counted(self) -> str:
        """The number of answers that count, of those that there are where some do not: "53/96"."""
        n = self.estimate.n
        return str(n) if n >= self.answered else f"{n}/{self.answered}"


def conflict_accuracy(run: RunSummary) -> ConflictAccuracy:
    """Return the accuracy so far over the conditions under which the sources disagree (``Benchmark.conflicts``).

    This is the number by which runs are listed: over all conditions, a policy that always follows one source is as accurate as
    a model that reads both, because sources that agree or stand alone make up half of the conditions.
    """
    benchmark = _benchmark(run)
    progress = [] if benchmark is None else [p for p in run.progress if p.condition in benchmark.conflicts]
    counted = progress or run.progress
    conditions, answered = tuple(p.condition for p in counted), sum(p.done for p in counted)
    return ConflictAccuracy(_accuracy(counted, run), conditions, bool(progress), answered)


def _benchmark(run: RunSummary) -> Benchmark | None:
    return _find_benchmark(str(run.spec.get("benchmark", "")))


@cache
def _find_benchmark(name: str) -> Benchmark | None:
    """Return a benchmark; None if its package is not installed."""
    try:
        return get_benchmark(name)
    except SpecError:
        return None


@cache
def _counted(benchmark: str) -> frozenset[str]:
    return get_benchmark(benchmark).counted_conditions


def _accuracy(progress: Sequence[ConditionProgress], run: RunSummary) -> Estimate:
    benchmark = _benchmark(run)
    score, n = 0.0, 0
    for p in progress:
        if (judge := newest(run.spec["judge"][0], p.judged)) is None:
            continue
        counts = p.judged[judge]
        known = benchmark if benchmark is not None and p.condition in benchmark.conditions else None
        score, n = score + counts.correct, n + counts.counted(known)
        if known is not None and known.unparsed_label is not None:
            score += counts.unparsed * known.score(p.condition, known.unparsed_label)
    return Estimate(score / n, n=n) if n else Estimate(None, reason="no answers")


def judging_progress(run: RunSummary) -> list[str]:
    """Return the progress of each judge that is behind the answers, out of all answers of the run that it judges."""
    progress = judge_progress(run.spec, run.progress)
    return [f"{p.judged}/{p.total} judged by {clean(p.judge)}" for p in progress if p.judged < p.now]
