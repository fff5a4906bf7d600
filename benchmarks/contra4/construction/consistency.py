"""Mixture-of-models round-trip consistency: what models answered under permutations, and which filters that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

Votes = Sequence[int | None]
"""What each model chose under one permutation, as the number of the scene before it; None: nothing that can be read."""


def orders(scenes: int) -> list[tuple[int, ...]]:
    """All permutations of the scenes, the identity first; each holds the scenes' numbers in the order they are shown in."""
    return list(permutations(range(scenes)))


def majority(votes: Votes, answer: int) -> bool:
    """Whether more than half of the models agree with the answer; a tie is no majority (the paper leaves ties open)."""
    return 2 * sum(vote == answer for vote in votes) > len(votes)


def unanimous(votes: Votes, answer: int) -> bool:
    """Whether all models agree with the answer."""
    return bool(votes) and all(vote == answer for vote in votes)


def passed(by_order: Sequence[Votes], answer: int) -> tuple[str, ...]:
    """Which of MF, UF, PMF and PUF a sample passes (Algorithm 1); ``by_order`` in the order of :func:`orders`.

    MF and UF look at the scenes as they stand, PMF and PUF ask the same of every permutation.
    """
    return tuple(name for name, passes in _FILTERS.items() if passes(by_order, answer))


_FILTERS: Mapping[str, Callable[[Sequence[Votes], int], bool]] = {
    "MF": lambda by_order, answer: majority(by_order[0], answer),
    "UF": lambda by_order, answer: unanimous(by_order[0], answer),
    "PMF": lambda by_order, answer: all(majority(votes, answer) for votes in by_order),
    "PUF": lambda by_order, answer: all(unanimous(votes, answer) for votes in by_order),
}
