"""Training loop: updates, validation and checkpoints, the same however often it is stopped and resumed.

mlx-vlm's loop keeps neither the optimiser's state nor the order of the rows, so it cannot resume. The layers, the loss, the
update and the format of the adapter are mlx-vlm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.training.training_set import ChatRow
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault, out_of_memory
from mlx_backends.mlx.metal.metal_fault_recovery import settle
from mlx_backends.mlx.training.generation_check import GenerationCheck
from mlx_backends.mlx.training.learning_rate_search import RateSearch, UnsoundError
from mlx_backends.mlx.training.training_checkpoint import (
    Progress,
    load_adapter,
    load_checkpoint,
    save_adapter,
    save_checkpoint,
)
from mlx_backends.mlx.training.training_divergence import DETECTION, LossTrend, has_finite_weights
from mlx_backends.mlx.training.training_inputs import PreparedRow, TrainingInputs
from mlx_backends.mlx.training.training_layers import (
    Dropout,
    language_layers,
    linear_layers,
    multiply_densely,
    prepare_layers,
    vocabulary_size,
)
from mlx_backends.mlx.training.training_objective import Losses, answer_loss, check_causal, embedded, preference_loss
from mlx_backends.mlx.vision.feature_store import FeatureStore
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower, VisionEncoder
from mlx_backends.training_settings import (
    LEAST_GAIN,
    CheckRows,
    DivergedError,
    Report,
    StepReport,
    TrainingSettings,
    ValidationReport,
    chosen_rate,
)

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
        check: CheckRows | None = None,
    ) -> None:
        """Attach a new adapter to a loaded model and its processor. Raises ModelError where the model cannot be trained.

        ``features`` keeps what the encoder made of an image on disk, for other trainings and for runs. The answers to the rows of
        ``check`` are generated along the way.
        """
        import mlx.core as mx
        from mlx.utils import tree_flatten
        from mlx_vlm.trainer.common.model import prepare_model_for_training

        self._folder, self._settings, self._provenance = folder, settings, provenance
        self._model, processor = loaded
        limits: dict[str, Any] = {"max_length": settings.max_length, "max_pixels": settings.max_pixels}
        self._inputs, self._validation = (
            TrainingInputs(rows.get(part, ()), processor, self._model.config, **limits)
            for part in ("train", "validation")
        )
        self._examples = [row.example for row in rows.get("validation", ())]
        self._dropout = Dropout()
        try:
            check_causal(self._model, self._inputs[self._inputs.first_with_image()], name)
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
        self._check: GenerationCheck | None = None
        if check is not None:
            inputs = TrainingInputs(check.rows, processor, self._model.config, **limits)
            self._check = GenerationCheck(self._model, processor, inputs, check, self._tower)
        if settings.gradient_checkpointing or settings.dropout:
            prepare_layers(language_layers(self._model), self._dropout, checkpointing=settings.gradient_checkpointing)
        self._initial = tree_flatten(self._model.trainable_parameters()) if settings.rates else []
        self.start_again()
        self._trend = LossTrend.of_guessing(vocabulary_size(self._model))
        self._search = RateSearch(settings, self, self._trend)
        self._saved = Progress()

    def start_again(self) -> None:
        """Restore the adapter and the optimiser as they were before the first update."""
        import mlx.core as mx
        import mlx.optimizers as optim

        self._model.load_weights(self._initial, strict=False)
        rate = self._settings.learning_rate
        self._optimiser = optim.AdamW(learning_rate=rate, weight_decay=0.0, bias_correction=True)
        self._optimiser.init(self._model.trainable_parameters())
        mx.eval(self._model.trainable_parameters(), self._optimiser.state)

    def resume(self) -> Progress:
        """Restore the last checkpoint and return its progress. Raises StoreError if it is damaged."""
        begun = load_checkpoint(self._folder, self._model, self._optimiser)
        return begun or Progress(unvalidated=len(self._validation) > 0, unchecked=self._check is not None)

    def run(self, progress: Progress, report: Report, log_bytes: Callable[[], int], stop: Callable[[], bool]) -> bool:
        """Train from ``progress`` to the end and write the adapter; return False if ``stop`` came first.

        First the base is validated and checked, and learning rates are tried. The end is the last update, or a validation loss
        that no longer falls; then the best adapter is checked. A checkpoint is saved every ``save_every`` updates, before the
        validation, and at a stop; ``log_bytes`` is the size of the log of reports then. Raises DivergedError once the loss has
        risen for good, StoreError if nothing can be saved.
        """
        self._saved, self._trend = progress, progress.trend or self._trend
        while not self._is_over(progress):
            following = None if stop() else self._advance(progress)(progress, report, stop)
            progress = following or progress
            if following is None or self._is_due(progress):
                self._save(replace(progress, log_bytes=log_bytes()))
            if following is None:
                return False
        self._save_adapter(ADAPTER, progress)
        if self._check is None or progress.best is None:
            return True
        self._save(replace(progress, log_bytes=log_bytes()))
        return self._check_best(self._check, report, stop)

    def _is_over(self, progress: Progress) -> bool:
        settings = self._settings
        if progress.unvalidated or progress.unchecked or not self._search.is_over(progress):
            return False
        is_early = settings.patience is not None and progress.stale >= settings.patience
        return is_early or progress.step >= settings.steps

    def _advance(self, progress: Progress) -> Callable[[Progress, Report, Callable[[], bool]], Progress | None]:
        """Return what comes next: a validation, a check, a part of the search for a learning rate, or an update."""
        if progress.unvalidated:
            return self._validate
        if progress.unchecked:
            return self._check_answers
        return self._update if self._search.is_over(progress) else self._search.advance

    def _is_due(self, progress: Progress) -> bool:
        """Return whether to save a checkpoint: later while it may turn out that the training diverges."""
        step, every = progress.step, self._settings.save_every
        if len(progress.trials) > len(self._saved.trials):
            return True
        if not self._search.is_over(progress):
            return step > self._saved.step and step % every == 0
        waited = step - (self._saved.step // every + 1) * every
        return step == self._settings.steps or waited >= (0 if self._trend.is_sound else DETECTION)

    def _update(self, progress: Progress, report: Report, stop: Callable[[], bool]) -> Progress | None:
        """Make the next update and report it; return None, and change nothing, if ``stop`` comes first."""
        settings, step = self._settings, progress.step + 1
        try:
            update = self.learn(step, replace(settings, learning_rate=self._rate(progress)), stop)
        except UnsoundError as error:
            raise self._diverged(progress, str(error)) from error
        if update is None:
            return None
        report(update)
        self._trend = (progress.trend or self._trend).after(update.answer_loss)
        following = replace(progress, step=step, trend=self._trend)
        if self._trend.diverged:
            raise self._diverged(following, f"the mean loss of an answer's tokens rose to {self._trend.mean:.3g}")
        due = len(self._validation) and (step % settings.validate_every == 0 or step == settings.steps)
        return replace(following, unvalidated=bool(due), unchecked=self._is_checked(step))

    def _rate(self, progress: Progress) -> float:
        """Return the learning rate, which a search may have chosen. Raises DivergedError if each of its rates diverged."""
        try:
            rates = self._settings.rates
            trials = zip(rates, progress.trials, strict=True)
            return chosen_rate(trials, progress.base) if rates else self._settings.learning_rate
        except ValueError as error:
            raise DivergedError(
                "the training diverged with each of the learning rates; train again with lower --rates and another --name."
            ) from error

    def learn(self, step: int, settings: TrainingSettings, stop: Callable[[], bool]) -> StepReport | None:
        """Change the adapter by the rows of batch ``step``; return None, and change nothing, if ``stop`` comes first.

        Raises UnsoundError if the loss is not a number.
        """
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
        total, answer_tokens, tokens = Losses(), 0, 0
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
            raise UnsoundError("the loss is not a number")
        gradients, _ = optim.clip_grad_norm(tree_map(lambda value: value / total.weight, gradients), _GREATEST_NORM)
        self._optimiser.learning_rate = rate = settings.rate(step)
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

        Before the first update that is the base's loss. Return None, and change nothing, if ``stop`` comes first.
        """
        start = perf_counter()
        losses = self._measure(self._validation, range(len(self._validation)), stop)
        if losses is None:
            return None
        loss, step, best = losses.mean, progress.step, progress.best
        is_best = losses.is_finite() and step > 0 and (best is None or loss < best)
        if is_best:
            self._save_adapter(BEST, progress)
        examples = losses.by_example(self._examples) if is_best or step == 0 else None
        report(ValidationReport(step, loss, is_best, perf_counter() - start, examples))
        progress = replace(progress, unvalidated=False)
        if step == 0:
            return progress.with_base(loss, losses.answer_mean) if losses.is_finite() else progress
        reference = progress.reference
        is_lower = losses.is_finite() and (reference is None or loss < reference * (1 - LEAST_GAIN))
        return replace(
            progress,
            best=loss if is_best else best,
            reference=loss if is_lower else reference,
            stale=0 if is_lower else progress.stale + self._counts(progress, loss),
        )

    def _counts(self, progress: Progress, loss: float) -> bool:
        """Return whether a validation without a lower loss brings the end nearer.

        While a learning rate is high, a loss that stands still may yet fall as the rate decays, so its first half counts only
        where the loss is above the base's.
        """
        settings, base = self._settings, progress.base
        has_decayed = settings.schedule == "constant" or 2 * progress.step > settings.steps
        return has_decayed or not math.isfinite(loss) or (base is not None and loss > base)

    def _is_checked(self, step: int) -> bool:
        """Return whether the answers are checked along the way after update ``step``."""
        every = self._settings.check_every
        return self._check is not None and every > 0 and step % every == 0 and step < self._settings.steps

    def _check_answers(self, progress: Progress, report: Report, stop: Callable[[], bool]) -> Progress | None:
        """Check the answers of the adapter as it is and report the result; return None, and change nothing, if ``stop`` comes."""
        if self._check is None or (checked := self._check.run(progress.step, stop)) is None:
            return None
        report(checked)
        return replace(progress, unchecked=False)

    def _check_best(self, check: GenerationCheck, report: Report, stop: Callable[[], bool]) -> bool:
        """Check the best adapter, unless it was checked along the way; return False if ``stop`` came first."""
        weights, step = load_adapter(self._folder / BEST)
        if self._is_checked(step):
            return True
        if (checked := check.run_with(weights, step, stop)) is not None:
            report(checked)
        return checked is not None

    def validation_loss(self, stop: Callable[[], bool]) -> float | None:
        """Return the mean loss of the validation rows; None if ``stop`` comes first."""
        losses = self._measure(self._validation, range(len(self._validation)), stop)
        return None if losses is None else losses.mean

    def _measure(self, inputs: TrainingInputs, rows: Iterable[int], stop: Callable[[], bool]) -> Losses | None:
        """Return the losses of rows without learning from them; None if ``stop`` comes first."""
        self._model.eval()
        losses = Losses()
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
        saved = self._saved
        if (progress.step, progress.trials) == (saved.step, saved.trials) and progress.step:
            return
        if not self.has_finite_weights():
            raise self._diverged(progress, "the adapter's weights are not numbers")
        save_checkpoint(self._folder, self._model, self._optimiser, progress)
        self._saved = progress

    def has_finite_weights(self) -> bool:
        """Return whether all weights of the adapter are numbers."""
        return has_finite_weights(self._model)

    def _save_adapter(self, name: str, progress: Progress) -> None:
        """Write the adapter's folder with its provenance, and with the learning rate if a search chose it."""
        chosen = {"chosen rate": self._rate(progress)} if self._settings.rates else {}
        save_adapter(self._folder / name, self._model, {**self._provenance, **chosen}, progress.step)

    def _diverged(self, progress: Progress, problem: str) -> DivergedError:
        settle()  # a fault of the GPU gives wrong numbers too
        return DivergedError(
            f"the training diverged: {problem} at update {progress.step or 1}, with a learning rate of "
            f"{self._rate(progress):g}; {self._rescue(progress)}. Train again with a lower --learning-rate and another --name."
        )

    def _rescue(self, progress: Progress) -> str:
        """Write the adapter of the last checkpoint if it is sound and no better one is kept; return what is left."""
        base, best = progress.base, progress.best
        if best is not None and (base is None or best < base):
            return f"the adapter with the lowest validation loss is kept in {self._folder / BEST}"
        saved = self._saved.step
        if saved and self.resume().step == saved:
            losses = self._measure(self._inputs, self._batch(saved + 1), lambda: False)
            if losses is not None and losses.is_finite() and losses.answer_mean <= self._trend.limit:
                self._save_adapter(ADAPTER, self._saved)
                return f"the adapter of update {saved} is in {self._folder / ADAPTER}"
        return "it had no sound adapter yet"
