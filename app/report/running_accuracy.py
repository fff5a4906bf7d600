"""Running accuracy and judging progress, from a run's counters alone."""

from __future__ import annotations

from collections.abc import Sequence

from app.store.data_types import ConditionProgress, JudgedCounts
from app.store.workspace import RunSummary
from app.text.escape import clean
from benchmarks.vocabulary import Estimate
from judges.base import HUMAN, OVERRIDE, newest


def accuracy(progress: ConditionProgress, run: RunSummary) -> Estimate:
    """Return a condition's accuracy so far by the run's first judge, with its 95% Wilson interval.

    It is n/a while nothing is labelled.
    """
    return _accuracy([progress], run)


def overall_accuracy(run: RunSummary) -> Estimate:
    """Return the accuracy over all conditions so far; see :func:`accuracy`."""
    return _accuracy(run.progress, run)


def _accuracy(progress: Sequence[ConditionProgress], run: RunSummary) -> Estimate:
    from benchmarks.stats.intervals import wilson

    counts = []
    for p in progress:
        judge = newest(run.spec["judge"][0], p.judged)
        counts.append(JudgedCounts() if judge is None else p.judged[judge])
    return wilson(sum(count.correct for count in counts), sum(count.labelled for count in counts))


def judging_progress(run: RunSummary) -> list[str]:
    """Return the progress of each judge that is behind the answers; people are skipped, as they label what they choose."""
    counts: dict[str, int] = {}
    answered_counts: dict[str, int] = {}
    for p in run.progress:
        for judge, judge_counts in p.judged.items():
            counts[judge] = counts.get(judge, 0) + judge_counts.labelled + judge_counts.unparsed + judge_counts.failed
            answered_counts[judge] = answered_counts.get(judge, 0) + p.done - p.errors
    return [
        f"{count}/{answered_counts[judge]} judged by {clean(judge)}"
        for judge, count in counts.items()
        if count < answered_counts[judge] and not judge.startswith((HUMAN, OVERRIDE))
    ]
