"""Text-only models through mlx-lm: several requests in one batch where that changes no answer."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.vocabulary import Decoding, Generation, Message, Request, Text
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.batch_invariance import (
    SEQUENTIAL,
    AnsweringMode,
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    length_class,
    select_prepared,
)
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.error_text import one_line
from mlx_backends.core.logits_recorders import ForcedAnswer, LogitsRecorder
from mlx_backends.core.metal_faults import DeviceLostError, metal_fault, out_of_memory
from mlx_backends.core.prompts.text_prompt import TextPrompter
from mlx_backends.mlx.lm_batch import TextRow, make_rows
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery, raising_root_cause, root_cause, settle
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.models.context_length import ContextLength
from mlx_backends.models.memory_and_cache_sizes import device_name

WIDTH = 8
"""Requests answered in a batch, by a model that is proven to answer them as it does alone."""

BATCHED = "in batches"

_SLICE_S = 0.05
_MIN_TEMPERATURE = 0.01  # mlx-vlm's; below it the scaled logits overflow


class LMBackend(Backend):
    """A loaded text-only model.

    An answer depends on its request alone: nothing is carried from one to the next, sampling is seeded from the request's
    digest, and only models whose batches are proven equal take more than one request (:mod:`mlx_backends.mlx.lm_batch`).
    Whatever goes wrong while answering becomes a Generation with an error; the requests of a failed batch are retried one by one,
    so that a request cannot spoil its neighbours. A request during which, alone, memory ran out or the GPU failed is repeated
    once. No answer is returned before the GPU has confirmed all of it. If the GPU fails again on the same request, :meth:`step`
    raises DeviceLostError.

    Of a Generation, ``tokens`` are all that the model generated, including the one that ended the answer; ``prefill_s`` and
    ``decode_s`` are the request's share of the time spent up to and after its first token, so that their sum over all
    requests is the time it took; ``peak_memory`` is MLX's while the request was in progress, its neighbours included.
    """

    def __init__(
        self,
        info: EngineInfo,
        model: Any,
        tokenizer: Any,
        *,
        width: int | None = None,
        kv_bits: int | None = None,
        context: ContextLength | None = None,
    ) -> None:
        """Take a loaded model and mlx-lm's wrapper of its tokenizer, which knows the tokens that end an answer.

        ``width`` bounds how many requests are answered in a batch. With ``kv_bits``, which is as in
        :class:`mlx_backends.options.LoadOptions`, it is 1, because mlx-lm has no batches of quantised caches.
        ``context`` bounds the prompts.
        """
        from mlx_backends.mlx.loaded_model_check import position_remarks

        self.info = info
        self._kv_bits = kv_bits
        self._ends = frozenset(tokenizer.eos_token_ids)
        self._prompter = TextPrompter(tokenizer, context)
        self._prompter.check_template(info.model)
        self._prompt_remarks = (*self._prompter.remarks(info.model), *position_remarks(model, info.model))
        self._detokenizer = Detokenizer(tokenizer._tokenizer, self._prompter)
        self._constrainer = Constrainer(tokenizer._tokenizer, self._ends)
        self._limits = MemoryLimits.here()
        self._recovery = FaultRecovery(model)
        self._model = model
        self._width = width or WIDTH
        self._rows = make_rows(model, self._ends, self._width, kv_bits)
        self.capacity = self._max_capacity = self._rows.width
        self.invariance: BatchInvariance | None = None
        self._waiting: list[Request] = []
        self._started: list[_Work] = []
        self._retried: set[str] = set()
        """Requests to answer alone, because a batch that they were part of failed."""
        self._repeated: set[str] = set()
        """Requests during which, alone, memory ran out or the GPU failed."""

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if len(self._waiting) + len(self._started) >= self.capacity:
            raise RuntimeError(f"the model answers at most {self.capacity} requests at a time")
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        until = perf_counter() + _SLICE_S
        try:
            with redirect_stdout(sys.stderr):
                done = list(self._start_waiting())
                while self._started and not done:
                    done = self._advance()
                    if perf_counter() > until:
                        break
        except BaseException:
            self._waiting, self._started = [], []
            self._restart()
            raise
        self._forget(*(generation.request_id for generation in done))
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = [request for request in self._waiting if request.id != request_id]
        for work in [work for work in self._started if work.request.id == request_id]:
            self._started.remove(work)
            self._rows.drop(work.row)
        self._forget(request_id)

    def _forget(self, *request_ids: str) -> None:
        self._retried.difference_update(request_ids)
        self._repeated.difference_update(request_ids)

    @property
    def remarks(self) -> Sequence[str]:
        invariance = () if self.invariance is None else self.invariance.remarks(self.info.model)
        return (*self._prompt_remarks, *invariance)

    @property
    def max_capacity(self) -> int:
        return self._max_capacity

    def use_sequential_mode(self) -> None:
        self._set_width(1)
        self.invariance = None

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        self._set_width(self._width)
        self.invariance = None
        if self.capacity == 1:
            return None
        repeating = self._recovery.repeating
        with redirect_stdout(sys.stderr):
            selected, longest = select_prepared(requests, lambda request: len(self._row(request).prompt))
            if not selected:
                return None
            modes: dict[str, AnsweringMode] = {BATCHED: repeating(partial(self._forced, self._width))}
            conditions = {"width": self._width, "prompt_tokens": length_class(longest), "gpu": device_name()}
            check = ModeCheck(selected, repeating(self._case), repeating(self._padded), modes, conditions, stop)
            self.invariance = check.run(self.stored_checks)
        if self.invariance is None:
            return None
        if self.invariance.way == SEQUENTIAL:
            self._set_width(1)
        return self.invariance

    def close(self) -> None:
        self._waiting, self._started = [], []
        if self._model is not None:
            self._rows.close()
            self._model = None
            del self._rows, self._prompter, self._detokenizer, self._constrainer, self._recovery
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()

    def _set_width(self, width: int) -> None:
        """Answer up to ``width`` requests in a batch from now on."""
        if self._waiting or self._started:
            raise RuntimeError("the model is answering")
        self._rows.close()
        self._rows = make_rows(self._model, self._ends, width, self._kv_bits)
        self.capacity = self._rows.width

    def _case(self, request: Request) -> ReferenceAnswer:
        """Return the reference answer of ``request``, computed alone."""
        import numpy as np

        recorder, row = LogitsRecorder(), self._row(request)
        row.processors = [recorder]
        self._run(1, [row])
        return ReferenceAnswer(request, row.tokens, np.stack(recorder.logits[: len(row.tokens)]))

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Return the logits of each case, next to a longer row that pads it."""
        logits = []
        for case in cases:
            words = len(self._row(case.request).prompt) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            logits.append(self._forced(2, [case, ReferenceAnswer(longer, case.tokens, None)])[0])
        return logits

    def _forced(self, width: int, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Return the logits of ``cases``, forced through their tokens, up to ``width`` in a batch."""
        import numpy as np

        processors = [ForcedAnswer(case.tokens) for case in cases]
        rows = [self._row(case.request) for case in cases]
        for row, case, processor in zip(rows, cases, processors, strict=True):
            row.processors, row.max_tokens = [processor], len(case.tokens)
        self._run(width, rows)
        return [np.stack(processor.logits) for processor in processors]

    def _run(self, width: int, rows: Sequence[TextRow]) -> None:
        """Answer ``rows``, up to ``width`` in a batch."""
        batch = make_rows(self._model, self._ends, width, self._kv_bits)
        try:
            with raising_root_cause():
                waiting = list(rows)
                while any(row.finished is None for row in rows):
                    active = [row for row in rows if row.finished is None and row not in waiting]
                    while waiting and len(active) < batch.width:
                        active.append(waiting.pop(0))
                        batch.add(active[-1])
                    batch.work()
                settle()
        finally:
            batch.close()

    def _start_waiting(self) -> Iterator[Generation]:
        """Start waiting requests that may join those in progress; yield errors of those that cannot be prompted."""
        while self._waiting and not (
            self._started and {self._waiting[0].id, self._started[0].request.id} & self._retried
        ):
            request = self._waiting.pop(0)
            try:
                row = self._row(request)
                self._rows.add(row)
            except Exception as failure:  # a request that fails must not end the run
                error = root_cause(failure)
                if metal_fault(error) is None:
                    yield _failed(request, error)
                    continue
                if request.id in self._repeated:
                    raise DeviceLostError(error, request.id) from error
                self._repeated.add(request.id)
                self._waiting.insert(0, request)
                self._recover(error)
                return
            else:
                self._started.append(_Work(request, row))

    def first_logits(self, request: Request) -> Any:
        """Return the logits of the first token of an answer, as an array of the vocabulary's length."""
        import mlx.core as mx
        import numpy as np

        with redirect_stdout(sys.stderr):
            logits = self._model(mx.array([self._prompter.ids(request.messages)]))[0, -1]
        return np.array(logits.astype(mx.float32))

    def _row(self, request: Request) -> TextRow:
        decoding = request.decoding
        return TextRow(
            self._prompter.ids(request.messages),
            decoding.max_tokens,
            _sampler(decoding, int(request.digest[:8], 16)),
            self._constrainer.processors(request.form),
        )

    def _advance(self) -> list[Generation]:
        """Read a piece of the new prompts, give the other rows a token each, and return the finished answers."""
        import mlx.core as mx

        mx.reset_peak_memory()
        started = perf_counter()
        try:
            self._rows.work()
            if any(work.row.finished is not None for work in self._started):
                settle()
        except Exception as error:
            return self._recover(root_cause(error))
        share = (perf_counter() - started) / len(self._started)
        for work in self._started:
            work.count(share, int(mx.get_peak_memory()))
        done = [work for work in self._started if work.row.finished is not None]
        self._started = [work for work in self._started if work.row.finished is None]
        generations = [self._generation(work) for work in done]
        if done:
            self._limits.relieve()
        return generations

    def _recover(self, error: Exception) -> list[Generation]:
        """Return the error of the only row in progress, or retry rows one by one.

        Raises DeviceLostError where the GPU does not compute any more, or fails again on the only row.
        """
        requests = [work.request for work in self._started]
        only_id = requests[0].id if len(requests) == 1 else None
        self._started = []
        memory, fault = out_of_memory(error), metal_fault(error)
        self._restart(max(1, self.capacity // 2) if memory and only_id is None else None)
        if only_id is not None and fault is None and (not memory or only_id in self._repeated):
            return [_failed(requests[0], error)]
        if memory or fault is not None:
            if (not self._recovery.recover(error) or only_id in self._repeated) and fault is not None:
                raise DeviceLostError(error, only_id) from error
            if only_id is not None:
                self._repeated.add(only_id)
        self._retried.update(request.id for request in requests)
        self._waiting = requests + self._waiting
        return []

    def _restart(self, width: int | None = None) -> None:
        self._rows.close()
        self._rows = make_rows(self._model, self._ends, width or self.capacity, self._kv_bits)
        self.capacity = self._rows.width

    def _generation(self, work: _Work) -> Generation:
        row = work.row
        stopped = row.finished == "stop"
        memory = self._limits.usage()
        return Generation(
            work.request.id,
            self._detokenizer.reply(work.request, row.tokens[:-1] if stopped else row.tokens),
            "stop" if stopped else "length",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.prompt),
            completion_tokens=len(row.tokens),
            prefill_s=work.prefill_s,
            decode_s=work.decode_s,
            peak_memory=work.peak_memory,
            active_memory=memory.active,
            cache_memory=memory.cache,
        )


@dataclass
class _Work:
    """A request in progress, and its cost so far."""

    request: Request
    row: TextRow
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int = 0

    def count(self, seconds: float, peak_memory: int) -> None:
        """Add the cost of one step."""
        if len(self.row.tokens) > 1:
            self.decode_s += seconds
        else:
            self.prefill_s += seconds
        self.peak_memory = max(self.peak_memory, peak_memory)


def _failed(request: Request, error: Exception) -> Generation:
    return Generation(request.id, "", "error", error=one_line(error))


def _sampler(decoding: Decoding, seed: int) -> Callable[[Any], Any]:
    """Return the function that samples one answer's tokens from their log-probabilities of shape (1, vocabulary).

    Temperature, then top-p, as mlx-vlm applies them; the draws are the answer's own, whatever else is in the batch.
    """
    import mlx.core as mx
    from mlx_lm.sample_utils import apply_top_p, greedy_sampler

    if decoding.temperature == 0:
        greedy: Callable[[Any], Any] = greedy_sampler  # one function for all, so that a batch needs one call
        return greedy
    temperature = max(decoding.temperature, _MIN_TEMPERATURE)
    key = mx.random.key(seed)

    def sample(logprobs: Any) -> Any:
        nonlocal key
        key, subkey = mx.random.split(key)
        scaled = logprobs.astype(mx.float32) / temperature
        scaled = scaled - mx.logsumexp(scaled, axis=-1, keepdims=True)
        if 0 < decoding.top_p < 1:
            scaled = apply_top_p(scaled, decoding.top_p)
        return mx.random.categorical(scaled, key=subkey)

    return sample
