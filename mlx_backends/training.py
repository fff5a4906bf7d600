"""Settings of a training, its reports, and which models can be trained; importing it loads no MLX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.errors import STOPPED, RashomonError

Schedule = Literal["cosine", "linear", "constant"]
Objective = Literal["answer", "orpo"]

KEPT = "the last checkpoint is kept: free some space, then resume"
"""The advice where a training cannot write."""

LEAST_GAIN = 0.01
"""The share by which a validation loss has to be lower to count as lower: for early stopping, and against the base's."""

UNTRAINABLE: Mapping[str, str] = {
    "deepseek_vl_v2": "MLX has no gradient of its choice of experts",
    "deepseekocr": "MLX has no gradient of its choice of experts",
    "gemma3n": "mlx-vlm's trainer does not take it",
    "gemma4": "mlx-vlm's trainer cannot freeze its audio encoder",
    "gemma4_unified": "mlx-vlm's trainer cannot freeze its audio encoder",
    "paligemma": "its attention sees the answer that it is to predict",
    "qwen3_omni": "mlx-vlm's trainer does not take it",
    "qwen3_omni_moe": "mlx-vlm's trainer does not take it",
}
"""Types of models that mlx-vlm loads and that cannot be trained, each with the reason."""


def training_problem(config: Mapping[str, Any]) -> str | None:
    """Return why a model with this ``config.json`` cannot be trained, by its type; None if nothing speaks against it."""
    kind = str(config.get("model_type"))
    return UNTRAINABLE.get(kind.replace("-", "_"))


class DivergedError(RashomonError):
    """A training whose loss has risen for good, or is not a number any more."""

    exit_code = STOPPED


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The hyperparameters of a training; ``steps`` are updates, ``warmup`` is a number of them.

    A row is computed at a time, and a batch's gradient is the mean over the tokens of its answers, or over its rows where each
    answer is preferred to another (``orpo``, odds ratio preference optimisation, with the weight ``beta``). ``dropout`` is that
    of the adapter's inputs, and the adapter's update is scaled by ``alpha`` / ``rank``. The training ends early after
    ``patience`` validations without a lower loss, unless that is None. With ``rates``, each of them is tried for ``rate_updates``
    updates first, and the best one takes the place of ``learning_rate``.
    """

    rank: int
    alpha: float
    dropout: float
    batch_size: int
    learning_rate: float
    schedule: Schedule
    warmup: int
    steps: int
    max_length: int
    max_pixels: int | None
    gradient_checkpointing: bool
    seed: int
    validate_every: int
    save_every: int
    objective: Objective = "answer"
    beta: float = 0.1
    patience: int | None = None
    rates: tuple[float, ...] = ()
    rate_updates: int = 0

    def rate(self, step: int) -> float:
        """Return the learning rate of update ``step``, counted from 1."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        share = (step - self.warmup - 1) / max(1, self.steps - self.warmup)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * share)) / 2
        return self.learning_rate * (1 - share if self.schedule == "linear" else 1)

    def trial(self, rate: float) -> TrainingSettings:
        """Return the settings of the trial of a learning rate: the whole schedule, in fewer updates."""
        steps = self.rate_updates
        return replace(self, learning_rate=rate, steps=steps, warmup=self.warmup * steps // self.steps)

    def chosen_rate(self, losses: Sequence[float | None]) -> float:
        """Return the rate of the lowest loss of a trial; None stands for one that diverged. Raises ValueError if all did."""
        sound = {rate: loss for rate, loss in zip(self.rates, losses, strict=True) if loss is not None}
        return min(sound, key=lambda rate: sound[rate])


@dataclass(frozen=True, slots=True)
class StepReport:
    """One update: the mean loss of its answers' tokens (of its rows with ``orpo``), their number, that of all, and the time.

    ``answer_loss`` is the loss of the answers' tokens alone, without what ``orpo`` adds. ``trial`` is the learning rate that the
    update belongs to the trial of, if to any.
    """

    step: int
    loss: float
    answer_tokens: int
    tokens: int
    seconds: float
    rate: float
    peak_memory: int
    answer_loss: float
    trial: float | None = None


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The mean loss of the validation rows after update ``step``; ``best`` if it is the lowest of an update so far.

    Update 0 is the base.
    """

    step: int
    loss: float
    best: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class RateReport:
    """The trial of a learning rate: the mean loss of the validation rows after its updates; None if it diverged."""

    trial: float
    updates: int
    loss: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The answers that the model generates for some held-out rows after update ``step``, judged as the scorecard does.

    Attributes:
        step: The update; 0 is the base.
        conflicts: The number of rows whose sources conflict.
        named: Of those, the answers that name the conflict.
        agreeing: The number of rows without a conflict.
        kept: Of those, the answers that are right.
        outcomes: The number of answers by kind of row and outcome.
        seconds: The time that it took.
    """

    step: int
    conflicts: int
    named: int
    agreeing: int
    kept: int
    outcomes: Mapping[str, Mapping[str, int]]
    seconds: float


AnyReport = StepReport | ValidationReport | RateReport | CheckReport

Report = Callable[[AnyReport], None]
