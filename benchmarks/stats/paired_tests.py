"""Two runs over the same examples: exact tests, permutation tests, bounds and the correction for many of them.

Everything counts by groups (examples), since an example's conditions hang together. ``sums`` are a group's differences,
``sizes`` how many paired answers each is made of, both of shape (groups,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from benchmarks.base import LabelMetrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NORMAL = NormalDist()
_SLACK = 1e-9
"""Two orders of the same sum differ in their last bits; what differs by no more is equal."""


def sign_flip(sums: Sequence[int]) -> float:
    """The exact two-sided p of the sign-flip test: how likely a total as far from 0 is if every group's sign is a coin's.

    ``sums`` are whole numbers, a group's each. Where they are -1, 0 and 1, as with one paired answer a group, this is
    McNemar's exact test, that is the binomial test on the discordant pairs (McNemar 1947). 1 where nothing differs.
    """
    import numpy as np

    found = np.abs(np.asarray(sums, dtype=np.int64))
    chances = np.ones(1)
    for size in np.unique(found[found > 0]):
        count = int((found == size).sum())
        # The total of ``count`` signs is even or odd as ``count`` is; in steps of ``size`` from -count * size.
        spread = np.zeros(2 * count * int(size) + 1)
        spread[:: 2 * int(size)] = _coin(count)
        chances = np.convolve(chances, spread)
    total, reach = abs(int(np.sum(sums))), len(chances) // 2
    # From the tail inwards, so that a small p is not what is left of 1.
    return min(1.0, 2 * float(chances[reach + total :].sum())) if total else 1.0


def _coin(tosses: int) -> Array:
    """The chances of 0 to ``tosses`` heads, shape (tosses + 1,)."""
    import numpy as np

    log = [math.lgamma(tosses + 1) - math.lgamma(k + 1) - math.lgamma(tosses - k + 1) for k in range(tosses + 1)]
    chances: Array = np.exp(np.array(log) - tosses * math.log(2))
    return chances


def swaps(counts: Array, *, draws: int = 9_999, seed: int = 0) -> Array:
    """Totals of two runs' counts where in every group the two are exchanged or not, by a coin.

    ``counts`` have shape (groups, 2, *cells); the result (draws, 2, *cells).
    """
    import numpy as np

    groups, cells = counts.shape[0], counts.shape[2:]
    kinds, size = np.unique((counts[:, 1] - counts[:, 0]).reshape(groups, -1), axis=0, return_counts=True)
    exchanged = np.random.default_rng(seed).binomial(size, 0.5, size=(draws, len(size))).astype(float) @ kinds
    totals = counts.sum(0, dtype=float).reshape(2, -1)
    return np.stack([totals[0] + exchanged, totals[1] - exchanged], 1).reshape(draws, 2, *cells)


def swap_test(counts: Array, swapped: Array, figure: Callable[[Array], Array]) -> float | None:
    """The two-sided p of the permutation test on a figure's difference, by the :func:`swaps` of ``counts``.

    ``figure`` takes counts of shape (..., *cells) and returns (...). p is (1 + draws as far from 0 as what is found) /
    (1 + draws) (Phipson and Smyth 2010). A draw in which the figure is undefined counts as one as far. None where it is
    undefined in what is found.
    """
    import numpy as np

    before, after = np.asarray(figure(counts.sum(0, dtype=float)))
    found = float(after - before)
    if math.isnan(found):
        return None
    drawn = np.asarray(figure(swapped))
    apart = drawn[:, 1] - drawn[:, 0]
    as_far = int((np.isnan(apart) | (np.abs(apart) >= abs(found) - _SLACK)).sum())
    return (1 + as_far) / (1 + len(apart))


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """p values corrected by Holm's step-down method (Holm 1979), in their order; None stays and counts for nothing."""
    known = sorted((p, i) for i, p in enumerate(chances) if p is not None)
    corrected: list[float | None] = [None] * len(chances)
    least = 0.0
    for rank, (p, i) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        corrected[i] = least
    return corrected


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two shares over paired answers, with what bounds of it are made of.

    ``value`` is the difference as it is. ``centre`` and ``error`` are those of Bonett and Price's adjusted interval (2012):
    two groups more, in one of which the first run alone is right and in the other the second. With one answer a group that is
    their formula; with more, the variance is the one between groups of a ratio's linearisation. So answers that all agree
    give a bound that is as wide as so few can be.
    """

    value: float
    centre: float
    error: float
    groups: int

    def lower(self, confidence: float = 0.95) -> float:
        """The one-sided lower bound; at least -1."""
        return max(-1.0, self.centre - _NORMAL.inv_cdf(confidence) * self.error)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided interval, within -1 and 1."""
        half = _NORMAL.inv_cdf((1 + confidence) / 2) * self.error
        return max(-1.0, self.centre - half), min(1.0, self.centre + half)

    def worse_by(self, margin: float) -> float:
        """The one-sided p against the hypothesis that the true difference is -``margin`` or less."""
        return 1 - _NORMAL.cdf((self.centre + margin) / self.error)

    def groups_for(self, error: float) -> int:
        """How many groups like these have an ``error`` as small as that.

        Of N groups whose differences vary by v, the error is sqrt(N v + 2) / (N + 2), in units of a group's size.
        """
        varies = max(0.0, ((self.error * (self.groups + 2)) ** 2 - 2) / self.groups)
        root = math.sqrt(max(0.0, varies**2 - 8 * error**2 * (varies - 1)))
        return max(1, math.ceil((varies + root) / (2 * error**2) - 2 - _SLACK))


