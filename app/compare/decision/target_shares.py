"""Target shares: the answers that a decision between runs rests on, and the lead of each run over each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.compare.decision.target_metric import TargetMetric
from app.compare.runs.decision_scores import CUT_OFF, GIVES_RIGHT, NO_ANSWER, UNKNOWN
from app.compare.runs.run_pairs import Array, label_codes
from app.compare.runs.run_view import RunView, RunViews
from benchmarks.errors import SpecError
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.paired_tests import Difference, holm

ALPHA = 0.05
"""The significance level: the highest long-run rate of runs that are said to hold, but do not."""


@dataclass(frozen=True)
class TargetShares:
    """The answers that a decision rests on: those that count in all runs, under the conditions of the metric.

    ``label``, of shape (answers, runs), holds the index of each label; one past the last is no answer, the next the right value
    where no source has it. ``group``, the example, and ``condition``, of shape (answers,), are indices too.
    """

    views: RunViews
    metric: TargetMetric
    group: NDArray[np.integer[Any]]
    clusters: Clusters
    condition: NDArray[np.int64]
    label: NDArray[np.int64]
    every: UndecidedAnswers | None = None
    """These answers with those that the judge has not decided in some of the runs; None where it has decided all."""
    setting: NDArray[np.int64] | None = None
    """The row of the metric's ``hits`` for each answer, shape (answers,); None: that of its condition."""
    ids: Sequence[str] = ()
    """The instance of each answer."""

    @cached_property
    def hit(self) -> Array:
        """The credit of each answer for its run, from 0 to 1, of shape (answers, runs)."""
        setting = self.condition if self.setting is None else self.setting
        return _credit(self.metric)[setting[:, None], self.label]

    @cached_property
    def credits(self) -> Credits:
        """The credits of all answers, with those that are undecided in some of the runs."""
        every = self.every
        if every is None or every.group is None:
            return Credits(self.clusters, self.hit, self.label, self.group, self.ids)
        setting = every.condition if every.setting is None else every.setting
        hit = np.where(every.label < 0, np.nan, _credit(self.metric)[setting[:, None], every.label])
        return Credits(every.clusters, hit, every.label, every.group, every.ids)

    @cached_property
    def weight(self) -> Array:
        """The weight of each answer, of shape (answers,)."""
        mix = self.metric.mix
        return np.ones(len(self.condition)) if mix is None else mix.weights(self.condition)

    @cached_property
    def _means(self) -> Array:
        """The weighted mean of ``hit`` of each run, of shape (runs,)."""
        means: Array = (self.hit * self.weight[:, None]).mean(0)
        return means

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(np.unique(self.group))

    @cached_property
    def shares(self) -> Array:
        """The metric of each run, not inverted where lower is better; shape (runs,)."""
        return 1 - self._means if self.metric.lower_is_better else self._means

    @cached_property
    def best(self) -> int:
        """The index of the best run; of equals, the first."""
        return int(np.argmax(self._means))

    def difference(self, run: int, other: int) -> Difference:
        """Return the lead of ``run`` over ``other`` in the answers that are decided for all runs."""
        return _difference(self.clusters, self.hit[:, run] - self.hit[:, other], self.weight)

    def least(self, run: int, other: int) -> Difference:
        """Return the lead of ``run`` over ``other`` where the undecided answers of both turn out against ``run``."""
        return self.difference(run, other) if self.every is None else self.every.least_difference(run, other)

    def interval(self, run: int, other: int, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the lead of ``run`` over ``other``, whatever the undecided answers turn out to be."""
        return self.least(run, other).interval(level)[0], -self.least(other, run).interval(level)[0]

    def p_values(self, margin: float) -> list[float]:
        """Return for each run the p against being worse than the best by ``margin``: the largest over all other runs.

        A run within the margin of every other run is within the margin of the best, whichever that is: an intersection-union
        test, which needs no correction. Testing several runs needs one: Holm's. While answers are undecided, the p holds
        whatever they turn out to be.
        """
        runs = range(len(self.views.runs))
        if len(runs) == 1:
            return [0.0]
        largest = [max(self.least(i, j).non_inferiority_p(margin) for j in runs if j != i) for i in runs]
        return [1.0 if p is None else p for p in holm(largest)]


class Credits(NamedTuple):
    """The credit of every answer for its run, from 0 to 1, nan where its label is not known; shape (answers, runs).

    ``label``, of its shape, is -1 there; ``group`` and ``ids`` are the answers' examples and instances.
    """

    clusters: Clusters
    hit: Array
    label: NDArray[np.int64]
    group: NDArray[np.integer[Any]]
    ids: Sequence[str]


@dataclass(frozen=True)
class UndecidedAnswers:
    """The answers of :class:`TargetShares`, and those whose label is not known in some of the runs.

    ``label`` is -1 for such an answer; ``text``, of its shape, has equal numbers for equal answers to an instance.
    """

    metric: TargetMetric
    clusters: Clusters
    condition: NDArray[np.int64]
    label: NDArray[np.int64]
    text: NDArray[np.int64]
    setting: NDArray[np.int64] | None = None
    group: NDArray[np.integer[Any]] | None = None
    ids: Sequence[str] = ()

    @property
    def counts(self) -> list[int]:
        """The number of such answers of each run."""
        counts: list[int] = (self.label < 0).sum(0).tolist()
        return counts

    def least_difference(self, run: int, other: int) -> Difference:
        """Return the lead of ``run`` over ``other`` where the undecided answers of both turn out against ``run``.

        Equal answers to an instance have equal labels, so they make no difference.
        """
        credit, setting = _credit(self.metric), self.condition if self.setting is None else self.setting
        least, greatest = (bound[setting] for bound in (credit[:, :-2].min(1), credit[:, :-2].max(1)))
        own, others = (
            np.where(self.label[:, place] < 0, bound, credit[setting, self.label[:, place]])
            for place, bound in ((run, least), (other, greatest))
        )
        lead = np.where(self.text[:, run] == self.text[:, other], 0.0, own - others)
        weight = np.ones(len(lead)) if self.metric.mix is None else self.metric.mix.weights(self.condition)
        return _difference(self.clusters, lead, weight)


def _difference(clusters: Clusters, lead: Array, weight: Array) -> Difference:
    """Return the weighted mean ``lead`` of answers, shape (answers,), as a difference of shares."""
    difference = clusters.difference(lead, weight)
    assert difference is not None
    return difference


def _credit(metric: TargetMetric) -> Array:
    """Return the credit of each label under each condition, from 0 to 1, of no answer and of the right value that no source has.

    The shape is that of ``hits``, with two labels more.
    """
    scores = metric.hits.astype(float)
    credit = np.pad(1 - scores if metric.lower_is_better else scores, ((0, 0), (0, 2)))
    credit[:, -1] = metric.right_value or 0.0
    return credit


def target_shares(views: RunViews, metric: TargetMetric, *, jointly: bool = True) -> TargetShares:
    """Return the answers that count in all runs; unless ``jointly``, there may be none of which all labels are known.

    Raises:
        SpecError: There are none.
    """
    metrics = views.label_metrics
    # Each repeat of a run that has them is paired with the answer of one that has none.
    first = next((run.coded for run in views.runs if run.coded.is_repeated), views.runs[0].coded)
    no_answer = len(metrics.labels)
    unknown = no_answer + 2
    codes = {**dict.fromkeys(UNKNOWN, unknown), "error": unknown + 1, **label_codes(metrics)}
    if metric.counts_no_answer:
        codes = {**dict.fromkeys(NO_ANSWER, no_answer), **codes}
    if metric.right_value is not None:
        codes[GIVES_RIGHT] = no_answer + 1
    condition = (
        first.source_codes({metric.source: 0})
        if metric.source
        else first.condition_codes({condition: i for i, condition in enumerate(metrics.conditions)})
    )
    setting = condition
    if metric.rules:
        rule = first.rule_codes({name: i for i, name in enumerate(metric.rules)})
        setting = np.where(condition < 0, -1, rule * len(metrics.conditions) + condition)
    is_used = np.append(metric.hits.any(1), False)[setting]  # False for -1, a condition that does not count
    labels = np.full((len(first), len(views.runs)), -1)
    there = [run.coded.places(first.ids) for run in views.runs]
    for number, (run, places_there) in enumerate(zip(views.runs, there, strict=True)):
        known = places_there >= 0
        labels[known, number] = _decided(run, codes)[places_there[known]]
    present = is_used & (labels >= 0).all(1)
    rows = np.flatnonzero(present & (labels < unknown).all(1))
    every = np.flatnonzero(present)
    if not len(rows if jointly else every):
        raise SpecError(
            f"no instance that counts for {metric.name} is labelled by {views.judge} in all of these runs; "
            "`rashomon compare` says what each run lacks."
        )
    open_answers = None
    if len(every) > len(rows):
        label = labels[every]
        text = _texts(views, label == unknown, [place[every] for place in there])
        label[label >= unknown] = -1
        open_answers = UndecidedAnswers(
            metric,
            first.clusters.at(every),
            condition[every],
            label,
            text,
            setting[every],
            first.example[every],
            first.ids.at(every),
        )
    clusters = first.clusters.at(rows)
    counted = first.example[rows], clusters, condition[rows], labels[rows]
    return TargetShares(views, metric, *counted, open_answers, setting[rows], first.ids.at(rows))


def _decided(run: RunView, codes: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the codes of a run's outcomes in a decision, -1 for an answer that does not count; shape (answers,)."""
    outcomes = run.coded.outcome_codes(codes)
    if GIVES_RIGHT in codes:
        outcomes = np.where(run.coded.gives_right, codes[GIVES_RIGHT], outcomes)
    is_cut_off = run.coded.cut_off & (outcomes >= 0) if CUT_OFF in codes else np.zeros(len(outcomes), np.bool_)
    return np.where(is_cut_off, codes.get(CUT_OFF, -1), outcomes)


def _texts(views: RunViews, undecided: NDArray[np.bool_], there: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return numbers of the undecided answers' texts, of their shape; other answers have numbers that equal no other."""
    numbers = -1 - np.arange(undecided.size).reshape(undecided.shape)
    known: dict[str, int] = {}
    for run, view in enumerate(views.runs):
        rows = np.flatnonzero(undecided[:, run])
        for row, text in zip(rows.tolist(), view.answer_texts(there[run][rows]), strict=True):
            numbers[row, run] = known.setdefault(text, len(known))
    return numbers
