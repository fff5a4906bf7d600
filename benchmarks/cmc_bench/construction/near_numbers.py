"""Numbers near a number, drawn so that either of two values is as likely to be the right one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from benchmarks.build import Difficulty
from benchmarks.cmc_bench.construction.written_number import WrittenNumber
from benchmarks.hash_collections import hash64

if TYPE_CHECKING:
    import numpy as np

BANDS: dict[Difficulty, tuple[float, float]] = {"near": (1.12, 1.4), "far": (1.4, 3.0)}
"""The factors between the right number and a wrong one. Below, the tolerances of 5% around the two would overlap; above, a
reader who knows the right number roughly could choose."""

_FEW = 3
"""Two counts of which the smaller is below this may differ by one, whatever the factor."""
_CELLS = 400
_LEADING = 100
_DRAWS = 24
_ROUNDS = 200
_TILT = 1.1
"""Above 1, since last digits of charts are somewhat more often small than large."""
_HALF = 50
"""A number that ends in 25 or 75 may be an average of four; a wrong one then differs by a multiple of this."""
_LONG_FRACTION = 5
"""Decimals of a number that is a ratio of two others; so is then a wrong one, since their digits may repeat."""


def is_near(a: float, b: float, difficulty: Difficulty, *, step: float = 1.0) -> bool:
    """Return whether two positive numbers may contradict each other; ``step`` is the smallest difference of their kind."""
    low, high = sorted((a, b))
    least, most = BANDS[difficulty]
    if not low:
        return 0 < high <= (_FEW if difficulty == "far" else 1) * step
    few = difficulty == "near" and low < _FEW * step and 0 < high - low <= 1.001 * step
    return few or least <= high / low <= most


def near_numbers(
    number: WrittenNumber, difficulty: Difficulty, purpose: str, *, lowest: int = 0, most: float = 0, step: int = 0
) -> Iterator[int]:
    """Yield counts of the number's last decimal place, as it has them, that are near it.

    They differ from it by multiples of ``step`` or, without one, have as many zeros at their end as it has. They lie between
    ``lowest`` and ``most`` (0 for no bound). ``purpose`` seeds the draw.
    """
    step = step or _step(number, most)
    significant, rest = divmod(number.units, step)
    top = int(most * 10**number.decimals) // step if most else 0
    hidden = max(0, len(str(significant)) - 2)
    cell, top_cell = significant // 10**hidden, top // 10**hidden
    whole = hidden == 0 and not rest
    start = 0 if whole and lowest == 0 else 1
    table = _transitions(min(top_cell, _CELLS) if top else 0, start, whole, difficulty)
    if not start <= cell < start + len(table):
        return
    for draw in range(_DRAWS):
        share = hash64(f"{purpose}|{draw}") / 2**64
        other = start + int((table[cell - start] < share).sum())
        if other - start >= len(table):
            return  # nothing is near it
        units = other * 10**hidden + _hidden_digits(hidden, f"{purpose}|{draw}|digits", any_last=bool(rest))
        if number.decimals >= _LONG_FRACTION and not rest:
            divisor = 11 + hash64(f"{purpose}|{draw}|divisor") % 87
            units = round(round(units * divisor, -number.decimals) / divisor)
        if (units and (not top or units <= top)) or (not units and step == 1 and not number.decimals):
            yield units * step + rest


def _step(number: WrittenNumber, most: float) -> int:
    """Return the unit in which a number is rounded, so that at least six values are below ``most``."""
    zeros = number.zeros
    while zeros and most and most * 10**number.decimals // 10**zeros < 6:
        zeros -= 1
    step = 10**zeros
    is_half = number.units >= 1000 * step and number.units // step % _HALF == _HALF // 2
    return int(step * _HALF if is_half else step)


def _hidden_digits(count: int, purpose: str, *, any_last: bool) -> int:
    """Return so many drawn digits, of which the last is no 0 unless ``any_last``."""
    if not count:
        return 0
    digits = hash64(purpose)
    last = 1 + int(9 * (digits / 2**64) ** _TILT)
    return int(digits % 10**count if any_last else digits % 10 ** (count - 1) * 10 + last)


@lru_cache(maxsize=64)
def _transitions(top: int, start: int, whole: bool, difficulty: Difficulty) -> np.ndarray:
    """Return the cumulative probabilities of a wrong leading part, a row for each right one from ``start`` on.

    A pair of leading parts is drawn as often with either as the right one, if right ones are distributed as numbers of charts
    are: the probability of a pair is symmetric, and its sums are that distribution (Sinkhorn's algorithm). Bounds, and gaps
    between small counts, then say nothing about which is right. ``top`` is the largest part, 0 for no bound; ``whole`` parts
    are followed by no other digits, so that a multiple of ten would have another number of zeros.
    """
    import numpy as np

    end = top or _CELLS
    parts = np.arange(start, max(end, start + 1) + 1)
    offset = end / 10 if top and end <= _LEADING * 2 else 3.0 if whole else 0.0
    prior = 1 / (parts + offset)
    if start == 0:
        prior[0] = prior[1] / 10
    if whole and len(parts) > 12:
        prior[(parts % 10 == 0) & (parts > 0)] = 0
    near = np.array([[a != b and is_near(float(a), float(b), difficulty) for a in parts] for b in parts], dtype=float)
    logs = np.log(np.maximum(parts, 0.5))
    near /= np.maximum(np.abs(logs[:, None] - logs[None, :]), 0.05) ** 2
    near *= (prior > 0)[:, None] * (prior > 0)[None, :]
    scale = prior.copy()
    for _ in range(_ROUNDS):
        sums = near @ scale
        scale = np.where(sums > 0, np.sqrt(scale * prior / np.where(sums > 0, sums, 1)), 0)
    pairs = near * scale[None, :]
    totals = pairs.sum(axis=1, keepdims=True)
    return np.cumsum(np.divide(pairs, totals, out=np.zeros_like(pairs), where=totals > 0), axis=1)
