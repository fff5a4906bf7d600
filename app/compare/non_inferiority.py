"""Non-inferiority tests: the smallest and the fastest run that are within a margin of the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.compare.cost import LabelMask, correct_labels
from app.compare.decided import CUT_OFF, GIVES_RIGHT, NO_ANSWER, UNKNOWN
from app.compare.pairs import Array, label_codes
from app.compare.run_view import RunView, RunViews
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.paired_tests import Difference, holm, share_labels
from benchmarks.vocabulary import LabelMetrics

ALPHA = 0.05
"""The significance level: the highest long-run rate of runs that are said to hold, but do not."""

ACCURACY = "accuracy"
SAME_TIME = 0.1
"""The relative difference up to which speeds count as equal: other load on the machine explains it."""


@dataclass(frozen=True, slots=True)
class ConditionShares:
    """The share of the answers under some conditions, a mask of shape (conditions,), that a metric is to rest on."""

    conditions: NDArray[np.bool_]
    share: float

    def weights(self, condition: NDArray[np.int64]) -> Array:
        """Return weights of answers under these conditions that give the share; their mean is 1. Shape (answers,).

        Raises:
            SpecError: There is no answer of a kind that the share needs.
        """
        inside = self.conditions[condition]
        present = float(inside.mean())
        if (self.share and not present) or (self.share < 1 and present == 1):
            raise SpecError(
                "these runs share no labelled answers under conflict, or none without it; run both, or leave the share of "
                "conflicts out."
            )
        weights: Array = np.where(
            inside, self.share / (present or 1.0), (1 - self.share) / (1 - present if present < 1 else 1.0)
        )
        return weights


@dataclass(frozen=True, slots=True)
class TargetMetric:
    """The metric that decides: the mean score of all answers under the conditions that have a score.

    Attributes:
        hits: The score of each label, from 0 to 1, shape (conditions, labels); for a share of labels, a mask. With ``rules``,
            for each rule in turn, shape (rules * conditions, labels).
        mix: The share of answers that some conditions are to have; None takes the answers as they are.
        note: Its definition, if the tables have none.
    """

    name: str
    hits: LabelMask | Array
    lower_is_better: bool = False
    mix: ConditionShares | None = None
    note: str = ""
    counts_no_answer: bool = False
    """An empty answer or one that was cut off counts, with a score of 0; else it is left out."""
    right_value: float | None = None
    """The score of the right value though no source has it; None: that of its label."""
    rules: tuple[str, ...] = ()
    """The rules of the rows themselves, where these decide; "" for rows without one."""
    source: str = ""
    """The source whose answers alone count; ``hits`` then has a single row."""
    clause: str = ""
    """The words that say in a sentence that runs are compared by it."""
    strictness: str = ""
    """The clause on answers that are wrong in a decision, and need not be in the benchmark's tables."""

    @property
    def compared(self) -> str:
        """The clause on what runs are compared by: "in HR"."""
        return self.clause or f"in {self.name}"


def target_metric(views: RunViews, name: str | None, *, lower_is_better: bool = False) -> TargetMetric:
    """Return the metric called ``name``; None is the accuracy.

    Raises:
        SpecError: The metric is unknown, or no share of all answers, or its direction is another.
    """
    if name is None or name.casefold() == ACCURACY:
        if lower_is_better:
            raise SpecError("a lower accuracy is not better; name another --metric with --lower-is-better.")
        inventions = views.benchmark.inventions
        return TargetMetric(
            ACCURACY,
            correct_labels(views) & ~np.isin(views.label_metrics.labels, list(inventions)),
            counts_no_answer=True,
            right_value=1.0,
            clause="by the benchmark's accuracy",
            strictness=f"an empty{', truncated or invented' if inventions else ' or truncated'} answer is wrong",
        )
    metrics = views.label_metrics
    known = {metric.casefold(): metric for metric in metrics.of}
    if name.casefold() not in known:
        names = (ACCURACY, *metrics.of)
        raise SpecError(f"{views.benchmark.name} has no metric {name!r}; {did_you_mean(name, names)}")
    name = known[name.casefold()]
    hits = share_labels(metrics.of[name], metrics)
    if hits is None:
        shares = [metric for metric, function in metrics.of.items() if share_labels(function, metrics) is not None]
        raise SpecError(f"{name} is no share of all answers, so it cannot be tested; use {', '.join(shares)}.")
    return TargetMetric(name, hits, is_lower_better(metrics, name, lower_is_better))


