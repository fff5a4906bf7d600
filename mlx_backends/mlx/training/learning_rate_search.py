"""Search for a learning rate: a short training with each of a few, from the same adapter and on the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from mlx_backends.mlx.training.training_checkpoint import Progress
from mlx_backends.mlx.training.training_divergence import LossTrend
from mlx_backends.training_settings import RateReport, Report, StepReport, TrainingSettings

Stop = Callable[[], bool]


class UnsoundError(Exception):
    """A loss or weights that are not numbers."""


class Trainee(Protocol):
    """The part of a training loop that a search drives."""

    def learn(self, step: int, settings: TrainingSettings, stop: Stop) -> StepReport | None:
        """Make an update; return None, and change nothing, if ``stop`` comes first. Raises UnsoundError."""

    def validation_loss(self, stop: Stop) -> float | None:
        """Return the mean loss of the validation rows; None if ``stop`` comes first."""

    def start_again(self) -> None:
        """Restore the adapter and the optimiser as they were before the first update."""

    def has_finite_weights(self) -> bool:
        """Return whether all weights of the adapter are numbers."""


@dataclass
class RateSearch:
    """The trials of a training's learning rates, an update at a time, so that each can be stopped and resumed anywhere."""

    settings: TrainingSettings
    trainee: Trainee
    guessing: LossTrend
    """The trend before the first update where the base has no validation loss."""
    _began: float = 0.0

    def is_over(self, progress: Progress) -> bool:
        """Return whether all rates were tried."""
        return len(progress.trials) >= len(self.settings.rates)

    def advance(self, progress: Progress, report: Report, stop: Stop) -> Progress | None:
        """Make the next update of a trial, or end it; return None, and change nothing, if ``stop`` comes first."""
        rate = self.settings.rates[len(progress.trials)]
        self._began = self._began or perf_counter()
        if progress.step >= self.settings.rate_updates:
            loss = self.trainee.validation_loss(stop)
            return None if loss is None else self._ended(progress, loss, report)
        try:
            update = self.trainee.learn(progress.step + 1, self.settings.trial(rate), stop)
        except UnsoundError:
            return self._ended(progress, math.nan, report)
        if update is None:
            return None
        report(replace(update, trial=rate))
        trend = (progress.trend or self.guessing).after(update.answer_loss)
        following = replace(progress, step=update.step, trend=trend)
        if trend.diverged or not self.trainee.has_finite_weights():
            return self._ended(following, math.nan, report)
        return following

    def _ended(self, progress: Progress, loss: float, report: Report) -> Progress:
        """Report a trial's loss, and return the progress before the next trial, or before the first update."""
        result = loss if math.isfinite(loss) else None
        rate = self.settings.rates[len(progress.trials)]
        report(RateReport(rate, progress.step, result, perf_counter() - self._began))
        self._began = 0.0
        self.trainee.start_again()
        level = progress.base_answers
        trend = self.guessing if level is None else LossTrend(level)
        return replace(progress, step=0, trend=trend, trials=(*progress.trials, result))
