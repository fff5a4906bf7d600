"""Two runs, instance by instance: the instances both have, the labels both gave, and a figure's paired difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.run_view import RunView
from benchmarks.base import Estimate, LabelMetrics
from benchmarks.stats.intervals import estimate, resample
from benchmarks.stats.paired_tests import (
    Difference,
    rests_on,
    share_difference,
    share_of,
    sign_flip,
    swap_test,
    swaps,
)

Array = NDArray[np.float64]
Figure = Callable[[Any], Any]

NO_PAIR = "the two runs share no instance"
NO_LABELS = "no instance that the figure is made of is labelled in both runs"


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """One figure in two runs, over the instances that both have labelled.

    ``lost`` and ``gained`` count the instances that it counts in the first run alone and in the second alone; None where it is
    no share of all answers. ``p`` is two-sided; ``share`` is what bounds are made of, where it is a share.
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
    """Two runs. ``codes`` maps what counts as a label, an answer without one included where that counts, to its index."""

    first: RunView
    second: RunView
    figures: LabelMetrics
    resamples: int
    seed: int

    @cached_property
    def shared(self) -> list[str]:
        """The ids of the instances that both runs have, in the first one's order."""
        return [instance for instance in self.first.said if instance in self.second.said]

    @cached_property
    def coded(self) -> NDArray[np.int64]:
        """Of each instance that both have labelled: group, condition, first label, second label; shape (instances, 4)."""
        code = codes(self.figures)
        place = {condition: i for i, condition in enumerate(self.figures.conditions)}
        groups: dict[str, int] = {}
        rows = []
        for instance in self.shared:
            one, other = self.first.said[instance], self.second.said[instance]
            if one.outcome in code and other.outcome in code and one.condition in place:
                group = groups.setdefault(one.group, len(groups))
                rows.append((group, place[one.condition], code[one.outcome], code[other.outcome]))
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    @cached_property
    def counts(self) -> Array:
        """Label counts of shape (groups, runs, conditions, labels)."""
        group, condition, one, other = self.coded.T
        shape = (int(group.max(initial=-1)) + 1, 2, len(self.figures.conditions), len(self.figures.labels))
        made = np.zeros(shape)
        np.add.at(made, (group, 0, condition, one), 1)
        np.add.at(made, (group, 1, condition, other), 1)
        return made

    @cached_property
    def draws(self) -> Array:
        """Bootstrap totals over groups, both runs of a group together; shape (resamples, runs, conditions, labels)."""
        return resample(self.counts, self.resamples, self.seed)

    @cached_property
    def swapped(self) -> Array:
        """Totals with the two runs exchanged in some groups; shape (draws, runs, conditions, labels)."""
        return swaps(self.counts, seed=self.seed)

    def compare(self, figure: Figure) -> PairedDifference:
        """The figure in both runs, its difference (the second's less the first's) with its interval, and p.

        n of a run is how many of its labels the figure is made of; n of the difference, how many answers have such a label
        in either run.
        """
        totals, drawn = self.counts.sum(0), self.draws
        hits = share_of(figure, self.figures)
        counted = rests_on(figure, self.figures)
        _, condition, one, other = self.coded.T
        n = int((counted[condition, one] | counted[condition, other]).sum())
        reason = NO_LABELS if self.shared else NO_PAIR
        value, replicates = np.asarray(figure(totals)), np.asarray(figure(drawn))
        first, second, difference = (
            estimate(float(each), of, int(count), reason=reason)
            for each, of, count in (
                (value[0], replicates[:, 0], totals[0][counted].sum()),
                (value[1], replicates[:, 1], totals[1][counted].sum()),
                (value[1] - value[0], replicates[:, 1] - replicates[:, 0], n),
            )
        )
        if difference.value is None:
            return PairedDifference(first, second, difference)
        if hits is None:
            p = swap_test(self.counts, self.swapped, figure)
            return PairedDifference(first, second, difference, p=p)
        sums, sizes = self.of_share(hits)
        was, now = hits[condition, one], hits[condition, other]
        return PairedDifference(
            first,
            second,
            difference,
            int((was & ~now).sum()),
            int((now & ~was).sum()),
            sign_flip(sums.astype(int).tolist()),
            share_difference(sums, sizes),
        )

    def of_share(self, hits: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Of each group that has any, the second run's hits less the first's, and of how many pairs; shape (groups,)."""
        by_run = (self.counts * hits).sum((2, 3))
        sizes = self.counts[:, 0][:, hits.any(1)].sum((1, 2))
        some = sizes > 0
        return (by_run[:, 1] - by_run[:, 0])[some], sizes[some]

    def flips(self) -> Counter[tuple[str, str]]:
        """How often what is one thing in the first run is another (or the same) in the second, over all shared instances."""
        said = ((self.first.said[each].outcome, self.second.said[each].outcome) for each in self.shared)
        return Counter(said)

    def behind(self, was: str, now: str) -> list[str]:
        """The ids of the instances behind one cell of :meth:`flips`."""
        return [
            each
            for each in self.shared
            if (self.first.said[each].outcome, self.second.said[each].outcome) == (was, now)
        ]


def codes(figures: LabelMetrics) -> Mapping[str, int]:
    """What counts as a label, to the label's index."""
    code = {label: i for i, label in enumerate(figures.labels)}
    return code if figures.unparsed is None else {**code, "unparsed": code[figures.unparsed]}


def own_counts(side: RunView, figures: LabelMetrics) -> Array:
    """A run's own label counts, of shape (groups, conditions, labels); every group that has any label is in it."""
    code, place = codes(figures), {condition: i for i, condition in enumerate(figures.conditions)}
    groups: dict[str, int] = {}
    rows = []
    for said in side.said.values():
        if said.outcome in code:
            group = groups.setdefault(said.group, len(groups))
            if said.condition in place:
                rows.append((group, place[said.condition], code[said.outcome]))
    made = np.zeros((len(groups), len(place), len(figures.labels)))
    if rows:
        np.add.at(made, tuple(np.array(rows).T), 1)
    return made


def own_figures(
    side: RunView, figures: LabelMetrics, names: Sequence[str], *, resamples: int, seed: int
) -> list[Estimate]:
    """A run's own figures over all that it has labelled, as its tables show them."""
    counts = own_counts(side, figures)
    totals, drawn = counts.sum(0), resample(counts, resamples, seed)
    made = []
    for name in names:
        figure = figures.of[name]
        n = int(totals[rests_on(figure, figures)].sum())
        reason = "it rests on labels that the run lacks"
        made.append(estimate(float(figure(totals)), np.asarray(figure(drawn)), n, reason=reason))
    return made
