"""Settings of a training, its reports, and which models can be trained; importing it loads no MLX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.errors import STOPPED, RashomonError

Schedule = Literal["cosine", "linear", "constant"]
Objective = Literal["answer", "orpo"]

KEPT = "the last checkpoint is kept: free some space, then resume"
"""The advice where a training cannot write."""

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
    of the adapter's inputs, and the adapter's update is scaled by ``alpha`` / ``rank``.
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

    def rate(self, step: int) -> float:
        """Return the learning rate of update ``step``, counted from 1."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        share = (step - self.warmup - 1) / max(1, self.steps - self.warmup)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * share)) / 2
        return self.learning_rate * (1 - share if self.schedule == "linear" else 1)


@dataclass(frozen=True, slots=True)
class StepReport:
    """One update: the mean loss of its answers' tokens (of its rows with ``orpo``), their number, that of all, and the time.

    ``answer_loss`` is the loss of the answers' tokens alone, without what ``orpo`` adds.
    """

    step: int
    loss: float
    answer_tokens: int
    tokens: int
    seconds: float
    rate: float
    peak_memory: int
    answer_loss: float


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The mean loss of the validation rows after update ``step``; ``best`` if it is the lowest so far."""

    step: int
    loss: float
    best: bool
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


Report = Callable[[StepReport | ValidationReport | CheckReport], None]
