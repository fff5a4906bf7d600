"""Levels that a deep picture draws with, apart from missing data and a handful of outlying pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Levels = np.ndarray[tuple[int, ...], np.dtype[Any]]
    Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

HANDFUL = 1000
"""One in this many pixels may be outlying."""

_FAR = 8
"""The ratio of all levels' range to that of the rest from which an outlier hides the rest."""

_HUGE = 1e20
_ENDS = {-(2**15), -(2**15) + 1, 2**15 - 1, 2**16 - 1, -(2**31), -(2**31) + 1, 2**31 - 1, 2**32 - 1}
"""The ends of integer types, which stand for missing data when no other level is near."""


@dataclass(frozen=True, slots=True)
class Used:
    """The lowest and the highest level that is drawn with.

    ``absent`` are the levels that stand for missing data, ``n_absent`` is the number of pixels that have one of them or no
    finite level, and ``n_outside`` the number of outlying pixels.
    """

    low: float = 0
    high: float = 0
    absent: tuple[float, ...] = ()
    n_absent: int = 0
    n_outside: int = 0


def used_levels(strips: Callable[[], Iterator[Levels]], sample: Levels, declared: tuple[float, ...]) -> Used:
    """Return the levels that a picture uses, given as strips that can be read again, and some of its pixels.

    Levels ``declared`` as missing always are. Others are if programs use them for that and they lie far from all others. At
    most one in a thousand pixels is outlying, at either end, and only where it would hide the rest.
    """
    import numpy as np

    absent = list(declared)
    sample = np.sort(sample[~is_absent(sample, declared)], axis=None)
    while (level := _sentinel(sample)) is not None:
        absent.append(level)
        sample = sample[sample != level]
    low, high, n_absent, _ = _measure(strips, absent)
    if low > high:
        return Used(absent=tuple(absent), n_absent=n_absent)
    most = _most(sample)
    if most is not None:
        span = most[1] - most[0]
        lowest, highest, _, n_outside = _measure(strips, absent, (most[0] - span, most[1] + span))
        if n_outside and (highest - lowest) * _FAR <= high - low:
            return Used(lowest, highest, tuple(absent), n_absent, n_outside)
    return Used(low, high, tuple(absent), n_absent)


def is_absent(levels: Levels, absent: tuple[float, ...] | list[float]) -> Mask:
    """Return which pixels have no finite level, or one that stands for missing data."""
    import numpy as np

    mask: Mask = ~np.isfinite(levels)
    for level in absent:
        mask |= levels == level
    return mask


def _measure(
    strips: Callable[[], Iterator[Levels]], absent: list[float], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float, int, int]:
    """Return the extreme levels inside ``bounds``, and the numbers of pixels without a level and outside ``bounds``."""
    low, high, n_absent, n_outside = math.inf, -math.inf, 0, 0
    for strip in strips():
        present = strip[~is_absent(strip, absent)]
        inside = present[(present >= bounds[0]) & (present <= bounds[1])]
        n_absent += strip.size - present.size
        n_outside += present.size - inside.size
        if inside.size:
            low, high = min(low, float(inside.min())), max(high, float(inside.max()))
    return low, high, n_absent, n_outside


def _most(ordered: Levels) -> tuple[float, float] | None:
    """Return the range of all levels but the handful at either end; None if these have one level."""
    few = math.ceil(ordered.size / HANDFUL)
    if ordered.size <= 2 * few:
        return None
    low, high = float(ordered[few]), float(ordered[-1 - few])
    return (low, high) if high > low else None


def _sentinel(ordered: Levels) -> float | None:
    """Return an extreme level that stands for missing data, if there is one."""
    for level in {float(ordered[0]), float(ordered[-1])} if ordered.size else ():
        if abs(level) >= _HUGE or level in _ENDS or _is_nines(level):
            most = _most(ordered[ordered != level])
            if most is not None and max(most[0] - level, level - most[1]) > _FAR * (most[1] - most[0]):
                return level
    return None


def _is_nines(level: float) -> bool:
    """Return whether a level is -999, 9999 or the like."""
    return abs(level) >= 999 and set(f"{abs(level):.9g}") == {"9"}