def is_lower_better(metrics: LabelMetrics, name: str, override: bool) -> bool:
    """Return whether lower values of a metric are better, as it declares or, where it has no direction, by ``override``.

    Raises:
        SpecError: The override contradicts it.
    """
    declared = metrics.lower_is_better.get(name, override)
    if override and not declared:
        raise SpecError(f"a lower {name} is not better; leave --lower-is-better out.")
    return declared


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


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of the tests: the indices of the runs that hold, which are within the margin of the best.

    Of those, ``least_memory`` has the lowest measured peak memory, ``smallest_on_disk`` the smallest weights and ``fastest``
    the shortest time per answer; each is None where any run that holds lacks the value.
    """

    margin: float
    basis: TargetShares
    p_values: tuple[float, ...]
    holds: tuple[int, ...]
    least_memory: int | None = None
    smallest_on_disk: int | None = None
    fastest: int | None = None

    def is_as_fast(self, index: int) -> bool:
        """Return whether no run that holds is faster than this one by more than other load on the machine explains."""
        times = [self.basis.views.runs[i].cost.seconds_per_answer for i in (index, self.fastest or 0)]
        return (times[0] or 0.0) <= (1 + SAME_TIME) * (times[1] or 0.0)

    @property
    def speed_clause(self) -> str:
        """The clause on the speed of the fastest run; it is called the fastest only if it leads all others clearly."""
        leads = not any(self.is_as_fast(i) for i in self.holds if i != self.fastest)
        return "is the fastest" if leads else f"no other is over {SAME_TIME:.0%} faster"

    @property
    def smallest(self) -> int | None:
        """The run with the least memory, or the smallest on disk where the peak was not measured for all."""
        return self.smallest_on_disk if self.least_memory is None else self.least_memory

    @property
    def subject(self) -> int:
        """The one run that is recommended; where there is none or several are, the run with the best value."""
        if len(self.holds) == 1:
            return self.holds[0]
        smallest, fastest = self.smallest, self.fastest
        return (
            smallest if smallest is not None and fastest is not None and self.is_as_fast(smallest) else self.basis.best
        )


def decide(shares: TargetShares, margin: float) -> Decision:
    """Return the runs that hold, and the smallest and fastest of them."""
    p_values = shares.p_values(margin)
    holds = [i for i, p in enumerate(p_values) if p <= ALPHA]
    runs = shares.views.runs
    return Decision(
        margin,
        shares,
        tuple(p_values),
        tuple(holds),
        _index_of_least(holds, [run.cost.peak_memory for run in runs]),
        _index_of_least(holds, [run.weights_bytes for run in runs]),
        _index_of_least(holds, [run.cost.seconds_per_answer for run in runs]),
    )


def _index_of_least(indices: Sequence[int], values: Sequence[float | None]) -> int | None:
    """Return the index with the least value; None where a value is missing, for it might be the least."""
    known = [(value, i) for i in indices if (value := values[i]) is not None]
    return min(known)[1] if known and len(known) == len(indices) else None


def format_points(share: float, *, sign: bool = False) -> str:
    """Return a share, or a difference of shares, in percentage points: ``3``, ``-1.25``, with ``sign`` also ``+3``."""
    text = f"{100 * share:+.1f}" if sign else f"{100 * share:.1f}"
    return text.removesuffix(".0") if text not in ("-0.0", "+0.0") else "0"
