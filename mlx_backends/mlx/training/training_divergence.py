"""Divergence of a training: the loss of its answers' tokens, compared with the lowest that it had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlx_backends.training_settings import LEAST_RISE

_UPDATES = 20
"""Updates over which the running mean is taken, and before which only a loss that is not a number is divergence."""
DETECTION = 40
"""Updates within which a divergence is detected."""


@dataclass(frozen=True, slots=True)
class LossTrend:
    """Running mean of the loss of an answer's tokens.

    Attributes:
        level: The lowest mean so far, from the 20th update on; before, the base's validation loss (that of guessing where there
            is none) or the loss of the first update, which is greater.
        rise: The deviation from the mean when that was lowest: the mean has to rise by as much to count as divergence.
        count: The number of updates.
        mean: The mean of the latest ones, in which a single great loss counts little.
        deviation: The mean difference from it.
        last: The loss of the last update.
    """

    level: float
    rise: float = 0.0
    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    last: float = 0.0

    @classmethod
    def of_guessing(cls, vocabulary: int) -> LossTrend:
        """Return the trend before the first update of a model with so many tokens."""
        return cls(math.log(max(vocabulary, 2)))

    @property
    def limit(self) -> float:
        """Return the mean loss above which the training has diverged."""
        return self.level + max(self.rise, LEAST_RISE) if self.count >= _UPDATES else math.inf

    @property
    def diverged(self) -> bool:
        """Return whether the loss has risen for good."""
        return self.mean > self.limit

    @property
    def is_sound(self) -> bool:
        """Return whether the last update's loss is no sign of a divergence that begins."""
        return self.last <= self.limit

    def after(self, loss: float) -> LossTrend:
        """Return the trend after another update with this finite loss."""
        count, level, rise = self.count + 1, self.level, self.rise
        if count == 1:
            return LossTrend(max(level, loss), rise, count, loss, last=loss)
        bounded = min(loss, self.limit + LEAST_RISE)
        share = 1 / min(count, _UPDATES)
        mean = self.mean + share * (bounded - self.mean)
        deviation = self.deviation + share * (abs(bounded - self.mean) - self.deviation)
        if count == _UPDATES or (count > _UPDATES and mean < level):
            level, rise = min(level, mean), deviation
        return LossTrend(level, rise, count, mean, deviation, loss)


def has_finite_weights(model: Any) -> bool:
    """Return whether all trainable weights of an MLX model are numbers."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    finite = [mx.all(mx.isfinite(value)) for _, value in tree_flatten(model.trainable_parameters())]
    return all(bool(value) for value in finite)
