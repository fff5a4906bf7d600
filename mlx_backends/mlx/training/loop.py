"""Training loop: updates, validation and checkpoints, the same however often it is stopped and resumed.

mlx-vlm's loop keeps neither the optimiser's state nor the order of the rows, so it cannot resume. The layers, the loss, the
update and the format of the adapter are mlx-vlm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.training.training_set import ChatRow
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault, out_of_memory
from mlx_backends.mlx.feature_store import FeatureStore
from mlx_backends.mlx.metal.fault_recovery import settle
from mlx_backends.mlx.training.checkpoint import Progress, load_checkpoint, save_adapter, save_checkpoint
from mlx_backends.mlx.training.divergence import DETECTION, LossTrend
from mlx_backends.mlx.training.inputs import PreparedRow, TrainingInputs
from mlx_backends.mlx.training.layers import Dropout, language_layers, linear_layers, multiply_densely, prepare_layers
from mlx_backends.mlx.training.objective import answer_loss, check_causal, embedded, preference_loss
from mlx_backends.mlx.vision_cache import CachedVisionTower, VisionEncoder
from mlx_backends.training import DivergedError, Report, StepReport, TrainingSettings, ValidationReport

ADAPTER, BEST = "adapter", "best"
"""The folders of a training with its last adapter and with the one of the lowest validation loss."""

_GREATEST_NORM = 1.0  # of a gradient, as in the trainer of transformers
_FEATURE_BYTES = 256 << 20


class TrainingLoop:
    """The training of one adapter in a training's ``folder``."""

    def __init__(
        self,
        folder: Path,
        name: str,
        loaded: tuple[Any, Any],
        rows: Mapping[str, Sequence[ChatRow]],
        settings: TrainingSettings,
        provenance: Mapping[str, Any],
        features: FeatureStore | None = None,
    ) -> None:
        """Attach a new adapter to a loaded model and its processor. Raises ModelError where the model cannot be trained.

        ``features`` keeps what the encoder made of an image on disk, for other trainings and for runs.
        """
        import mlx.core as mx
        import mlx.optimizers as optim
        from mlx_vlm.trainer.common.model import prepare_model_for_training

        self._folder, self._settings, self._provenance = folder, settings, provenance
        self._model, processor = loaded
        limits: dict[str, Any] = {"max_length": settings.max_length, "max_pixels": settings.max_pixels}
        self._inputs, self._validation = (
            TrainingInputs(rows.get(part, ()), processor, self._model.config, **limits)
            for part in ("train", "validation")
        )
        self._dropout = Dropout()
        try:
            check_causal(self._model, self._inputs[_with_image(self._inputs)], name)
            mx.random.seed(settings.seed)
            prepare_model_for_training(
                self._model,
                lora_rank=settings.rank,
                lora_alpha=settings.alpha,
                lora_dropout=settings.dropout,
                target_modules=linear_layers(self._model),
                verbose=False,
            )
        except Exception as error:  # an architecture unlike any other
            if isinstance(error, RashomonError) or metal_fault(error) is not None or out_of_memory(error):
                raise
            raise ModelError(f"{name} cannot be trained by this version of mlx-vlm: {one_line(error)}") from error
        self._model.eval()
        if mx.default_device() == mx.cpu:
            multiply_densely(self._model)
        # The adapter leaves the encoder as it is, so an image has the same features in every epoch.
        self._tower = CachedVisionTower(VisionEncoder(self._model, features), _FEATURE_BYTES)
        if settings.gradient_checkpointing or settings.dropout:
            prepare_layers(language_layers(self._model), self._dropout, checkpointing=settings.gradient_checkpointing)
        self._optimiser = optim.AdamW(learning_rate=settings.learning_rate, weight_decay=0.0, bias_correction=True)
        self._optimiser.init(self._model.trainable_parameters())
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)
        self._saved, self._trend = 0, LossTrend.of_guessing(_vocabulary(self._model))

    def resume(self) -> Progress:
        """Restore the last checkpoint and return its progress. Raises StoreError if it is damaged."""
        return load_checkpoint(self._folder, self._model, self._optimiser) or Progress()

    def run(self, progress: Progress, report: Report, log_bytes: Callable[[], int], stop: Callable[[], bool]) -> bool:
        """Train from ``progress`` to the end and write the adapter; return False if ``stop`` came first.

        A checkpoint is saved every ``save_every`` updates, before the validation, and at a stop; ``log_bytes`` is the size of the
        log of reports then. Raises DivergedError once the loss has risen for good, StoreError if nothing can be saved.
        """
        self._saved, self._trend = progress.step, progress.trend or self._trend
        while progress.unvalidated or progress.step < self._settings.steps:
            advance = self._validate if progress.unvalidated else self._update
            following = None if stop() else advance(progress, report, stop)
            progress = following or progress
            if following is None or self._is_due(progress.step):
                self._save(replace(progress, log_bytes=log_bytes()))
            if following is None:
                return False
        save_adapter(self._folder / ADAPTER, self._model, self._provenance, progress.step)
        return True

    def _is_due(self, step: int) -> bool:
        """Return whether to save a checkpoint after update ``step``: later while it may turn out that the training diverges."""
        every = self._settings.save_every
        waited = step - (self._saved // every + 1) * every
        return step == self._settings.steps or waited >= (0 if self._trend.is_sound else DETECTION)

    def _update(self, progress: Progress, report: Report, stop: Callable[[], bool]) -> Progress | None:
        """Make the next update and report it; return None, and change nothing, if ``stop`` comes first."""
        settings, step = self._settings, progress.step + 1
        update = self._learn(step, stop)
        if update is None:
            return None
        report(update)
        self._trend = self._trend.after(update.answer_loss)
        if self._trend.diverged:
            raise self._diverged(step, f"the mean loss of an answer's tokens rose to {self._trend.mean:.3g}")
        due = len(self._validation) and (step % settings.validate_every == 0 or step == settings.steps)
        return replace(progress, step=step, trend=self._trend, unvalidated=bool(due))

    def _learn(self, step: int, stop: Callable[[], bool]) -> StepReport | None:
        """Change the adapter by the rows of batch ``step``; return None, and change nothing, if ``stop`` comes first."""
        import mlx.core as mx
        import mlx.nn as nn
        import mlx.optimizers as optim
        from mlx.utils import tree_map
        from mlx_vlm.trainer.common.utils import apply_optimizer_update

        start = perf_counter()
        mx.reset_peak_memory()
        self._model.language_model.train()  # the encoder's own dropout stays off: its features are stored, also for runs
        value_and_grad = nn.value_and_grad(self._model, self._loss)
        gradients: Any = None
        total, answer_tokens, tokens = _Losses(), 0, 0
        for place, index in enumerate(self._batch(step)):
            if stop():
                return None
            rows = self._rows(self._inputs, index)
            features = [embedded(self._model, row, self._tower) for row in rows]
            self._dropout.seed((self._settings.seed * 1_000_003 + step) * 4_096 + place)
            values, row_gradients = value_and_grad(self._model, features, rows)
            if gradients is not None:
                row_gradients = tree_map(mx.add, gradients, row_gradients)
            gradients = row_gradients
            mx.eval(values, gradients)
            total.add(values, self._weight(rows))
            answer_tokens += sum(row.answer for row in rows)
            tokens += sum(row.ids.shape[1] for row in rows)
        if not total.is_finite():
            raise self._diverged(step, "the loss is not a number")
        gradients, _ = optim.clip_grad_norm(tree_map(lambda value: value / total.weight, gradients), _GREATEST_NORM)
        self._optimiser.learning_rate = rate = self._settings.rate(step)
        apply_optimizer_update(self._model, self._optimiser, gradients)
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)
        memory = mx.get_peak_memory()
        mx.clear_cache()
        settle()
        seconds = perf_counter() - start
        return StepReport(step, total.mean, answer_tokens, tokens, seconds, rate, memory, total.answer_mean)

    def _rows(self, inputs: TrainingInputs, index: int) -> tuple[PreparedRow, ...]:
        """Return a row's inputs with its answer, and with the rejected one where the objective has pairs."""
        return inputs.pair(index) if self._settings.objective == "orpo" else (inputs[index],)

    def _loss(self, model: Any, features: Sequence[dict[str, Any]], rows: Sequence[PreparedRow]) -> tuple[Any, Any]:
        """Return the loss to minimise, and that of the answer's tokens alone."""
        if self._settings.objective == "orpo":
            chosen, rejected = features
            return preference_loss(model, chosen, rejected, rows, self._settings.beta)
        loss = answer_loss(model, features[0], rows[0])
        return loss, loss

    def _weight(self, rows: Sequence[PreparedRow]) -> int:
        """Return by how much a row counts in a batch's mean: by its answer's tokens, or as one pair."""
        return 1 if self._settings.objective == "orpo" else rows[0].answer

    def _batch(self, step: int) -> Sequence[int]:
        """Return the rows of a batch; each epoch has an order of its own, and its last batch may be smaller."""
        import numpy as np

        size, rows = self._settings.batch_size, len(self._inputs)
        epoch, place = divmod(step - 1, -(-rows // size))
        order = np.random.default_rng([self._settings.seed, epoch]).permutation(rows).tolist()
        chosen: list[int] = order[place * size : (place + 1) * size]
        return chosen

    def _validate(self, progress: Progress, report: Report, stop: Callable[[], bool]) -> Progress | None:
        """Measure the loss of the validation rows and report it; save the adapter if it is the best so far.

        Return None, and change nothing, if ``stop`` comes first.
        """
        start = perf_counter()
        losses = self._measure(self._validation, range(len(self._validation)), stop)
        if losses is None:
            return None
        best = progress.best
        is_best = losses.is_finite() and (best is None or losses.mean < best)
        if is_best:
            save_adapter(self._folder / BEST, self._model, self._provenance, progress.step)
            best = losses.mean
        report(ValidationReport(progress.step, losses.mean, is_best, perf_counter() - start))
        return replace(progress, best=best, unvalidated=False)

    def _measure(self, inputs: TrainingInputs, rows: Iterable[int], stop: Callable[[], bool]) -> _Losses | None:
        """Return the losses of rows without learning from them; None if ``stop`` comes first."""
        self._model.eval()
        losses = _Losses()
        for index in rows:
            if stop():
                return None
            prepared = self._rows(inputs, index)
            features = [embedded(self._model, row, self._tower) for row in prepared]
            losses.add(self._loss(self._model, features, prepared), self._weight(prepared))
        settle()
        return losses

    def _save(self, progress: Progress) -> None:
        """Save a checkpoint. Raises DivergedError, and keeps the one before, if the weights are not numbers."""
        import mlx.core as mx
        from mlx.utils import tree_flatten

        if progress.step == self._saved and progress.step:
            return
        finite = [mx.all(mx.isfinite(value)) for _, value in tree_flatten(self._model.trainable_parameters())]
        if not all(bool(value) for value in finite):
            raise self._diverged(progress.step, "the adapter's weights are not numbers")
        save_checkpoint(self._folder, self._model, self._optimiser, progress)
        self._saved = progress.step

    def _diverged(self, step: int, problem: str) -> DivergedError:
        settle()  # a fault of the GPU gives wrong numbers too
        return DivergedError(
            f"the training diverged: {problem} at update {step}, with a learning rate of {self._settings.learning_rate:g}; "
            f"{self._rescue()}. Train again with a lower --learning-rate and another --name."
        )

    def _rescue(self) -> str:
        """Write the adapter of the last checkpoint if it is sound and no better one is kept; return what is left."""
        if (self._folder / BEST).is_dir():
            return f"the adapter with the lowest validation loss is kept in {self._folder / BEST}"
        saved = self._saved
        if saved and self.resume().step == saved:
            losses = self._measure(self._inputs, self._batch(saved + 1), lambda: False)
            if losses is not None and losses.is_finite() and losses.answer_mean <= self._trend.limit:
                save_adapter(self._folder / ADAPTER, self._model, self._provenance, saved)
                return f"the adapter of update {saved} is in {self._folder / ADAPTER}"
        return "it had no sound adapter yet"


@dataclass
class _Losses:
    """Sums of the losses of rows, as :meth:`TrainingLoop._loss` returns them."""

    loss: float = 0.0
    answers: float = 0.0
    weight: int = 0

    def add(self, values: tuple[Any, Any], weight: int) -> None:
        """Add those of a row."""
        self.loss += float(values[0])
        self.answers += float(values[1])
        self.weight += weight

    @property
    def mean(self) -> float:
        """The mean of what is minimised."""
        return self.loss / self.weight

    @property
    def answer_mean(self) -> float:
        """The mean of the answers' tokens alone."""
        return self.answers / self.weight

    def is_finite(self) -> bool:
        """Return whether all losses are numbers."""
        return math.isfinite(self.loss) and math.isfinite(self.answers)


def _vocabulary(model: Any) -> int:
    """Return the number of a model's tokens; a common one where its configuration does not say."""
    text = getattr(model.config, "text_config", model.config)
    size = getattr(text, "vocab_size", None)
    return size if isinstance(size, int) else 1 << 17


def _with_image(inputs: TrainingInputs) -> int:
    """Return the place of the first row with an image: attention may differ where there is none."""
    return next((place for place, row in enumerate(inputs.rows) if row.images), 0)
