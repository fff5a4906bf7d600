"""Claims about models tried on one question set: better than the incumbent, worse, or neither shown.

A set that is asked again and again finds a winner by luck. Without an incumbent, a model is compared with the best of the
others, whichever that is, which a resample may decide otherwise than the answers do: it is better if it leads every other one,
and worse if its distance to the best is more than resamples of equal models would show. Both are corrected for the number of
models tried (Holm 1979): the leads over all of them, and the claims of being worse. ``docs/again.md`` has the error rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.compare.decision.target_shares import ALPHA, Credits, TargetShares
from app.compare.runs.run_pairs import Array
from benchmarks.stats.intervals import resample
from benchmarks.stats.paired_tests import holm, paired_p

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
    if len(everyone) < 2:
        return []
    missing = max(0, tests - (len(everyone) - 1))
    tested = [
        _Test(shares, run, [incumbent] if incumbent is not None else [o for o in everyone if o != run], missing, seed)
        for run in everyone
        if run != incumbent
    ]
    # At most one run leads all others, and the comparisons behind that are corrected among themselves.
    family = [test for test in tested if incumbent is not None or not test.leads]
    size = max(tests, len(everyone) - 1)
    corrected = holm([*(test.p for test in family), *[1.0] * max(0, size - len(family))])
    p_values = {test.run: p for test, p in zip(family, corrected, strict=False)}
    return [test.claim(p_values.get(test.run, test.p) or 0.0, size) for test in tested]


class _Test:
    """Test of one run against its rivals. Answers whose label is not known count against either claim.

    Attributes:
        rival: The rival that has the best of the leads over the run.
        leads: Whether the run leads all of them, in the answers.
        p: The p of the claim; that of leading several rivals is corrected for their number, with those ``missing`` here.
    """

    def __init__(self, shares: TargetShares, run: int, rivals: Sequence[int], missing: int, seed: int) -> None:
        self._shares, self.run, self._rivals, self._seed = shares, run, rivals, seed
        leads = {rival: pair_lead(shares.credits, run, rival) for rival in rivals}
        self.rival = min(rivals, key=lambda rival: leads[rival])
        self._lead = leads[self.rival]
        self.leads = self._lead > 0
        self._excess = np.zeros(0) if self.leads or len(rivals) == 1 else self._resampled_excess()
        self.p = self._p_above(missing) if self.leads else self._p_below()

    def claim(self, p: float, tests: int) -> Claim:
        """Return the claim with its corrected ``p``, of so many ``tests``."""
        alone = max(lead_p(self._shares, self.run, rival) for rival in self._rivals) if self.leads else self.p
        level = 1 - ALPHA / (max(1.0, p / alone) if alone > 0 and p < 1 else tests)
        low = min(self._shares.least(self.run, rival).interval(level)[0] for rival in self._rivals)
        high = -self._shares.least(self.rival, self.run).interval(level)[0]
        if len(self._excess):
            high = max(high, self._lead + float(np.quantile(self._excess, (1 + level) / 2)))
        return Claim(self.run, self.rival, self._lead, low, min(1.0, high), p)

    def _p_above(self, missing: int) -> float:
        """Return the p that the run leads every rival: the largest, once all of them are corrected."""
        p_values = [lead_p(self._shares, self.run, rival) for rival in self._rivals]
        if len(p_values) == 1:
            return p_values[0]
        return max(p or 0.0 for p in holm([*p_values, *[1.0] * missing])[: len(p_values)])

    def _p_below(self) -> float:
        """Return the p that the best rival leads: that of this pair, and of so large a distance to the best of equal models."""
        p = lead_p(self._shares, self.rival, self.run)
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


def lead_p(shares: TargetShares, run: int, rival: int) -> float:
    """Return the two-sided p that ``run`` leads ``rival``, whatever the unknown labels turn out to be."""
    least = shares.least(run, rival)
    if least.value <= 0:
        return 1.0
    of = shares.credits
    return paired_p(of.clusters.sums(np.nan_to_num(of.hit[:, run] - of.hit[:, rival])), least)


def pair_lead(of: Credits, run: int, rival: int) -> float:
    """Return the lead of ``run`` over ``rival``, over the answers with a known label in both; 0 without any."""
    leads = of.hit[:, run] - of.hit[:, rival]
    known = ~np.isnan(leads)
    return float(leads[known].mean()) if known.any() else 0.0
