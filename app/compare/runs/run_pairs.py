"""Pairs of runs: shared instances, both runs' labels, and paired differences of metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.packed_answers import PackedAnswers, Places
from app.compare.runs.run_view import RunView
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import Draws, influence
from benchmarks.stats.paired_tests import (
    Difference,
    contributing_labels,
    difference_p,
    metric_range,
    paired_p,
    share_labels,
)
from benchmarks.stats.repeated_answers import distinct_share, metric_estimate
from benchmarks.vocabulary import Estimate, LabelMetrics

Array = NDArray[np.float64]
MetricFunction = Callable[[Any], Any]

NO_PAIR = "the two runs share no instance"
NOT_ALL_CONDITIONS = "no instance of some condition that the metric needs is labelled in both runs"
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
        return self.first.coded.paired_places(self.second.coded)

    @property
    def shared(self) -> Sequence[str]:
        """The ids of the instances that both runs have, in the first one's order; of repeats, if one of them has any."""
        return self._ids_at(np.arange(len(self.places[0])))

    def _ids_at(self, numbers: Places) -> Sequence[str]:
        """Return the ids of the shared instances with these numbers."""
        return self._repeated.ids.at(self._repeated_places[numbers])

    @property
    def _repeated(self) -> PackedAnswers:
        """The answers of the second run if it alone has repeats, else of the first."""
        first, second = self.first.coded, self.second.coded
        return second if second.is_repeated and not first.is_repeated else first

    @property
    def _repeated_places(self) -> Places:
        return self.places[self._repeated is self.second.coded]

    def shared_codes(self, conditions: Sequence[str], labels: Mapping[str, int]) -> NDArray[np.int64]:
        """Return place, condition, first and second label of each shared instance as numbers; shape (instances, 4).

        The place is that among the shared instances, as in :attr:`clusters`; the condition is its index in ``conditions``;
        ``labels`` has the codes of the labels. What neither has is -1.
        """
        first, second = self.first.coded, self.second.coded
        here, there = self.places
        condition = first.condition_codes({name: number for number, name in enumerate(conditions)})
        before, after = first.outcome_codes(labels)[here], second.outcome_codes(labels)[there]
        return np.stack([np.arange(len(here)), condition[here], before, after], axis=1)

    @cached_property
    def coded(self) -> NDArray[np.int64]:
        """Place, condition, first and second label of each instance that counts in both; shape (instances, 4).

        Empty answers have the label that they count as, if they count.
        """
        if self.given is not None:
            return self.given
        codes = self.shared_codes(self.label_metrics.conditions, label_codes(self.label_metrics))
        return codes[(codes >= 0).all(1)]

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters of the shared instances."""
        return self._repeated.clusters.at(self._repeated_places)

    @cached_property
    def counts(self) -> Array:
        """Label counts of shape (clusters, runs, conditions, labels)."""
        place, condition, *labels = self.coded.T
        clusters = self.clusters.at(place)
        shape = (len(self.label_metrics.conditions), len(self.label_metrics.labels))
        size = shape[0] * shape[1]
        by_run = [clusters.tally(condition * shape[1] + label, size).astype(float) for label in labels]
        return np.stack(by_run, axis=1).reshape(clusters.count, 2, *shape)

    @cached_property
    def _distinct(self) -> float:
        """The effective share of the pairs of answers; see :meth:`RepeatedClusters.distinct`."""
        place, _, before, after = self.coded.T
        return distinct_share(self.clusters.at(place), before * len(self.label_metrics.labels) + after)

    @cached_property
    def draws(self) -> Draws:
        """Bootstrap totals over clusters, both runs of a cluster together; shape (resamples, runs, conditions, labels)."""
        return Draws.of(self.counts, self.resamples, self.seed)

    def compare(self, metric: MetricFunction) -> PairedDifference:
        """Return the metric in both runs, its difference (the second's less the first's) with its interval, and p.

        The n of a run is the number of its labels that count for the metric; the n of the difference, the number of answers
        with such a label in either run.
        """
        totals, draws = self.counts.sum(0), self.draws
        hits = share_labels(metric, self.label_metrics)
        counted_labels = contributing_labels(metric, self.label_metrics)
        place, condition, before, after = self.coded.T
        counted = counted_labels[condition, before] | counted_labels[condition, after]
        clusters, n = self.clusters.at(place[counted]).own_count, int(counted.sum())
        reason = NO_PAIR if not self.shared else NOT_ALL_CONDITIONS if n else NO_LABELS
        within = metric_range(metric, self.label_metrics)
        wider = None if within is None else (within[0] - within[1], within[1] - within[0])

        def change(counts: Array) -> Array:
            values = np.asarray(metric(counts))
            return np.asarray(values[..., 1] - values[..., 0])

        estimated = partial(metric_estimate, distinct=self._distinct, clusters=clusters, reason=reason)
        first, second = (
            estimated(metric, self.counts[:, run], round(count), partial(draws.at, (run,)), within=within)
            for run, count in enumerate(totals[:, counted_labels].sum(-1).tolist())
        )
        difference = estimated(change, self.counts, n, lambda: draws, within=wider)
        if difference.value is None:
            return PairedDifference(first, second, difference)
        if hits is None:
            unit = 1.0 if wider is None else wider[1]
            spread = draws.replicates(change) / unit
            variance = float(np.nanvar(spread)) if np.isfinite(spread).any() else 0.0
            sizes = (self.counts * counted_labels).sum((1, 2, 3))
            sums = influence(change, self.counts) + difference.value * sizes / sizes.sum()
            return PairedDifference(
                first, second, difference, p=difference_p(difference.value / unit, variance, clusters, sums)
            )
        lead, share = self.hit_difference(hits)
        assert share is not None
        return PairedDifference(
            first,
            second,
            replace(share.estimate, n=n),
            int((lead < 0).sum()),
            int((lead > 0).sum()),
            paired_p(self._used(hits).sums(lead), share),
            share,
        )

    def hit_difference(self, hits: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Difference | None]:
        """Return 1 for each answer that the second run alone hits, -1 for the first alone, else 0, and the difference of shares.

        Answers count under the conditions of ``hits``; the shape is (answers,).
        """
        _, condition, before, after = self.coded.T
        used = (hits.sum(1) > 0)[condition]
        lead = hits[condition[used], after[used]].astype(np.int64) - hits[condition[used], before[used]]
        return lead, self._used(hits).difference(lead)

    def _used(self, hits: NDArray[np.bool_]) -> Clusters:
        """Return the clusters of the answers that count in both runs, under the conditions of ``hits``."""
        place, condition, *_ = self.coded.T
        return self.clusters.at(place[(hits.sum(1) > 0)[condition]])

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
        return self._ids_at(np.flatnonzero(np.isin(self._cells(), cells)))

    def outcomes(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the id, the condition and both outcomes of each shared instance, in the first run's order."""
        first, second = self.first.coded, self.second.coded
        for name, here, there in zip(self.shared, *map(np.ndarray.tolist, self.places), strict=True):
            was, now = first.outcomes[first.outcome[here]], second.outcomes[second.outcome[there]]
            yield name, first.conditions[first.condition[here]], was, now

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


