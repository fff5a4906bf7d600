"""Change of one part of the answers, such as those under conflict, from one run to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.compare.decision.sample_size import examples_that_show, examples_to_show
from app.compare.decision.trust_metric import rule_of_rows
from app.compare.differences.lost_and_gained import acts_of_answers, follows_rule, from_sources
from app.compare.differences.undecided_bounds import difference_bounds, undecided_of
from app.compare.runs.decision_scores import CUT_OFF, GIVES_RIGHT, NO_ANSWER, score_bounds
from app.compare.runs.packed_answers import PackedAnswers, Places
from app.compare.runs.run_pairs import Array, RunPair
from app.compare.runs.run_view import RunView, RunViews
from app.text.percentage_points import format_points
from benchmarks.answer_behaviour import ACTS, has_scorecard
from benchmarks.base import Benchmark
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import span
from benchmarks.stats.paired_tests import Difference, paired_p
from benchmarks.vocabulary import Estimate

ABSTAINS = "abstains"
_NO_ANSWER = ACTS["none"]
_BEHAVIOURS = {**ACTS, "flags": ABSTAINS}
_NOTHING = "nothing was answered in both runs"
_SCALE = 30
"""A multiple of the denominators of the scores 0.3, 0.6, 1/3 and 1, so that tests work with whole numbers."""

Scores = Mapping[str, Mapping[str, tuple[float, float]]]
"""The least and the greatest score of each outcome by condition."""


@dataclass(frozen=True, slots=True)
class Change:
    """A share on one part of the answers, before and after.

    Attributes:
        part: The part, as in "loses 2 points PART": "under conflict", "without conflict", "on POPE".
        before: The base's share.
        after: The fine-tuned model's share.
        difference: The difference with its paired 95% interval.
        lost, gained: The numbers of answers whose score fell and rose.
        p: Its two-sided p; see :func:`paired_p`.
        bounds: The difference of shares at its least and its greatest, whatever the undecided answers turn out to be; None
            where it is no difference of shares.
        examples: The number of examples behind it.
        became: What the answers whose score fell do now, as in "invents a value", with their numbers, the largest first.
        rose_by: The same of the answers whose score rose.
        is_lower_better: True for a metric of which lower values are better: a rise of it is a loss.
        total: The part of several conditions, such as "without conflict", of which this is a single one; "" for none.
        of_right: The change without the losses of answers that were wrong before, where these alone decide nothing.
    """

    part: str
    before: Estimate
    after: Estimate
    difference: Estimate
    lost: int
    gained: int
    p: float | None
    bounds: tuple[Difference, Difference] | None
    examples: int = 0
    became: tuple[tuple[str, int], ...] = ()
    rose_by: tuple[tuple[str, int], ...] = ()
    is_lower_better: bool = False
    total: str = ""
    of_right: Change | None = None

    def exceeds(self, limit: float) -> bool:
        """Return whether the improvement is shown to be above ``limit``, by its one-sided 95% bound."""
        return (least := self._least()) is not None and least > limit

    def stays_below(self, limit: float) -> bool:
        """Return whether the improvement is shown to be below ``limit``, by its one-sided 95% bound."""
        return self._reversed().exceeds(-limit)

    def is_loss(self) -> bool:
        """Return whether a loss is shown, by the two-sided 95% interval."""
        return (interval := self._improvement()) is not None and interval[1] < 0

    def is_gain(self) -> bool:
        """Return whether a gain is shown, by the two-sided 95% interval."""
        return (interval := self._improvement()) is not None and interval[0] > 0

    def interval(self) -> tuple[float, float] | None:
        """Return the interval that decides; None if there is none."""
        if self.bounds is not None:
            return self.bounds[0].interval()[0], self.bounds[1].interval()[1]
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else (low, high)

    def points(self, *, sign: bool = True) -> str:
        """Return the difference with the interval that decides, in percentage points; without ``sign``, its size."""
        if self.difference.value is None:
            return f"an unknown difference ({self.difference.reason})"
        value = self.difference.value if sign else abs(self.difference.value)
        text = f"{format_points(value, sign=sign)} points"
        if (interval := self.interval()) is None:
            return text
        low, high = (format_points(x, sign=True) for x in interval)
        return f"{text} ({span(low, high)} at 95%)"

    def bounded_loss(self) -> str:
        """Return the difference in percentage points with the one-sided 95% bound of its worst, by which a loss is excluded."""
        return self._bounded(self._least(), "at most" if self.is_lower_better else "at least")

    def bounded_gain(self) -> str:
        """Return the difference in percentage points with the one-sided 95% bound of its best, by which a gain is excluded."""
        return self._bounded(self._reversed()._least(), "at least" if self.is_lower_better else "at most")

    def _bounded(self, end: float | None, word: str) -> str:
        text = f"{format_points(self.difference.value or 0, sign=True)} points"
        if end is None:
            return text
        bound = -end if word == "at most" else end
        return f"{text}, {word} {format_points(bound, sign=True)} at 95%"

    @property
    def p_of_bounds(self) -> float:
        """The largest p whatever the undecided answers turn out to be; 1 where nothing counts."""
        if self.p is None:
            return 1.0
        return max(self.p, *(end.p for end in self.bounds)) if self.bounds is not None else self.p

    @property
    def undecided(self) -> bool:
        """True if answers that the judge has not decided widen the interval."""
        return self.bounds is not None and self.bounds[0].value != self.bounds[1].value

    def examples_above(self, limit: float, *, two_sided: bool = True) -> float:
        """Return the number of examples that would show an improvement above ``limit``, if it is as observed; else infinity."""
        alpha = 0.025 if two_sided else 0.05
        if self._ends is not None:
            return examples_that_show(self._ends[0], self.examples, limit, alpha)
        value, interval = self.difference.value, self._improvement()
        if value is None or interval is None:
            return float("inf")
        size = (-value if self.is_lower_better else value) - limit
        error = (interval[1] - interval[0]) / 4
        return examples_to_show(self.examples, error, size, alpha) if size > 0 else float("inf")

    def examples_below(self, limit: float, *, two_sided: bool = True) -> float:
        """Return the number of examples that would show an improvement below ``limit``, if it is as observed; else infinity."""
        return self._reversed().examples_above(-limit, two_sided=two_sided)

    def _least(self) -> float | None:
        """Return the one-sided 95% bound of the improvement; for what is no share, the lower end of its two-sided interval."""
        if self._ends is not None:
            return self._ends[0].lower()
        return None if (interval := self._improvement()) is None else interval[0]

    @property
    def _ends(self) -> tuple[Difference, Difference] | None:
        """The bounds of the improvement."""
        if self.bounds is None or not self.is_lower_better:
            return self.bounds
        return self.bounds[1].reversed(), self.bounds[0].reversed()

    def _improvement(self) -> tuple[float, float] | None:
        """Return the interval of the improvement."""
        if (interval := self.interval()) is None or not self.is_lower_better:
            return interval
        return -interval[1], -interval[0]

    def _reversed(self) -> Change:
        return replace(self, is_lower_better=not self.is_lower_better)


@dataclass(frozen=True)
class Measure:
    """The changes between two runs of a benchmark, on the instances that both have answered."""

    views: RunViews
    pair: RunPair

    @classmethod
    def of(cls, views: RunViews, before: RunView, after: RunView, resamples: int) -> Measure:
        """Return the measure of two runs of ``views``."""
        return cls(views, RunPair(before, after, views.label_metrics, resamples, views.seed))

    @property
    def _benchmark(self) -> Benchmark:
        return self.views.benchmark

    def change(self, part: str, conditions: Sequence[str], *, flags_count: bool = False) -> Change:
        """Return the change of accuracy under ``conditions``; with ``flags_count`` naming a conflict is right there.

        Where the rows say what should win, an answer under conflict is right if it follows that.
        """
        return self._of_scores(part, *self._scores(conditions, flags_count=flags_count))

    def _scores(self, conditions: Sequence[str], *, flags_count: bool) -> list[Array]:
        """Return the scores of the shared answers of both runs."""
        scores = [answer_scores(run.coded, self.views, conditions, flags_count=flags_count) for run in self._runs]
        return [of[places] for of, places in zip(scores, self.pair.places, strict=True)]

    def by_condition(
        self, prefix: str, conditions: Sequence[str], total: str, *, flags_count: bool = False
    ) -> tuple[Change, ...]:
        """Return the change under each condition of which both runs have instances; none if that is a single one.

        ``total`` is the part that they are together; "" for none.
        """
        shared = [condition for condition in conditions if condition in self.shared_conditions]
        changes = [self.change(f"{prefix}under {name}", (name,), flags_count=flags_count) for name in shared]
        return tuple(replace(change, total=total) for change in changes) if len(changes) > 1 else ()

    def change_of_sources(self, part: str) -> Change:
        """Return the change of the share of answers under conflict that are from the sources; see :class:`Transitions`.

        A model that takes the right source may invent where it took the wrong one before, so that ``of_right`` leaves that out.
        """
        before, after = (
            from_sources(run.coded, self._benchmark)[places]
            for run, places in zip(self._runs, self.pair.places, strict=True)
        )
        right, _ = self._scores(self._benchmark.conflicts, flags_count=bool(self._benchmark.detection))
        kept = np.where(right[:, 1:] > 0, after, np.maximum(before, after))
        return replace(self._of_scores(part, before, after), of_right=self._of_scores(part, before, kept))

    def metric_change(self, metric: str) -> Change:
        """Return the change of a metric of the benchmark, over the answers that count in both runs."""
        pair, metrics = self.pair, self.views.label_metrics
        paired = pair.compare(metrics.of[metric])
        before, after = (Estimate(x.value, n=x.n, reason=x.reason) for x in (paired.first, paired.second))
        undecided = undecided_of(pair)
        ends = (paired, paired) if undecided is None else difference_bounds(pair, metrics.of[metric], undecided)
        shares = [end.share for end in ends if end.share is not None]
        return Change(
            f"in {metric}",
            before,
            after,
            paired.difference,
            paired.lost or 0,
            paired.gained or 0,
            paired.p,
            (shares[0], shares[1]) if len(shares) == 2 else None,
            self._examples(pair.coded[:, 0]),
            is_lower_better=metrics.lower_is_better.get(metric, False),
        )

    @cached_property
    def shared_conditions(self) -> frozenset[str]:
        """The conditions of the instances that both runs have."""
        coded = self.pair.first.coded
        return frozenset(coded.conditions[number] for number in np.unique(coded.condition[self.pair.places[0]]))

    @property
    def _runs(self) -> tuple[RunView, RunView]:
        return self.pair.first, self.pair.second

    def _of_scores(self, part: str, before: Array, after: Array) -> Change:
        """Return the change of scores, the least and the greatest of each shared answer; nan where it does not count."""
        counts = ~np.isnan(before).any(1) & ~np.isnan(after).any(1)
        is_decided = counts & (before[:, 0] == before[:, 1]) & (after[:, 0] == after[:, 1])
        n, first, second = int(is_decided.sum()), before[is_decided, 0], after[is_decided, 0]
        lead = second - first
        clusters = self.pair.clusters.at(is_decided)
        difference = clusters.difference(lead) if n else None
        least, greatest = (
            _difference(self.pair.clusters.at(counts), lead[counts])
            for lead in (after[:, 0] - before[:, 1], after[:, 1] - before[:, 0])
        )
        fell, rose = is_decided.copy(), is_decided.copy()
        fell[is_decided], rose[is_decided] = lead < 0, lead > 0
        means = [Estimate(float(x.mean()), n=n) if n else Estimate(None, reason=_NOTHING) for x in (first, second)]
        return Change(
            part,
            means[0],
            means[1],
            Estimate(None, reason=_NOTHING) if difference is None else difference.estimate,
            int(fell.sum()),
            int(rose.sum()),
            None if difference is None else paired_p(clusters.sums(np.rint(_SCALE * lead)), difference),
            None if difference is None or least is None or greatest is None else (least, greatest),
            self._examples(np.flatnonzero(is_decided)),
            self._behaviours(fell),
            self._behaviours(rose),
        )

    def _examples(self, places: Places) -> int:
        """Return the number of examples behind the shared answers at these places."""
        return len(np.unique(self.pair.first.coded.example[self.pair.places[0][places]]))

    def _behaviours(self, chosen: NDArray[np.bool_]) -> tuple[tuple[str, int], ...]:
        """Return what the second run's answers do at these places, and how often, the most frequent first."""
        numbers, names = self._after
        counts = Counter(numbers[chosen].tolist())
        return tuple((names[number], count) for number, count in counts.most_common() if number >= 0)

    @cached_property
    def _after(self) -> tuple[Places, Sequence[str]]:
        """The number of what each shared answer of the second run does, -1 for what has no words, and the words."""
        coded, there = self.pair.second.coded, self.pair.places[1]
        if has_scorecard(self._benchmark):
            return acts_of_answers(coded, self._benchmark)[there], [*_BEHAVIOURS.values()]
        words = dict.fromkeys(NO_ANSWER, _NO_ANSWER) | dict(self._benchmark.behaviours)
        names = [*dict.fromkeys(words.values())]
        numbers = coded.outcome_codes({outcome: names.index(word) for outcome, word in words.items()})
        return np.where(coded.cut_off, names.index(_NO_ANSWER), numbers)[there], names


