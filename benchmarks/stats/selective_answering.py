"""Selective answering: the confidence above which answers may be given, with a guarantee on wrong ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold: answers whose confidence is above ``above`` are given, all others withheld.

    ``above`` is -inf where every answer may be given, and inf where none may.
    """

    above: float
    risk: float
    """The greatest mean share of an example's questions that are answered wrongly."""


def smallest_risk(examples: int) -> float:
    """Return the smallest risk that so many examples can guarantee: 1 / (n + 1)."""
    return 1 / (examples + 1)


def conformal_threshold(confidence: Array, wrong: Array, group: Codes, risk: float) -> Threshold:
    """Return the lowest threshold that keeps the risk of wrong answers, by conformal risk control.

    For a new example from the same source, the expected share of its questions that are answered, and wrongly, is at most
    ``risk``. Angelopoulos, Bates, Fisch, Lei and Schuster (2022), equation 4 and theorem 1: the threshold is the infimum of
    all with n / (n + 1) R(t) + 1 / (n + 1) <= risk, where R(t) is the mean over n examples of the share of an example's answers
    that are above t and wrong. This loss falls as t rises, and is continuous from the right. The examples must be
    exchangeable with the new one; the answers of an example need not be independent.

    The guarantee is on all questions, not on those that are answered: the share of wrong ones among the answered can be
    higher than ``risk``, and no threshold can bound it in this way, since it need not fall as the threshold rises.
    """
    import numpy as np

    _, numbers, sizes = np.unique(group, return_inverse=True, return_counts=True)
    examples = len(sizes)
    allowed = risk * (examples + 1) - 1
    if allowed < 0:
        return Threshold(math.inf, risk)
    order = np.argsort(-confidence, kind="stable")
    # The sum of the losses if everything down to this answer is given, from the most confident one on.
    losses = np.cumsum((wrong / sizes[numbers])[order])
    levels = confidence[order]
    last = np.append(levels[1:] != levels[:-1], True)
    too_many = np.flatnonzero(last & (losses > allowed + 1e-12))
    return Threshold(float(levels[too_many[0]]) if len(too_many) else -math.inf, risk)
