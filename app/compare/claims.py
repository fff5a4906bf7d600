"""Claims about models tried on one question set: better than the incumbent, worse, or neither shown.

A set that is asked again and again finds a winner by luck. Without an incumbent, a model is compared with the best of the
others, whichever that is, which a resample may decide otherwise than the answers do: it is better if it leads every other one,
and worse if its distance to the best is more than resamples of equal models would show. Claims are corrected for the number of
models tried (Holm 1979). ``docs/again.md`` has the error rates of simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.compare.non_inferiority import ALPHA, Credits, TargetShares
from app.compare.pairs import Array
from benchmarks.stats.intervals import resample
from benchmarks.stats.paired_tests import holm_by_hypothesis, paired_p

BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"
_RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim about a run.

    Attributes:
        run: The index of the run.
        rival: The index of the incumbent, or of the best of the others.
        lead: The lead of the run over the rival, a difference of shares.
        low, high: The interval of that lead, at the level to which the correction takes 95%.
        p: The corrected p of no difference.
    """

    run: int
    rival: int
    lead: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> str:
        """One of "better", "worse" and "not shown"."""
        if self.p > ALPHA:
            return NOT_SHOWN
        return BETTER if self.lead > 0 else WORSE


def claims(shares: TargetShares, incumbent: int | None = None, *, tests: int = 0, seed: int = 0) -> list[Claim]:
    """Return the claims about all runs but the ``incumbent``; None compares each run with the best of the others.

    They are corrected for ``tests`` comparisons, where more models were tried than have answers here. A single run has no claim.
    """
    everyone = range(len(shares.views.runs))
    made = [
        _Test(
            shares, run, [incumbent] if incumbent is not None else [other for other in everyone if other != run], seed
        )
        for run in everyone
        if run != incumbent and len(everyone) > 1
    ]
    # That the best leads the second, and that the second is behind the best, is one comparison.
    pairs = [frozenset({test.run, test.rival}) for test in made]
    others = max(0, tests - len(set(pairs)))
    corrected = holm_by_hypothesis([*(test.p for test in made), *[1.0] * others], [*pairs, *range(others)])
    return [test.claim(p, len(set(pairs)) + others) for test, p in zip(made, corrected, strict=False) if p is not None]


class _Test:
    """Test of one run against its rivals. Answers whose label is not known count against whichever claim is made."""

    def __init__(self, shares: TargetShares, run: int, rivals: Sequence[int], seed: int) -> None:
        self._shares, self.run, self._rivals, self._seed = shares, run, rivals, seed
        leads = {rival: pair_lead(shares.credits, run, rival) for rival in rivals}
        self.rival = min(rivals, key=lambda rival: leads[rival])
        self._lead = leads[self.rival]
        self._excess = self._resampled_excess() if len(rivals) > 1 else np.zeros(0)
        self.p = max(self._p(run, rival) for rival in rivals) if self._lead > 0 else self._p_below()

    def claim(self, p: float, tests: int) -> Claim:
        """Return the claim with its corrected ``p``, of so many ``tests``."""
        factor = p / self.p if self.p > 0 and p < 1 else tests
        level = 1 - ALPHA / max(1.0, factor)
        low = min(self._shares.least(self.run, rival).interval(level)[0] for rival in self._rivals)
        high = -self._shares.least(self.rival, self.run).interval(level)[0]
        if len(self._excess):
            high = max(high, self._lead + float(np.quantile(self._excess, (1 + level) / 2)))
        return Claim(self.run, self.rival, self._lead, low, min(1.0, high), p)

    def _p(self, run: int, rival: int) -> float:
        """Return the two-sided p that ``run`` leads ``rival``, whatever the unknown labels turn out to be."""
        least = self._shares.least(run, rival)
        if least.value <= 0:
            return 1.0
        of = self._shares.credits
        return paired_p(of.clusters.sums(np.nan_to_num(of.hit[:, run] - of.hit[:, rival])), least)

    def _p_below(self) -> float:
        """Return the p that the best rival leads: that of this pair, and of so large a distance to the best of equal models."""
        p = self._p(self.rival, self.run)
        if not len(self._excess):
            return p
        return max(p, min(1.0, 2 * (1 + int((self._excess >= -self._lead).sum())) / (1 + len(self._excess))))

    def _resampled_excess(self) -> Array:
        """Return how far the best rival, chosen within each resample of the clusters, is above what the answers say.

        The leads of all rivals over the run are centred, as if all were equal. Shape (resamples,), or (0,) for one cluster.
        """
        of = self._shares.credits
        leads = of.hit[:, self._rivals] - of.hit[:, [self.run]]
        known = ~np.isnan(leads)
        sums = of.clusters.sums(np.stack([np.nan_to_num(leads), known], axis=-1))
        drawn = resample(sums, _RESAMPLES, self._seed)
        means, observed = (totals[..., 0] / np.maximum(totals[..., 1], 1.0) for totals in (drawn, sums.sum(0)))
        excess: Array = (means - observed).max(1) if len(drawn) else np.zeros(0)
        return excess


def pair_lead(of: Credits, run: int, rival: int) -> float:
    """Return the lead of ``run`` over ``rival``, over the answers with a known label in both; 0 without any."""
    leads = of.hit[:, run] - of.hit[:, rival]
    known = ~np.isnan(leads)
    return float(leads[known].mean()) if known.any() else 0.0