def answer_scores(
    answers: PackedAnswers, views: RunViews, conditions: Sequence[str], *, flags_count: bool = False
) -> Array:
    """Return the least and the greatest score of each answer in the change that :meth:`Measure.change` gives; nan elsewhere."""
    benchmark = views.benchmark
    of_outcomes = {condition: dict(score_bounds(benchmark, condition)) for condition in conditions}
    if flags_count and (rule := benchmark.abstention) is not None:
        for condition, outcomes in of_outcomes.items():
            outcomes |= dict.fromkeys(rule.labels.get(condition, ()), (1.0, 1.0))
    scores = scores_of(answers, of_outcomes)
    if rule_of_rows(views):
        by_rule = [condition for condition in conditions if condition in benchmark.conflicts]
        is_by_rule = answers.condition_codes(dict.fromkeys(by_rule, 0)) == 0
        scores[is_by_rule] = follows_rule(answers, benchmark)[is_by_rule]
    return scores


def scores_of(answers: PackedAnswers, of_outcomes: Scores) -> Array:
    """Return the least and the greatest score of each answer in a decision; nan where it has none. Shape (answers, 2)."""
    names = (*answers.outcomes, CUT_OFF, GIVES_RIGHT)
    of_conditions = [of_outcomes.get(condition, {}) for condition in answers.conditions]
    table = np.array([[scores.get(name, (np.nan, np.nan)) for name in names] for scores in of_conditions])
    right = np.where(answers.gives_right, len(names) - 1, answers.outcome)
    decided = np.where(answers.cut_off, len(names) - 2, right)
    return table.reshape(-1, len(names), 2)[answers.condition, decided]


def _difference(clusters: Clusters, lead: Array) -> Difference | None:
    return clusters.difference(lead) if len(lead) else None
