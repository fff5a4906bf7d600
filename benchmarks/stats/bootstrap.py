"""Bootstrap totals of counts over clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.integer] | NDArray[np.floating]


_CHUNK = 1024 * 1024
"""The number of bootstrap weights held at a time, 8 MiB."""

_NEAR = 1 / 64
"""The part of their distance to the totals that resamples keep where answers count in several clusters."""

_SHARED = 1024 * 1024
"""The greatest number of bootstrap weights that is kept for the next table, 4 MiB."""


class Draws(NamedTuple):
    """Totals of counts, and their resamples, shape (resamples, *cells).

    Where answers count in several clusters, a resample may leave next to nothing of a denominator; its totals are then
    ``near`` the observed ones by this factor, and what a metric differs there is scaled back: its linearised variance.
    """

    totals: NDArray[np.float64]
    drawn: NDArray[np.float64]
    near: float = 1.0

    @classmethod
    def of(cls, counts: Counts, resamples: int, seed: int) -> Draws:
        """Return the totals of ``counts``, shape (clusters, *cells), and their bootstrap totals; see :func:`resample`."""
        import numpy as np

        totals, drawn = counts.sum(0, dtype=np.float64), resample(counts, resamples, seed)
        if np.array_equal(counts, np.rint(counts)):
            return cls(totals, drawn)
        return cls(totals, totals + _NEAR * (drawn - totals), _NEAR)

    def at(self, place: tuple[Any, ...]) -> Draws:
        """Return a part of the cells."""
        return Draws(self.totals[place], self.drawn[(slice(None), *place)], self.near)

    def replicates(self, metric: Callable[[Any], Any]) -> NDArray[np.float64]:
        """Return a metric of the resamples; it takes totals of shape (..., *cells)."""
        import numpy as np

        values: NDArray[np.float64] = np.asarray(metric(self.drawn), dtype=np.float64)
        if self.near == 1:
            return values
        value = np.asarray(metric(self.totals), dtype=np.float64)
        scaled: NDArray[np.float64] = value + (values - value) / self.near
        return scaled


def resample(counts: Counts, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return bootstrap totals of ``counts``: all groups, which are clusters, are resampled with replacement.

    ``counts`` has shape (groups, *cells), the result (resamples, *cells). Groups with equal counts are drawn by one
    multinomial count, which leaves the distribution unchanged and bounds time and memory by the number of distinct groups.
    Fewer than two groups have no variance and give no resamples.
    """
    import numpy as np

    groups, cells = counts.shape[0], counts.shape[1:]
    if groups < 2 or resamples < 1:
        return np.zeros((0, *cells))
    kinds, size = distinct_rows(counts.reshape(groups, -1))
    if resamples * groups <= _SHARED:
        totals: NDArray[np.float64] = _kind_weights(size, resamples, seed) @ kinds.astype(np.float64)
    else:
        random = np.random.default_rng(seed)
        chunk = max(1, _CHUNK // len(kinds))
        totals = np.empty((resamples, kinds.shape[1]))
        for start in range(0, resamples, chunk):
            weights = random.multinomial(groups, size / groups, size=min(chunk, resamples - start))
            totals[start : start + chunk] = weights.astype(np.float64) @ kinds
    return totals.reshape(resamples, *cells)


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct rows in ascending order, and how often each occurs: ``np.unique`` with ``axis=0``.

    Rows of small whole numbers are compared as bytes, which takes a tenth of the time.
    """
    import numpy as np

    if rows.size and rows.max() - (low := min(0, rows.min())) <= 255:
        positive = rows - low if low else rows
        as_bytes = np.ascontiguousarray(positive.astype(np.uint8))
        if (as_bytes == positive).all():
            _, first, size = np.unique(
                as_bytes.view(f"V{rows.shape[1]}").ravel(), return_index=True, return_counts=True
            )
            return rows[first], size
    distinct, size = np.unique(rows, axis=0, return_counts=True)
    return distinct, size


def _kind_weights(size: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Return bootstrap weights of shape (resamples, kinds), for kinds of ``size`` groups each."""
    import numpy as np

    ends = np.cumsum(size)
    sums = _summed_weights(int(ends[-1]), resamples, seed)
    weights: NDArray[np.float64] = (sums[ends] - sums[ends - size]).T.astype(np.float64)
    return weights


@lru_cache(maxsize=8)
def _summed_weights(groups: int, resamples: int, seed: int) -> NDArray[np.int32]:
    """Return how often each resample draws one of the first groups, none to all; shape (groups + 1, resamples).

    All tables with as many groups share this draw, whatever they count.
    """
    import numpy as np

    drawn = np.random.default_rng(seed).integers(groups, size=(groups, resamples))
    weights = np.bincount((drawn * resamples + np.arange(resamples)).ravel(), minlength=groups * resamples)
    sums = np.zeros((groups + 1, resamples), dtype=np.int32)
    np.cumsum(weights.reshape(groups, resamples), axis=0, out=sums[1:])
    sums.flags.writeable = False
    return sums
