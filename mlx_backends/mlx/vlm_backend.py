"""Vision-language models through mlx-vlm: one request at a time, or several where the batch-invariance check allows it."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Generation, Likelihood, Request
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import (
    BATCHED,
    SEQUENTIAL,
    BatchInvariance,
    ReferenceAnswer,
)
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.engine_probe import Probe
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import DeviceLostError, metal_fault, out_of_memory
from mlx_backends.core.observed_answers import ObservedAnswer
from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.activation_type import record_dtype
from mlx_backends.mlx.first_answers import FirstAnswers
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery, root_cause, settle
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.mlx.mlx_preprocess import Preprocessor
from mlx_backends.mlx.mode_choice import EQUAL_SHARED, SEQUENTIAL_SHARED, SHARED, ModeChoice
from mlx_backends.mlx.prompt_probes import PromptProbes
from mlx_backends.mlx.row_factory import RowFactory
from mlx_backends.mlx.sequential_answers import NoText, SequentialAnswers, SequentialRequest
from mlx_backends.mlx.sequential_generation import SequentialGeneration
from mlx_backends.mlx.teacher_forcing import TeacherForcing
from mlx_backends.mlx.vision.feature_store import FeatureStore
from mlx_backends.mlx.vision.image_guard import guard_image_features
from mlx_backends.mlx.vision.vision_cache import VisionEncoder, encoder_identity
from mlx_backends.model_family_status import family_status

if TYPE_CHECKING:
    from mlx_backends.mlx.batched_answers import BatchedAnswers
    from mlx_backends.mlx.prompt_reading import SharedWork
    from mlx_backends.mlx.vlm_batch import VLMRows
    from mlx_backends.models.adapter_folder import Adapter
    from mlx_backends.models.context_length import ContextLength

WIDTH = 8
"""Requests answered in a batch by default."""

QUEUE_FACTOR = 2
"""Requests taken, as a multiple of the width: the others are prepared in the meantime."""


class VLMBackend(Backend):
    """A loaded vision-language model.

    A model's own generation settings never apply, and sampling is seeded from the request's digest, which covers
    ``decoding.seed``. One request is answered at a time and nothing is carried from one to the next, until
    :meth:`check_batch_invariance` has
    found a faster mode that gives the same answers. Whatever goes wrong while answering becomes a Generation with an error,
    but a request during which memory ran out or the GPU failed is repeated first, once and alone. No answer is returned before
    the GPU has confirmed all of it. If the GPU fails again on the same request, :meth:`step` raises DeviceLostError.

    Of a Generation, ``tokens`` are all that the model generated, including the one that ended the answer; ``text`` is
    decoded from all of them, without control tokens but with those around reasoning and turns; ``prefill_s`` runs from the
    prepared inputs to the first token, vision encoder included; ``peak_memory`` is MLX's, from before the images are
    opened to the last token. In a batch, times are a request's share of what was spent, and
    ``peak_memory`` is the highest while it was in progress.
    """

    def __init__(
        self,
        info: EngineInfo,
        media: MediaPath,
        model: Any,
        processor: Any,
        *,
        width: int | None = None,
        kv_bits: int | None = None,
        adapter: Adapter | None = None,
        context: ContextLength | None = None,
    ) -> None:
        """Take a loaded model and its processor.

        ``width`` bounds how many requests are answered in a batch; ``kv_bits`` is as in
        :class:`mlx_backends.options.LoadOptions`; ``adapter`` was applied to the model; ``context``
        bounds its prompts.
        """
        self.info = info
        self._kv_bits = kv_bits
        self.width = width or WIDTH
        self.invariance: BatchInvariance | None = None
        self._model = model
        self._processor = processor
        self._tokenizer = getattr(processor, "tokenizer", processor)
        own_tokenizer = copy.deepcopy(self._tokenizer)  # a tokenizer is not thread-safe, and a thread prepares requests
        self._constrainer = Constrainer(own_tokenizer, _ends(self._tokenizer, model.config))
        processor.detokenizer = NoText()
        with redirect_stdout(sys.stderr):
            self._preprocessor = Preprocessor(processor, model.config, media, context)
            self._preprocessor.prompter.check_template(info.model)
        self._detokenizer = Detokenizer(own_tokenizer, self._preprocessor.prompter)
        guard_image_features(model, self._preprocessor.image_tokens())
        self._sequential = SequentialAnswers(
            model, processor, self._preprocessor, self._constrainer.processors, kv_bits
        )
        self._limits = MemoryLimits.here()
        encoder = VisionEncoder(model, FeatureStore(partial(encoder_identity, info, model, adapter)))
        self._rows = RowFactory(model, processor, self._preprocessor, encoder, self._limits, kv_bits)
        self._teacher_forcing = TeacherForcing(self._preprocessor, self._sequential, self._rows.for_check)
        self._first = FirstAnswers(self._teacher_forcing, self._rows.empty_caches, self._preprocessor, info.device)
        self._recovery = FaultRecovery(model)
        record_dtype(model)
        self._probes = PromptProbes(model, self._preprocessor, self._teacher_forcing, self._recovery)
        self._generating = SequentialGeneration(
            self._sequential,
            self._teacher_forcing,
            self._probes,
            self._first.answers,
            own_tokenizer,
            self._detokenizer,
            self._limits,
            self._force_options,
        )
        self._mode_choice = ModeChoice(
            self._teacher_forcing, self._recovery, self._first, self._fitting, self._rows.prompt_tokens, kv_bits
        )
        status = family_status({"model_type": getattr(model.config, "model_type", None)}, info.model)
        self.family, self._family_remark = str(status), status.remark
        self._work: SequentialRequest | None = None
        self._batched: BatchedAnswers | None = None
        self._shared: SharedWork | None = None
        self._reuse: Reuse | None = None

    @property
    def remarks(self) -> Sequence[str]:
        invariance = () if self.invariance is None else self.invariance.remarks(self.info.model)
        family = (self._family_remark,) if self._family_remark else ()
        return (*family, *self._preprocessor.remarks(self.info.model), *invariance)

    @property
    def max_capacity(self) -> int:
        return QUEUE_FACTOR * self.width

    @property
    def reuse(self) -> Reuse | None:
        return self._reuse

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._batched is not None:
            if self._in_flight >= self.capacity:
                raise RuntimeError(f"the model takes at most {self.capacity} requests at a time")
            if isinstance(request.form, Likelihood):
                self._batched.sequential.append(request)
            else:
                self._batched.submit(request)
        elif self._work is not None:
            raise RuntimeError("the model answers one request at a time")
        else:
            self._work = SequentialRequest(request)

    @property
    def _in_flight(self) -> int:
        others = 0 if self._batched is None else self._batched.busy + len(self._batched.sequential)
        return others + (self._work is not None)

    def step(self) -> Sequence[Generation]:
        finished = self._step()
        if self._reuse is not None:
            self._reuse.answers += sum(generation.finish_reason != "error" for generation in finished)
        return finished

    def _step(self) -> Sequence[Generation]:
        if self._batched is not None and self._work is None:
            if self._batched.sequential:  # before anything else starts
                self._work = SequentialRequest(self._batched.sequential.popleft())
            else:
                with redirect_stdout(sys.stderr):
                    finished = self._batched.step()
                self.capacity = self._batched.capacity
                return finished
        work = self._work
        if work is None:
            return []
        try:
            with redirect_stdout(sys.stderr):
                done = self._generating.advance(work)
                if done is not None:
                    settle()
                    self._first.add(work, done)
        except Exception as failure:  # a request that fails must not end the run
            error = root_cause(failure)
            if self._repeats(work, error):
                return []
            done = Generation(work.request.id, "", "error", error=one_line(error))
        except BaseException:
            self.cancel(work.request.id)
            raise
        if done is None:
            return []
        self.cancel(work.request.id)
        self._limits.relieve()
        return [done]

    def cancel(self, request_id: str) -> None:
        if self._work is not None and self._work.request.id == request_id:
            work, self._work = self._work, None
            work.close()
        if self._batched is not None:
            self._batched.cancel(request_id)

    def observe(self, requests: Sequence[Request], coming: Sequence[Request] = ()) -> None:
        self._first.observe(requests, [request.unscored for request in coming])

    def observed(self, request: Request) -> ObservedAnswer | None:
        return self._first.answers.get(request)

    def repeated(self, request: Request) -> Any | None:
        with redirect_stdout(sys.stderr):
            return self._recovery.repeat(lambda: self._first.repeated(request))

    def is_worth_checking(self, requests: Sequence[Request], total: int) -> bool:
        if not self._first.has_answers:
            return super().is_worth_checking(requests, total)
        with redirect_stdout(sys.stderr):
            return self._mode_choice.is_worth_checking(requests, total, self.stored_checks)

    @property
    def references(self) -> Sequence[Request]:
        return self._first.compared

    def use_sequential_mode(self) -> None:
        self._answer_sequentially()
        self._first.clear()

    def _answer_sequentially(self) -> None:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        if self._batched is not None:
            self._batched.close()
        self._batched = self.invariance = None
        self._reuse = self._sequential.reuse = self._shared = None
        self.capacity = 1

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        self._answer_sequentially()
        try:
            with redirect_stdout(sys.stderr):
                self.invariance = self._mode_choice.check(requests, self.stored_checks, stop)
                if self.invariance is None:
                    return None
                if (way := self.invariance.way) in SHARED:
                    self.invariance = replace(self.invariance, lacks=self._lacks())
                if way != SEQUENTIAL:
                    width = 1 if way == SEQUENTIAL_SHARED else self._mode_choice.width
                    self._start_batched(width, share=way != BATCHED, equal=way == EQUAL_SHARED)
        finally:
            self._first.clear()
        return self.invariance

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        with redirect_stdout(sys.stderr):
            return self._probes.probe(request, forced, keep=keep)

    def first_logits(self, request: Request) -> Any:
        """Return the logits of the first token of an answer, as an array of the vocabulary's length."""
        with redirect_stdout(sys.stderr):
            return self._teacher_forcing.forced(request, (0,))[0]

    def image_rows(self, request: Request) -> Any | None:
        with redirect_stdout(sys.stderr):
            return self._probes.image_rows(request)

    def close(self) -> None:
        if self._work is not None:
            self.cancel(self._work.request.id)
        if self._batched is not None:
            self._batched.close()
        self._model = self._processor = self._tokenizer = self._batched = self._shared = None
        del self._preprocessor, self._detokenizer, self._constrainer, self._sequential, self._teacher_forcing
        del self._recovery, self._first, self._rows, self._probes, self._generating
        del self._mode_choice
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()

    def _repeats(self, work: SequentialRequest, error: Exception) -> bool:
        """Return whether ``work`` starts again because of ``error``, after dropping all that may be wrong by now.

        After any error, that is the rows in progress too: closing what failed may have taken the only report of a fault.

        Raises DeviceLostError where the GPU has failed on the same request before, or does not compute any more.
        """
        fault = metal_fault(error)
        work.close()
        if self._batched is not None:
            self._batched.abandon()
        if fault is None and (work.faults or not out_of_memory(error)):
            return False
        if (not self._recovery.recover(error) or work.faults) and fault is not None:
            raise DeviceLostError(error, work.request.id) from error
        self._work = SequentialRequest(work.request, faults=work.faults + 1)
        return True

    def _start_batched(self, width: int, *, share: bool, equal: bool = False) -> None:
        from mlx_backends.mlx.batched_answers import BatchedAnswers

        caches, self._reuse = self._first.take_work() if share else (None, Reuse())
        self._sequential.reuse = self._reuse

        def rows(width: int) -> VLMRows:
            nonlocal caches
            self._shared, caches = caches, None
            if self._shared is not None:
                self._shared.resize(self._rows.cache_sizes)
            elif share:
                self._shared = self._rows.empty_caches()
            return self._rows.for_answers(width, self._shared, self._reuse, equal=equal)

        self._batched = BatchedAnswers(
            rows,
            width,
            self._preprocessor.inputs,
            lambda request: list(self._constrainer.processors(request.unscored.form)),
            self._generating.scoring,
            self._detokenizer,
            self._limits,
            self._recovery,
        )
        self.capacity = self._batched.capacity

    def _fitting(self, requests: Sequence[Request], checked: Sequence[Request]) -> int:
        return self._rows.fitting(requests, checked, self.width)

    def _lacks(self) -> str:
        """Return in a sentence how this model is limited in reusing shared prefixes; empty where it is not."""
        from mlx_backends.mlx.kv_quantization import make_vlm_cache
        from mlx_backends.mlx.prefix_cache import trim_limitation

        reason = trim_limitation(make_vlm_cache(self._model.language_model, self._kv_bits))
        return reason and (
            f"{self.info.model} reuses a shared prefix only as a whole, up to where the requests then known diverge, "
            f"and reads it again for others: {reason}."
        )

    def _force_options(self, cases: Sequence[ReferenceAnswer]) -> Sequence[Any] | None:
        """Return the logits of ``cases`` with shared prefixes; None where these are not shared."""
        if self._shared is None:
            return None
        return self._teacher_forcing.force_rows(self._rows.for_answers(1, self._shared, self._reuse), cases)


def _ends(tokenizer: Any, config: Any) -> list[int]:
    """Return the tokens that end an answer, as mlx-vlm finds them before each answer."""
    criteria = tokenizer.stopping_criteria
    criteria.reset(config.eos_token_id)
    return list(criteria.eos_token_ids)
