"""Factorial designs: choice of a fraction of the cells, and main effects and interactions as contrasts of cell means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Cell = tuple[int, ...]
"""A combination of levels: the number of the level of each factor."""

_CANDIDATES = 4096
"""The most cells among which a fraction is chosen; a larger design is sampled."""

_RIDGE = 1e-3
"""A small prior information on each effect: it makes designs of few cells comparable, and rounding errors small."""

_TIE = 1e-6
"""Gains that differ by less, relative to the greatest, are equal: rounding errors are not the same on all machines."""

_ESTIMABLE = 1e-6
_EXCHANGES = 20


def full_design(levels: Sequence[int]) -> list[Cell]:
    """Return all cells of factors with these numbers of levels, the last factor changing fastest."""
    return list(product(*map(range, levels)))


def fraction(levels: Sequence[int], cells: int, seed: int = 0) -> list[Cell]:
    """Return ``cells`` cells of the full design, in its order: those that determine the effects best (D-optimal).

    The effects are the main effects and, if there are enough cells for them, the interactions of two factors. The choice is
    by exchange (Fedorov 1972) from a greedy start, always with the first cell, and equal on every machine.
    """
    total = int(np.prod([float(count) for count in levels]))
    if cells >= total:
        return full_design(levels)
    candidates = full_design(levels) if total <= _CANDIDATES else _sampled(levels, seed)
    matrix = model_matrix(candidates, levels, interactions=True)
    if matrix.shape[1] > cells:
        matrix = model_matrix(candidates, levels, interactions=False)
    chosen = [0]
    while len(chosen) < cells:
        gains = (matrix @ _information_inverse(matrix[chosen]) * matrix).sum(-1)
        gains[chosen] = -np.inf
        chosen.append(_first_best(gains))
    for _ in range(_EXCHANGES):
        if not _exchange(matrix, chosen):
            break
    return sorted(candidates[number] for number in chosen)


def _exchange(matrix: Array, chosen: list[int]) -> bool:
    """Replace the cell whose exchange raises the determinant most; return whether there is one."""
    products = matrix @ _information_inverse(matrix[chosen])
    leverage = (products * matrix).sum(-1)
    gains = np.full((len(chosen), len(matrix)), -np.inf)
    for place, number in enumerate(chosen):
        if number:  # the first cell stays: it has the first level of every factor
            gains[place] = (1 + leverage) * (1 - leverage[number]) + (products @ matrix[number]) ** 2
    gains[:, chosen] = -np.inf
    place, other = divmod(_first_best(gains.ravel()), len(matrix))
    if gains[place, other] <= 1 + _TIE:
        return False
    chosen[place] = other
    return True


def _first_best(gains: Array) -> int:
    """Return the place of the greatest gain, the first of those that equal it up to rounding errors."""
    best = gains.max()
    return int(np.argmax(gains >= best - _TIE * abs(best)))


def _information_inverse(rows: Array) -> Array:
    inverse: Array = np.linalg.inv(_RIDGE * np.eye(rows.shape[1]) + rows.T @ rows).astype(np.float64)
    return inverse


def _sampled(levels: Sequence[int], seed: int) -> list[Cell]:
    random = np.random.default_rng(seed)
    draws = np.column_stack([random.integers(count, size=_CANDIDATES) for count in levels])
    first = (0,) * len(levels)
    return [first, *sorted({cell for row in draws.tolist() if (cell := tuple(row)) != first})]


def model_matrix(cells: Sequence[Cell], levels: Sequence[int], *, interactions: bool) -> Array:
    """Return the effect-coded terms of each cell: mean, main effects and, if asked for, interactions of two factors."""
    mains = []
    for factor, count in enumerate(levels):
        at = np.array([cell[factor] for cell in cells], dtype=int).reshape(-1)
        codes = np.vstack([np.full(count - 1, -1.0), np.eye(count - 1)])
        mains.append(codes[at])
    columns = [np.ones((len(cells), 1)), *mains]
    if interactions:
        columns += [
            (mains[a][:, :, None] * mains[b][:, None, :]).reshape(len(cells), -1)
            for a, b in combinations(range(len(levels)), 2)
        ]
    return np.hstack(columns)


def main_effect(cells: Sequence[Cell], levels: Sequence[int], factor: int, level: int) -> Array | None:
    """Return the weights of the cell means in the effect of ``level`` of a factor against its first level.

    It is averaged over the levels of the other factors. None if these cells cannot tell it from the other main effects. Where
    they cannot tell it from an interaction, interactions are assumed to be 0.
    """
    for interactions in (True, False):
        target = np.zeros(model_matrix(cells[:1], levels, interactions=interactions).shape[1])
        start = 1 + sum(count - 1 for count in levels[:factor])
        target[start : start + levels[factor] - 1] = 1
        target[start + level - 1] += 1  # less the first level, which is minus the sum of the others
        weights = _weights(model_matrix(cells, levels, interactions=interactions), target)
        if weights is not None:
            return weights
    return None


def interaction(cells: Sequence[Cell], levels: Sequence[int], pair: tuple[int, int]) -> Array | None:
    """Return the weights of the cell means in the interaction of two factors, each from its first to its last level.

    It is the effect of one at the last level of the other, less that at the first. None if these cells cannot tell it.
    """
    matrix = model_matrix(cells, levels, interactions=True)
    a, b = pair
    corners = []
    for last_a, last_b in ((1, 1), (1, 0), (0, 1), (0, 0)):
        # Averaging over the other factors' levels removes their terms.
        cell = [0] * len(levels)
        cell[a], cell[b] = last_a * (levels[a] - 1), last_b * (levels[b] - 1)
        corners.append(_averaged(tuple(cell), levels, pair))
    return _weights(matrix, corners[0] - corners[1] - corners[2] + corners[3])


def _averaged(cell: Cell, levels: Sequence[int], fixed: tuple[int, int]) -> Array:
    """Return the model's terms of a cell with those of all factors but ``fixed`` at their average, 0."""
    mains = []
    for factor, count in enumerate(levels):
        codes = np.vstack([np.full(count - 1, -1.0), np.eye(count - 1)])
        mains.append(codes[cell[factor]] if factor in fixed else np.zeros(count - 1))
    pairs = [np.outer(mains[a], mains[b]).ravel() for a, b in combinations(range(len(levels)), 2)]
    return np.concatenate([np.ones(1), *mains, *pairs])


def _weights(matrix: Array, target: Array) -> Array | None:
    """Return the least-squares weights of the cell means in the combination ``target`` of the model's terms."""
    weights: Array = np.linalg.pinv(matrix.T, rcond=1e-9) @ target
    return weights if np.abs(matrix.T @ weights - target).max() < _ESTIMABLE else None
