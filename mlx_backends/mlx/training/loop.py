"""Training loop: updates, validation and checkpoints, the same however often it is stopped and resumed.

mlx-vlm's loop keeps neither the optimiser's state nor the order of the rows, so it cannot resume. The layers, the loss, the
update and the format of the adapter are mlx-vlm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.training.training_set import ChatRow
from mlx_backends.core.error_text import one_line
from mlx_backends.mlx.feature_store import FeatureStore
from mlx_backends.mlx.training.checkpoint import Progress, load_checkpoint, save_adapter, save_checkpoint
from mlx_backends.mlx.training.checkpointing import Dropout, prepare_layers
from mlx_backends.mlx.training.dense import multiply_densely
from mlx_backends.mlx.training.inputs import PreparedRow, TrainingInputs
from mlx_backends.mlx.training.objective import answer_loss, check_causal, embedded, preference_loss
from mlx_backends.mlx.vision_cache import CachedVisionTower
from mlx_backends.training import Report, StepReport, TrainingSettings, ValidationReport

ADAPTER, BEST = "adapter", "best"
"""The folders of a training with its last adapter and with the one of the lowest validation loss."""

_GREATEST_NORM = 1.0  # of a gradient, as in the trainer of transformers
_GREATEST_LOSS = 200.0  # guessing among 150,000 tokens costs 12


_FEATURE_BYTES = 256 << 20


class DivergedError(RashomonError):
    """A training whose loss or weights are not numbers any more."""

    exit_code = 1


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
                verbose=False,
            )
        except RashomonError:
            raise
        except Exception as error:  # an architecture unlike any other
            raise ModelError(f"{name} cannot be trained by this version of mlx-vlm: {one_line(error)}") from error
        self._model.eval()
        if mx.default_device() == mx.cpu:
            multiply_densely(self._model)
        # The adapter leaves the encoder as it is, so an image has the same features in every epoch.
        self._tower = CachedVisionTower(self._model, _FEATURE_BYTES, features)
        if settings.gradient_checkpointing or settings.dropout:
            language_model = self._model.language_model
            layers = getattr(language_model, "layers", None)
            layers = language_model.model.layers if layers is None else layers
            prepare_layers(layers, self._dropout, checkpointing=settings.gradient_checkpointing)
        self._optimiser = optim.AdamW(learning_rate=settings.learning_rate, weight_decay=0.0, bias_correction=True)
        self._optimiser.init(self._model.trainable_parameters())
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)

    def resume(self) -> Progress:
        """Restore the last checkpoint and return its progress. Raises StoreError if it is damaged."""
        return load_checkpoint(self._folder, self._model, self._optimiser) or Progress()

    def run(self, progress: Progress, report: Report, log_bytes: Callable[[], int], stop: Callable[[], bool]) -> bool:
        """Train from ``progress`` to the end and write the adapter; return False if ``stop`` came first.

        A checkpoint is saved every ``save_every`` updates and at a stop; ``log_bytes`` is the size of the log of reports then.
        Raises DivergedError once the loss is not a number, StoreError if nothing can be saved.
        """
        settings, best, saved = self._settings, progress.best, progress.step
        for step in range(progress.step + 1, settings.steps + 1):
            update = None if stop() else self._update(step, saved, stop)
            if update is None:
                self._save(Progress(step - 1, best, log_bytes()), saved)
                return False
            report(update)
            if len(self._validation) and (step % settings.validate_every == 0 or step == settings.steps):
                validation = self._validated(step, best)
                if validation.best:
                    save_adapter(self._folder / BEST, self._model, {**self._provenance, "step": step})
                    best = validation.loss
                report(validation)
            if step % settings.save_every == 0 or step == settings.steps:
                self._save(Progress(step, best, log_bytes()), saved)
                saved = step
        save_adapter(self._folder / ADAPTER, self._model, {**self._provenance, "step": settings.steps})
        return True

    def _update(self, step: int, saved: int, stop: Callable[[], bool]) -> StepReport | None:
        """Make one update with the rows of batch ``step``; return None, and change nothing, if ``stop`` comes first."""
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
        loss, answer_tokens, tokens, weight = 0.0, 0, 0, 0
        for place, index in enumerate(self._batch(step)):
            if stop():
                return None
            rows = self._rows(self._inputs, index)
            features = [embedded(self._model, row, self._tower) for row in rows]
            self._dropout.seed((self._settings.seed * 1_000_003 + step) * 4_096 + place)
            value, row_gradients = value_and_grad(self._model, features, rows)
            if gradients is not None:
                row_gradients = tree_map(mx.add, gradients, row_gradients)
            gradients = row_gradients
            mx.eval(value, gradients)
            loss += float(value)
            weight += self._weight(rows)
            answer_tokens += sum(row.answer for row in rows)
            tokens += sum(row.ids.shape[1] for row in rows)
        mean = loss / weight
        if not mean < _GREATEST_LOSS:
            raise self._diverged(
                step, "the loss is not a number" if math.isnan(mean) else f"the loss is {mean:.3g}", saved
            )
        gradients, _ = optim.clip_grad_norm(tree_map(lambda value: value / weight, gradients), _GREATEST_NORM)
        self._optimiser.learning_rate = rate = self._settings.rate(step)
        apply_optimizer_update(self._model, self._optimiser, gradients)
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)
        memory = mx.get_peak_memory()
        mx.clear_cache()
        return StepReport(step, mean, answer_tokens, tokens, perf_counter() - start, rate, memory)

    def _rows(self, inputs: TrainingInputs, index: int) -> tuple[PreparedRow, ...]:
        """Return a row's inputs with its answer, and with the rejected one where the objective has pairs."""
        return inputs.pair(index) if self._settings.objective == "orpo" else (inputs[index],)

    def _loss(self, model: Any, features: Sequence[dict[str, Any]], rows: Sequence[PreparedRow]) -> Any:
        if self._settings.objective == "orpo":
            chosen, rejected = features
            return preference_loss(model, chosen, rejected, rows, self._settings.beta)
        return answer_loss(model, features[0], rows[0])

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

    def _validated(self, step: int, best: float | None) -> ValidationReport:
        start = perf_counter()
        self._model.eval()
        loss, count = 0.0, 0
        for index in range(len(self._validation)):
            rows = self._rows(self._validation, index)
            loss += float(self._loss(self._model, [embedded(self._model, row, self._tower) for row in rows], rows))
            count += self._weight(rows)
        mean = loss / count
        is_best = math.isfinite(mean) and (best is None or mean < best)
        return ValidationReport(step, mean, is_best, perf_counter() - start)

    def _save(self, progress: Progress, saved: int) -> None:
        """Save a checkpoint. Raises DivergedError, and keeps the one before, if the weights are not numbers."""
        import mlx.core as mx
        from mlx.utils import tree_flatten

        if progress.step == saved and progress.step:
            return
        finite = [mx.all(mx.isfinite(value)) for _, value in tree_flatten(self._model.trainable_parameters())]
        if not all(bool(value) for value in finite):
            raise self._diverged(progress.step, "the adapter's weights are not numbers", saved)
        save_checkpoint(self._folder, self._model, self._optimiser, progress)

    def _diverged(self, step: int, what: str, saved: int) -> DivergedError:
        kept = f"the checkpoint of step {saved} is kept" if saved else "no checkpoint was saved yet"
        if (self._folder / BEST).is_dir():
            kept += f", and the best adapter in {self._folder / BEST}"
        return DivergedError(
            f"the training diverged: {what} at step {step}, with a learning rate of {self._settings.learning_rate:g}; {kept}. "
            "Train again with a lower --learning-rate."
        )


def _with_image(inputs: TrainingInputs) -> int:
    """Return the place of the first row with an image: attention may differ where there is none."""
    return next((place for place, row in enumerate(inputs.rows) if row.images), 0)
