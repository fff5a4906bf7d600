"""Mixture-of-models round-trip consistency: filters on the models' choices under all permutations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

Votes = Sequence[int | None]
"""The choices of the models under one permutation, as original scene numbers; None for an unreadable reply."""


def scene_orders(scenes: int) -> list[tuple[int, ...]]:
    """Return all permutations of the scene numbers, the identity first."""
    return list(permutations(range(scenes)))


def majority(votes: Votes, answer: int) -> bool:
    """Return whether more than half of the models agree with the answer; a tie does not count (our choice)."""
    return 2 * sum(vote == answer for vote in votes) > len(votes)


def unanimous(votes: Votes, answer: int) -> bool:
    """Return whether all models agree with the answer."""
    return bool(votes) and all(vote == answer for vote in votes)


def passed_filters(by_order: Sequence[Votes], answer: int) -> tuple[str, ...]:
    """Return the filters (MF, UF, PMF, PUF) that a sample passes (Algorithm 1), given its votes by order.

    MF and UF look at the scenes as they stand, PMF and PUF ask the same of every permutation.
    """
    return tuple(name for name, passes in _FILTERS.items() if passes(by_order, answer))


_FILTERS: Mapping[str, Callable[[Sequence[Votes], int], bool]] = {
    "MF": lambda by_order, answer: majority(by_order[0], answer),
    "UF": lambda by_order, answer: unanimous(by_order[0], answer),
    "PMF": lambda by_order, answer: all(majority(votes, answer) for votes in by_order),
    "PUF": lambda by_order, answer: all(unanimous(votes, answer) for votes in by_order),
}
