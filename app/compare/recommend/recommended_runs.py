"""Non-inferiority tests: the smallest and the fastest run that are within a margin of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.compare.decision.target_shares import ALPHA, TargetShares

SAME_TIME = 0.1
"""The relative difference up to which speeds count as equal: other load on the machine explains it."""


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
    def recommended(self) -> int | None:
        """The one run that is recommended: the only one that holds, or the smallest if it is as fast as any; else None."""
        if len(self.holds) == 1:
            return self.holds[0]
        smallest = self.smallest
        return smallest if smallest is not None and self.fastest is not None and self.is_as_fast(smallest) else None

    @property
    def subject(self) -> int:
        """The run that is recommended; where there is none or several are, the run with the best value."""
        return self.basis.best if self.recommended is None else self.recommended


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
