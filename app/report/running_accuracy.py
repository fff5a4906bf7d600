"""What a run's progress counters say of it so far, without reading an answer."""

from __future__ import annotations

from collections.abc import Sequence

from app.store.rows import ConditionProgress, JudgedCounts
from app.store.workspace import RunSummary
from app.text.escape import clean
from benchmarks.base import Estimate
from judges.base import HUMAN, OVERRIDE, newest


def accuracy(progress: ConditionProgress, run: RunSummary) -> Estimate:
    """The share of right labels of a condition so far by the run's first judge, with its 95% Wilson interval; n/a while nothing
    is labelled."""
    return _share([progress], run)


def overall(run: RunSummary) -> Estimate:
    """The share of right labels over all conditions so far, as :func:`accuracy`."""
    return _share(run.progress, run)


def _share(progress: Sequence[ConditionProgress], run: RunSummary) -> Estimate:
    from benchmarks.stats.intervals import wilson

    found = []
    for p in progress:
        judge = newest(run.spec["judge"][0], p.judged)
        found.append(JudgedCounts() if judge is None else p.judged[judge])
    return wilson(sum(judged.correct for judged in found), sum(judged.labelled for judged in found))


def judging(run: RunSummary) -> list[str]:
    """How far each judge is that is behind the answers; people are behind nothing, since they label what they choose to."""
    counts: dict[str, int] = {}
    answered: dict[str, int] = {}
    for p in run.progress:
        for judge, judged in p.judged.items():
            counts[judge] = counts.get(judge, 0) + judged.labelled + judged.unparsed + judged.failed
            answered[judge] = answered.get(judge, 0) + p.done - p.errors
    return [
        f"{count}/{answered[judge]} judged by {clean(judge)}"
        for judge, count in counts.items()
        if count < answered[judge] and not judge.startswith((HUMAN, OVERRIDE))
    ]
