"""Which run to take: the smallest and the fastest that are shown to be no worse than the best by more than a margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.compare.cost import Hits, right
from app.compare.pairs import Array, codes
from app.compare.run_view import RunViews
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError
from benchmarks.stats.paired_tests import Difference, holm, share_difference, share_of

ERROR = 0.05
"""How often at most, in the long run, a run is said to hold that does not."""

ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class TargetMetric:
    """What decides: the share of the labels ``hits``, of shape (conditions, labels), among all answers of their conditions."""

    name: str
    hits: Hits
    lower_is_better: bool = False


def measure_of(sides: RunViews, metric: str | None, *, lower_is_better: bool = False) -> TargetMetric:
    """The measure called ``metric``; None is the share of right labels. Raises SpecError where it is no share of all answers."""
    if metric is None or metric.casefold() == ACCURACY:
        if lower_is_better:
            raise SpecError("a lower accuracy is not better; name another --metric with --lower-is-better.")
        return TargetMetric(ACCURACY, right(sides))
    known = {name.casefold(): name for name in sides.figures.of}
    if metric.casefold() not in known:
        words = (ACCURACY, *sides.figures.of)
        raise SpecError(f"{sides.benchmark.name} has no figure {metric!r}; {did_you_mean(metric, words)}")
    name = known[metric.casefold()]
    hits = share_of(sides.figures.of[name], sides.figures)
    if hits is None:
        shares = [each for each, of in sides.figures.of.items() if share_of(of, sides.figures) is not None]
        raise SpecError(
            f"{name} is no share of all answers, so no margin can be shown for it; use {', '.join(shares)}."
        )
    return TargetMetric(name, hits, lower_is_better)


@dataclass(frozen=True)
class TargetShares:
    """What runs are decided by: the answers that all of them have labelled, under the conditions of the measure.

    ``hit`` has shape (answers, runs): whether the measure counts the answer, for it. ``label`` of the same shape is the
    label's index; ``group`` and ``condition``, of shape (answers,), are indices too.
    """

    sides: RunViews
    measure: TargetMetric
    group: NDArray[np.int64]
    condition: NDArray[np.int64]
    label: NDArray[np.int64]

    @cached_property
    def hit(self) -> NDArray[np.bool_]:
        counted: NDArray[np.bool_] = self.measure.hits[self.condition[:, None], self.label]
        return counted ^ self.measure.lower_is_better

    @property
    def groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Array:
        """How many answers each group has; shape (groups,)."""
        return np.bincount(self.group, minlength=self.groups).astype(float)

    @cached_property
    def shares(self) -> Array:
        """The measure of each run, as it is called: lower values may be the better ones; shape (runs,)."""
        shares: Array = self.hit.mean(0)
        return 1 - shares if self.measure.lower_is_better else shares

    @cached_property
    def best(self) -> int:
        """The run that does best here; of equals, the first."""
        return int(np.argmax(self.hit.mean(0)))

    def difference(self, run: int, other: int, of: NDArray[np.bool_] | None = None) -> Difference:
        """How much better ``run`` does than ``other``; or how much more often what ``of`` marks, of ``hit``'s shape."""
        marks = (self.hit if of is None else of).astype(float)
        sums = np.bincount(self.group, marks[:, run] - marks[:, other], minlength=self.groups).astype(np.float64)
        found = share_difference(sums, self.sizes)
        assert found is not None
        return found

    def chances(self, margin: float) -> list[float]:
        """Of each run the p against being worse than the best, whichever that is, by ``margin``: of all others the largest.

        A run that is within the margin of every other one is so of the best: an intersection-union test, which needs no
        correction. That the same is asked of several runs needs one: Holm's.
        """
        runs = range(len(self.sides.sides))
        if len(runs) == 1:
            return [0.0]
        each = [max(self.difference(i, j).worse_by(margin) for j in runs if j != i) for i in runs]
        return [1.0 if p is None else p for p in holm(each)]


def basis(sides: RunViews, measure: TargetMetric) -> TargetShares:
    """The answers that all runs have labelled. Raises SpecError where there is none."""
    code, place = codes(sides.figures), {condition: i for i, condition in enumerate(sides.figures.conditions)}
    used = set(np.flatnonzero(measure.hits.any(1)).tolist())
    groups: dict[str, int] = {}
    rows = []
    first = sides.sides[0]
    for instance, said in first.said.items():
        if said.condition not in place or place[said.condition] not in used:
            continue
        outcomes = [side.said[instance].outcome for side in sides.sides if instance in side.said]
        if len(outcomes) == len(sides.sides) and all(outcome in code for outcome in outcomes):
            group = groups.setdefault(said.group, len(groups))
            rows.append([group, place[said.condition], *(code[outcome] for outcome in outcomes)])
    if not rows:
        raise SpecError(
            f"no instance that {measure.name} is made of is labelled by {sides.judge} in all of these runs; "
            "`rashomon compare` says what each lacks."
        )
    found = np.array(rows, dtype=np.int64)
    return TargetShares(sides, measure, found[:, 0], found[:, 1], found[:, 2:])


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided. ``holds`` are the runs that are shown to be within the margin; the others of it are among them.

    ``leanest`` has the lowest measured peak memory, ``lightest`` the smallest weights on disk. Each is None where it is unknown
    of any run that holds.
    """

    margin: float
    basis: TargetShares
    chances: tuple[float, ...]
    holds: tuple[int, ...]
    leanest: int | None = None
    lightest: int | None = None
    fastest: int | None = None

    @property
    def smallest(self) -> int | None:
        """The run that takes the least memory; by the size on disk where the peak was not measured of each."""
        return self.lightest if self.leanest is None else self.leanest


def decide(found: TargetShares, margin: float) -> Decision:
    """Decide which runs hold, and which of those takes the least memory, disk and time."""
    chances = found.chances(margin)
    holds = [i for i, p in enumerate(chances) if p <= ERROR]
    sides = found.sides.sides
    return Decision(
        margin,
        found,
        tuple(chances),
        tuple(holds),
        _least(holds, [side.cost.peak_memory for side in sides]),
        _least(holds, [side.weights_bytes for side in sides]),
        _least(holds, [side.cost.seconds_per_answer for side in sides]),
    )


def _least(among: Sequence[int], values: Sequence[float | None]) -> int | None:
    """The one of ``among`` with the least value; None where one of them has none, for it might be that one."""
    known = [(value, i) for i in among if (value := values[i]) is not None]
    return min(known)[1] if known and len(known) == len(among) else None


def points(share: float, *, sign: bool = False) -> str:
    """A share, or a difference of shares, in points of a hundred: ``3``, ``-1.25``, with ``sign`` also ``+3``."""
    told = f"{100 * share:+.1f}" if sign else f"{100 * share:.1f}"
    return told.removesuffix(".0") if told not in ("-0.0", "+0.0") else "0"