def share_difference(sums: Array, sizes: Array) -> Difference | None:
    """The difference of two shares: ``sums`` are the second run's hits less the first one's. None without any pair."""
    import numpy as np

    groups, pairs = len(sizes), float(np.sum(sizes))
    if not pairs:
        return None
    mean = pairs / groups
    total = float(np.sum(sums))
    centre = total / (pairs + 2 * mean)
    apart = np.concatenate([sums - centre * sizes, [mean - centre * mean, -mean - centre * mean]])
    error = math.sqrt(float((apart**2).sum())) / (pairs + 2 * mean)
    return Difference(total / pairs, centre, error, groups)


def share_of(figure: Callable[[Any], Any], figures: LabelMetrics) -> NDArray[np.bool_] | None:
    """The labels that a figure counts, of shape (conditions, labels), where it is a share of all answers under some conditions.

    Which conditions those are is seen by the labels: a condition that it does not count is all False. None for any other
    figure, such as a share of some labels or a difference. Found by trying: an answer more changes a share of all answers
    in one of two ways under each condition, and random counts then tell whether it is the share it seems to be.
    """
    import numpy as np

    shape = (len(figures.conditions), len(figures.labels))
    random = np.random.default_rng(0)
    counts = random.integers(5, 50, shape).astype(float)
    more = counts + np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    value = float(figure(counts))
    hits = (np.asarray(figure(more)) - value > _SLACK).reshape(shape)
    used = (np.abs(np.asarray(figure(more)) - value) > _SLACK).reshape(shape).any(1)
    if not hits.any() or not np.array_equal(hits.any(1), used):
        return None
    trials = random.integers(1, 60, (8, *shape)).astype(float)
    seems = (trials * hits).sum((1, 2)) / trials[:, used].sum((1, 2))
    return hits if np.allclose(np.asarray(figure(trials)), seems, atol=_SLACK, rtol=0) else None


def rests_on(figure: Callable[[Any], Any], figures: LabelMetrics) -> NDArray[np.bool_]:
    """The labels that a figure is made of, of shape (conditions, labels): those whose number changes it.

    Found by trying, as in :func:`share_of`.
    """
    import numpy as np

    shape = (len(figures.conditions), len(figures.labels))
    counts = np.random.default_rng(0).integers(5, 50, shape).astype(float)
    more = counts + np.eye(shape[0] * shape[1]).reshape(-1, *shape)
    changes: NDArray[np.bool_] = np.abs(np.asarray(figure(more)) - float(figure(counts))) > _SLACK
    return changes.reshape(shape)


def hypotheses(names: Sequence[str], figures: LabelMetrics) -> list[int]:
    """For each figure which hypothesis its difference tests: equal numbers where one difference follows from the other.

    Two figures that always add up to 1, or to any other constant, test one hypothesis, such as CMC-Bench's MPB Img and MPB
    Txt. Found by trying: their differences over random counts are then equal but for the sign.
    """
    import numpy as np

    shape = (len(figures.conditions), len(figures.labels))
    counts = np.random.default_rng(0).integers(1, 60, (8, 2, *shape)).astype(float)
    known: list[Array] = []
    numbers: list[int] = []
    for name in names:
        values = np.asarray(figures.of[name](counts), float)
        difference: Array = values[:, 1] - values[:, 0]
        same = (
            i
            for i, other in enumerate(known)
            if any(np.allclose(difference, sign * other, atol=_SLACK, rtol=0) for sign in (1, -1))
        )
        number = next(same, len(known))
        if number == len(known):
            known.append(difference)
        numbers.append(number)
    return numbers


def holm_of_hypotheses(chances: Sequence[float | None], hypotheses: Sequence[Any]) -> list[float | None]:
    """:func:`holm` over distinct hypotheses: p values of one hypothesis count once, by the largest of them."""
    largest: dict[Any, float] = {}
    for p, hypothesis in zip(chances, hypotheses, strict=True):
        if p is not None:
            largest[hypothesis] = max(p, largest.get(hypothesis, 0.0))
    corrected = dict(zip(largest, holm(list(largest.values())), strict=True))
    return [None if p is None else corrected[hypothesis] for p, hypothesis in zip(chances, hypotheses, strict=True)]
