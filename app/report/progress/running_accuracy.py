"""Running accuracy, what is done under conflict, and judging progress, from a run's counters alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

from app.report.progress.answers_under_conflict import Acts, is_own_data
from app.store.run_facts import judge_progress
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress
from app.text.text_escaping import clean
from benchmarks.answer_behaviour import ACTS, FOLLOWS, name_rules, names_sources
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate
from judges.base import newest


def accuracy(progress: ConditionProgress, run: RunSummary) -> Estimate:
    """Return a condition's accuracy so far by the run's first judge, as the tables count; n/a while nothing is labelled.

    It has no interval: the counters do not say which answers share a page. On the user's own data it has no value under
    conflict, where the paper's accuracy takes an invention for right.
    """
    share, benchmark = _accuracy([progress], run), _benchmark(run)
    is_conflict = benchmark is not None and progress.condition in benchmark.conflicts
    if benchmark is not None and is_conflict and is_own_data(benchmark, run.source):
        return Estimate(None, n=share.n, reason="under conflict, what an answer does counts")
    return share


def overall_accuracy(run: RunSummary) -> Estimate:
    """Return the accuracy so far over all conditions under which an answer is right or wrong by itself.

    It is over every condition of a run that has none of these. See :func:`accuracy`.
    """
    benchmark = _benchmark(run)
    counted = (
        run.progress if benchmark is None else [p for p in run.progress if p.condition in _counted(benchmark.name)]
    )
    return _accuracy(counted or run.progress, run)


class ConflictResult(NamedTuple):
    """A run's result so far under conflict, and the conditions it is over.

    Attributes:
        estimate: The number by which it is listed; n/a if there is none.
        measure: What that is: the paper's accuracy under "conflict", or over "all" conditions of a run without conflicts; on
            the user's own data the share of answers that follow a "rule", or nothing but the "acts" while none was said.
        answered: The number of answers under the conditions, of which those without a label may not count.
        acts: On the user's own data, the number of answers by act.
        rule: What should win there, in a word.
        hint: How to say it, if it can be said.
        metric: The paper's name of the accuracy under conflict, if it has one.
    """

    estimate: Estimate
    conditions: tuple[str, ...]
    measure: Literal["conflict", "all", "rule", "acts"]
    answered: int
    acts: Mapping[str, int] = {}
    rule: str = ""
    hint: str = ""
    metric: str = ""

    @property
    def of_conflicts(self) -> bool:
        """True if it is over conditions with a conflict."""
        return self.measure != "all"

    @property
    def own_sentence(self) -> str:
        """The acts under conflict in words, on the user's own data."""
        if not self.estimate.n:
            return "no label yet"
        if self.measure == "rule":
            return f"under conflict {self.estimate.value:.0%} follow your rule ({self.rule}), n={self.counted}"
        acts = ", ".join(f"{act} {count / self.estimate.n:.0%}" for act, count in self.acts.items())
        return f"under conflict {acts}, n={self.counted}"

    @property
    def counted(self) -> str:
        """The number of answers that count, of those that there are where some do not: "53/96"."""
        n = self.estimate.n
        return str(n) if n >= self.answered else f"{n}/{self.answered}"


def conflict_result(run: RunSummary, acts: Acts | None = None, rule: str | None = None) -> ConflictResult:
    """Return what a run comes to so far over the conditions under which the sources disagree (``Benchmark.conflicts``).

    This is the number by which runs are listed: over all conditions, a policy that always follows one source is as accurate as
    a model that reads both, because sources that agree or stand alone make up half of the conditions. On the user's own data,
    whose ``acts`` are known, it is how many answers follow ``rule``, or the rule of their row: an invented value is never right.
    """
    benchmark = _benchmark(run)
    progress = [] if benchmark is None else [p for p in run.progress if p.condition in benchmark.conflicts]
    counted = progress or run.progress
    conditions, answered = tuple(p.condition for p in counted), sum(p.done for p in counted)
    if acts is None:
        metric = benchmark.conflict_metric if benchmark is not None and progress else ""
        measure: Literal["conflict", "all"] = "conflict" if progress else "all"
        return ConflictResult(_accuracy(counted, run), conditions, measure, answered, metric=metric)
    return _own_result(benchmark, acts, rule, conditions, answered)


def _own_result(
    benchmark: Benchmark | None, acts: Acts, rule: str | None, conditions: tuple[str, ...], answered: int
) -> ConflictResult:
    """Return how many answers follow the ``rule`` or that of their row; where there is none, what they do."""
    n = sum(acts.values())
    by_act = {act: count for act in ACTS if (count := sum(c for (_, of), c in acts.items() if of == act))}
    says = benchmark is not None and names_sources(benchmark)
    name = name_rules({own or rule or "" for own, _ in acts}) if says else ""
    if not name:
        hint = "Settings (7) take what should win" if says else ""
        return ConflictResult(Estimate(None, n=n, reason="no rule"), conditions, "acts", answered, by_act, hint=hint)
    followed = sum(count for (own, act), count in acts.items() if act in FOLLOWS[own or rule or ""])
    return ConflictResult(Estimate(followed / n, n=n), conditions, "rule", answered, by_act, name)


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
