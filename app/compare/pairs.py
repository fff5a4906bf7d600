"""Pairs of runs: shared instances, both runs' labels, and paired differences of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.packed_answers import Places
from app.compare.run_view import RunView
from benchmarks.answers import number_groups
from benchmarks.base import LabelMetrics
from benchmarks.stats.intervals import estimate, resample
from benchmarks.stats.paired_tests import (
    Difference,
    contributing_labels,
    permutation_test,
    permuted_totals,
    share_difference,
    share_labels,
    sign_flip_test,
)
from benchmarks.vocabulary import Estimate

Array = NDArray[np.float64]
MetricFunction = Callable[[Any], Any]

NO_PAIR = "the two runs share no instance"
NO_LABELS = "no instance that counts for the metric is labelled in both runs"


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """One metric in two runs, over the instances that count in both.

    ``lost`` and ``gained`` count the instances that it counts only in the first run and only in the second; None where it is
    no share of all answers. ``p`` is two-sided; ``share`` is the difference of shares that bounds are computed from.
    """

    first: Estimate
    second: Estimate
    difference: Estimate
    lost: int | None = None
    gained: int | None = None
    p: float | None = None
    share: Difference | None = None


@dataclass(frozen=True)
class RunPair:
    """A baseline, ``first``, and a run that is compared to it, ``second``."""

    first: RunView
    second: RunView
    label_metrics: LabelMetrics
    resamples: int
    seed: int
    given: NDArray[np.int64] | None = None
    """Codes to count in place of those that were stored, as :attr:`coded`: the undecided answers' at a bound."""

    @cached_property
    def places(self) -> tuple[Places, Places]:
        """The places in the first and in the second run of the instances that both have, in the first one's order."""
        there = self.second.coded.ids.places(self.first.coded.ids)
        here = np.flatnonzero(there >= 0)
        return here, there[here]

    @property
    def shared(self) -> Sequence[str]:
        """The ids of the instances that both runs have, in the first one's order."""
        return self.first.coded.ids.at(self.places[0])

    def shared_codes(self, conditions: Sequence[str], labels: Mapping[str, int]) -> NDArray[np.int64]:
        """Return group, condition, first and second label of each shared instance as numbers; shape (instances, 4).

        The condition is its index in ``conditions``; ``labels`` has the codes of the labels. What neither has is -1.
        """
        first, second = self.first.coded, self.second.coded
        here, there = self.places
        condition = first.condition_codes({name: number for number, name in enumerate(conditions)})
        before, after = first.outcome_codes(labels)[here], second.outcome_codes(labels)[there]
        return np.stack([first.group[here], condition[here], before, after], axis=1)

    @cached_property
    def coded(self) -> NDArray[np.int64]:
        """Group, condition, first and second label of each instance that counts in both; shape (instances, 4).

        Empty answers have the label that they count as, if they count.
        """
        if self.given is not None:
            return self.given
        codes = self.shared_codes(self.label_metrics.conditions, label_codes(self.label_metrics))
        codes = codes[(codes >= 0).all(1)]
        codes[:, 0] = number_groups(codes[:, 0])[1]
        return codes

    @cached_property
    def counts(self) -> Array:
        """Label counts of shape (groups, runs, conditions, labels)."""
        group, condition, first, second = self.coded.T
        shape = (
            int(group.max(initial=-1)) + 1,
            2,
            len(self.label_metrics.conditions),
            len(self.label_metrics.labels),
        )
        counts = np.zeros(shape)
        np.add.at(counts, (group, 0, condition, first), 1)
        np.add.at(counts, (group, 1, condition, second), 1)
        return counts

    @cached_property
    def draws(self) -> Array:
        """Bootstrap totals over groups, both runs of a group together; shape (resamples, runs, conditions, labels)."""
        return resample(self.counts, self.resamples, self.seed)

    @cached_property
    def swapped(self) -> Array:
        """Totals with the two runs exchanged or not in each group, at random; shape (draws, runs, conditions, labels)."""
        return permuted_totals(self.counts, seed=self.seed)

    def compare(self, metric: MetricFunction) -> PairedDifference:
        """Return the metric in both runs, its difference (the second's less the first's) with its interval, and p.

        The n of a run is the number of its labels that count for the metric; the n of the difference, the number of answers
        with such a label in either run.
        """
        totals, draws = self.counts.sum(0), self.draws
        hits = share_labels(metric, self.label_metrics)
        counted_labels = contributing_labels(metric, self.label_metrics)
        _, condition, before, after = self.coded.T
        n = int((counted_labels[condition, before] | counted_labels[condition, after]).sum())
        reason = NO_LABELS if self.shared else NO_PAIR
        values, replicates = np.asarray(metric(totals)), np.asarray(metric(draws))
        first, second, difference = (
            estimate(float(value), samples, int(count), reason=reason)
            for value, samples, count in (
                (values[0], replicates[:, 0], totals[0][counted_labels].sum()),
                (values[1], replicates[:, 1], totals[1][counted_labels].sum()),
                (values[1] - values[0], replicates[:, 1] - replicates[:, 0], n),
            )
        )
        if difference.value is None:
            return PairedDifference(first, second, difference)
        if hits is None:
            p = permutation_test(self.counts, self.swapped, metric)
            return PairedDifference(first, second, difference, p=p)
        sums, sizes = self.hit_differences(hits)
        hit_before, hit_after = hits[condition, before], hits[condition, after]
        return PairedDifference(
            first,
            second,
            difference,
            int((hit_before & ~hit_after).sum()),
            int((hit_after & ~hit_before).sum()),
            sign_flip_test(sums.astype(int).tolist()),
            share_difference(sums, sizes),
        )

    def hit_differences(self, hits: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return for each group the second run's hits less the first's, and its number of answers.

        Both have shape (groups,), without the groups that have no answer under the conditions of ``hits``.
        """
        by_run = (self.counts * hits).sum((2, 3))
        sizes = self.counts[:, 0][:, hits.any(1)].sum((1, 2))
        has_answers = sizes > 0
        return (by_run[:, 1] - by_run[:, 0])[has_answers], sizes[has_answers]

    def empty_answers(self, hits: NDArray[np.bool_]) -> tuple[int, int]:
        """Return how many empty answers of each run are among those that count in both, under the conditions of ``hits``."""
        metrics = self.label_metrics
        if metrics.unparsed is None:
            return 0, 0
        codes = self.shared_codes(metrics.conditions, label_codes(metrics))
        counts = (codes >= 0).all(1) & np.append(hits.any(1), False)[codes[:, 1]]  # False for -1, another condition
        is_empty = self.shared_codes(metrics.conditions, {"unparsed": 0})[counts, 2:] == 0
        first, second = is_empty.sum(0).tolist()
        return first, second

    def flips(self) -> Counter[tuple[str, str]]:
        """Return the number of shared instances by their outcomes in the first and the second run."""
        first, second = self.first.coded, self.second.coded
        cells = self._cells()
        counts = np.bincount(cells, minlength=len(first.outcomes) * len(second.outcomes)).tolist()
        names = product(first.outcomes, second.outcomes)
        return Counter({cell: count for cell, count in zip(names, counts, strict=True) if count})

    def instances_behind(self, was: str, now: str) -> Sequence[str]:
        """Return the ids of the instances behind one cell of :meth:`flips`, in the first run's order."""
        names = [*product(self.first.coded.outcomes, self.second.coded.outcomes)]
        cells = [number for number, cell in enumerate(names) if cell == (was, now)]
        return self.first.coded.ids.at(self.places[0][np.isin(self._cells(), cells)])

    def outcomes(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the id, the condition and both outcomes of each shared instance, in the first run's order."""
        first, second = self.first.coded, self.second.coded
        for here, there in zip(*map(np.ndarray.tolist, self.places), strict=True):
            was, now = first.outcomes[first.outcome[here]], second.outcomes[second.outcome[there]]
            yield first.ids[here], first.conditions[first.condition[here]], was, now

    def _cells(self) -> Places:
        """Return the number of each shared instance's pair of outcomes, in the product of both runs' outcomes."""
        here, there = self.places
        first, second = self.first.coded, self.second.coded
        return first.outcome[here].astype(np.int64) * len(second.outcomes) + second.outcome[there]


def label_codes(metrics: LabelMetrics) -> Mapping[str, int]:
    """Return the index of each outcome that counts as a label; "unparsed" is among them where that counts."""
    codes = {label: i for i, label in enumerate(metrics.labels)}
    return codes if metrics.unparsed is None else {**codes, "unparsed": codes[metrics.unparsed]}


def empty_label(runs: Iterable[RunView], metrics: LabelMetrics) -> str:
    """Return the label that the empty answers of ``runs`` count as; "" where there are none, or they do not count."""
    return metrics.unparsed or "" if any("unparsed" in run.coded.outcomes for run in runs) else ""


def counted_in_both(runs: Iterable[RunView], metrics: LabelMetrics) -> str:
    """Return the clause on which answers a difference counts, to follow "answers"."""
    label = empty_label(runs, metrics)
    return f"that count in both, empty ones as {label}" if label else "labelled in both"


def label_counts(run: RunView, metrics: LabelMetrics) -> Array:
    """Return a run's label counts of shape (groups, conditions, labels), with every group that has an answer that counts."""
    coded = run.coded
    condition = coded.condition_codes({name: number for number, name in enumerate(metrics.conditions)})
    label = coded.outcome_codes(label_codes(metrics))
    labelled = label >= 0
    count, groups = number_groups(coded.group[labelled])
    counts = np.zeros((count, len(metrics.conditions), len(metrics.labels)))
    counted = condition[labelled] >= 0
    np.add.at(counts, (groups[counted], condition[labelled][counted], label[labelled][counted]), 1)
    return counts


def run_metrics(
    run: RunView, metrics: LabelMetrics, names: Sequence[str], *, resamples: int, seed: int
) -> list[Estimate]:
    """Return the metrics ``names`` of a run over all its answers that count, as the run's own tables show them."""
    counts = label_counts(run, metrics)
    totals, draws = counts.sum(0), resample(counts, resamples, seed)
    values = []
    for name in names:
        metric = metrics.of[name]
        n = int(totals[contributing_labels(metric, metrics)].sum())
        reason = "it rests on labels that the run lacks"
        values.append(estimate(float(metric(totals)), np.asarray(metric(draws)), n, reason=reason))
    return values
