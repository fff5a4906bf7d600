"""Settings of a training, its reports, and which models can be trained; importing it loads no MLX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from benchmarks.errors import STOPPED, RashomonError
from benchmarks.training.training_set import ChatRow

Schedule = Literal["cosine", "linear", "constant"]
Objective = Literal["answer", "orpo"]

KEPT = "the last checkpoint is kept: free some space, then resume"
"""The advice where a training cannot write."""

LEAST_GAIN = 0.01
"""The share by which a validation loss has to be lower to count as lower: for early stopping, and against the base's."""

LEAST_RISE = 2.0
"""The least rise of the mean loss of a token, in nats, that is divergence."""

MOST_EXAMPLES = 1000
"""The most examples whose validation losses are logged one by one."""

_NEARLY_AS_FAR = 0.9
"""The share of the greatest fall of a validation loss from which a lower learning rate is taken."""

UNTRAINABLE: Mapping[str, str] = {
    "deepseek_vl_v2": "MLX has no gradient of its choice of experts",
    "deepseekocr": "MLX has no gradient of its choice of experts",
    "gemma3n": "mlx-vlm's trainer does not take it",
    "gemma4": "mlx-vlm's trainer cannot freeze its audio encoder",
    "gemma4_unified": "mlx-vlm's trainer cannot freeze its audio encoder",
    "mllama": "its mask of what sees an image does not reach the answer",
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
    updates first, and the best one takes the place of ``learning_rate``. With rows for it, answers are generated and checked
    before the first update, every ``check_every`` updates and for the best adapter.
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
    check_every: int = 0

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


def chosen_rate(trials: Iterable[tuple[float, float | None]], base: float | None) -> float:
    """Return the learning rate to take of those that were tried, with their validation losses; None for one that diverged.

    It is the lowest rate whose loss is nearly as far below the ``base``'s as that of any: a trial is short, which favours high
    rates. Raises ValueError if all diverged.
    """
    losses = {rate: loss for rate, loss in trials if loss is not None}
    least = min(losses.values())
    limit = least if base is None or least >= base else base - _NEARLY_AS_FAR * (base - least)
    return min(rate for rate, loss in losses.items() if loss <= limit)


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

    Update 0 is the base. ``examples`` are the mean losses of examples, at most ``MOST_EXAMPLES`` of them and always the same, of
    the base and of a best update.
    """

    step: int
    loss: float
    best: bool
    seconds: float
    examples: tuple[float, ...] | None = None


CONFLICT, AGREEMENT, UNKNOWN = "conflict", "no conflict", ""
"""The kinds of rows: whether their sources conflict; rows that were made elsewhere need not say it."""

CHECK_TOKENS = 32
"""The most tokens of an answer of a check beyond those of the longest answer to learn: a base says the same in more words."""

OUTCOMES: Mapping[str, str] = {
    "names": "names the conflict or abstains",
    "kept": "gives the right answer",
    "right": "gives the right value without naming the conflict",
    "other source": "follows the other source",
    "flags": "flags a conflict that is not there, or abstains",
    "invents": "invents a value",
    "another answer": "gives another answer",
    "none": "gives no answer",
    "undecided": "cannot be told by the rules",
}
"""The outcomes of an answer to a row of a check."""

TAUGHT, NOT_TAUGHT, UNDECIDED = "+-?"
"""The marks of an answer: it does what its row teaches, it does not, or the rules cannot tell."""


class Judged(NamedTuple):
    """The outcome of an answer to a row, a key of ``OUTCOMES``, and whether it does what the row teaches; None: not decided."""

    outcome: str
    is_taught: bool | None


JudgeAnswer = Callable[[ChatRow, str, bool], Judged]
"""A judge of an answer to a row; the last argument says that the answer was cut off at the limit of tokens."""


@dataclass(frozen=True, slots=True)
class CheckRows:
    """The rows of a training's checks and their judge; ``names`` says that the answers to learn name conflicts."""

    rows: Sequence[ChatRow]
    judge: JudgeAnswer
    names: bool


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
        marks: A mark of each answer by kind of row, in the order of the rows, which is that of every check of a training.
        outcomes: The number of answers by kind of row and outcome.
        seconds: The time that it took.
        names: True if the answers to learn name conflicts; otherwise they give a value in spite of them.
    """

    step: int
    marks: Mapping[str, str]
    outcomes: Mapping[str, Mapping[str, int]]
    seconds: float
    names: bool = True

    @property
    def conflicts(self) -> int:
        """The number of rows whose sources conflict."""
        return len(self.marks.get(CONFLICT, ""))

    @property
    def named(self) -> int:
        """The number of answers to them that do what they teach, which is mostly to name the conflict."""
        return self.marks.get(CONFLICT, "").count(TAUGHT)

    @property
    def agreeing(self) -> int:
        """The number of rows without a conflict."""
        return len(self.marks.get(AGREEMENT, ""))

    @property
    def kept(self) -> int:
        """The number of right answers to them."""
        return self.marks.get(AGREEMENT, "").count(TAUGHT)


AnyReport = StepReport | ValidationReport | RateReport | CheckReport

Report = Callable[[AnyReport], None]