def labelled_answers(run: RunView, metrics: LabelMetrics) -> tuple[Places, Places, Clusters]:
    """Return the condition and the label of a run's answers that count, as numbers, and their clusters; shape (answers,)."""
    coded = run.coded
    condition = coded.condition_codes({name: number for number, name in enumerate(metrics.conditions)})
    label = coded.outcome_codes(label_codes(metrics))
    counted = (label >= 0) & (condition >= 0)
    return condition[counted], label[counted], coded.clusters.at(counted)


def share_of_labels(run: RunView, metrics: LabelMetrics, hits: NDArray[np.bool_]) -> Estimate:
    """Return the share of ``hits``, labels by condition, among a run's answers that count."""
    condition, label, clusters = labelled_answers(run, metrics)
    return clusters.mean(hits[condition, label]) if len(label) else Estimate(None, reason=NO_LABELS)


def run_metrics(
    run: RunView, metrics: LabelMetrics, names: Sequence[str], *, resamples: int, seed: int
) -> list[Estimate]:
    """Return the metrics ``names`` of a run over all its answers that count, as the run's own tables show them."""
    condition, label, clusters = labelled_answers(run, metrics)
    shape = (len(metrics.conditions), len(metrics.labels))
    counts = clusters.tally(condition * shape[1] + label, shape[0] * shape[1]).reshape(clusters.count, *shape)
    draws = cache(partial(Draws.of, counts, resamples, seed))
    distinct = distinct_share(clusters, label)
    values = []
    for name in names:
        metric = metrics.of[name]
        counted = contributing_labels(metric, metrics)[condition, label]
        values.append(
            metric_estimate(
                metric,
                counts,
                int(counted.sum()),
                draws,
                distinct=distinct,
                clusters=clusters.at(counted).own_count,
                within=metric_range(metric, metrics),
                reason="it rests on labels that the run lacks",
            )
        )
    return values
