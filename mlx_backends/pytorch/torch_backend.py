"""Vision-language models in PyTorch: one request at a time, or several where the batch-invariance check allows it."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.vocabulary import Candidates, Generation, Likelihood, Message, Request, Text
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import (
    BATCHED,
    SEQUENTIAL,
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    length_class,
    select_prepared,
)
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.engine_probe import Probe, build_probe, split_pixels
from mlx_backends.core.error_text import one_line
from mlx_backends.core.loglikelihood import CandidateScoring, score_options
from mlx_backends.core.metal_faults import out_of_memory
from mlx_backends.models import memory_and_cache_sizes
from mlx_backends.models.context_length import context_length
from mlx_backends.models.end_tokens import end_tokens
from mlx_backends.pytorch.torch_batch import TorchBatch, TorchRow, make_sampler, peak_memory
from mlx_backends.pytorch.torch_continuations import agree, continuation_logits
from mlx_backends.pytorch.torch_preprocess import TorchInputs, TorchPreprocessor

WIDTH = 8
"""Requests answered in a batch by default."""

_SLICE_S = 0.05


class TorchBackend(Backend):
    """A vision-language model in PyTorch.

    A model's own generation settings never apply except for the tokens that end an answer, greedy answers take the most likely
    token, and sampling is seeded from the request's digest. Requests are answered one at a time, until
    :meth:`check_batch_invariance` has
    found that a batch gives the same answers. Whatever goes wrong while answering becomes a Generation with an error.

    The model works in a thread, so that :meth:`step` can return meanwhile. Of a Generation, ``tokens`` are all that the model
    generated, including the one that ended the answer; times are a request's share of what was spent while it was in progress;
    ``peak_memory`` is PyTorch's on a GPU, of the whole batch, and the process's own peak so far on a CPU.
    """

    def __init__(
        self,
        info: EngineInfo,
        media: MediaPath,
        model: Any,
        processor: Any,
        config: dict[str, Any],
        *,
        width: int | None = None,
    ) -> None:
        """Take a loaded model; ``config`` is its folder's, ``width`` bounds how many requests are answered in a batch."""
        from transformers import GenerationConfig

        self.info = info
        self.width = width or WIDTH
        self.invariance: BatchInvariance | None = None
        self._model = model
        self._config = config
        self._tokenizer = tokenizer = processor.tokenizer
        ends = [*end_tokens(Path(tokenizer.name_or_path), config), tokenizer.eos_token_id]
        self._ends = frozenset(end for end in ends if end is not None)
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(self._ends), 0)
        model.generation_config = GenerationConfig(pad_token_id=self._pad)  # none of the model's own settings apply
        with redirect_stdout(sys.stderr):
            self._preprocessor = TorchPreprocessor(processor, model.config, media, context_length(config))
            self._preprocessor.prompter.check_template(info.model)
            self._prompt_remarks = self._preprocessor.prompter.remarks(info.model)
        self._detokenizer = Detokenizer(tokenizer, self._preprocessor.prompter)
        self._constrainer = Constrainer(tokenizer, self._ends)
        self._waiting: deque[Request] = deque()
        self._retries: deque[Request] = deque()
        """Requests to answer alone, because a batch that they were part of failed."""
        self._unscored: deque[tuple[TorchRow, Generation]] = deque()
        """Answers whose requests have candidates to score, once no batch uses the model."""
        self._continues: bool | None = None
        """Flag for a model whose prompts can be continued from a cache; None until the first candidates are scored."""
        self._batch: TorchBatch | None = None

    @property
    def remarks(self) -> Sequence[str]:
        invariance = () if self.invariance is None else self.invariance.remarks(self.info.model)
        return (*self._prompt_remarks, *invariance)

    @property
    def max_capacity(self) -> int:
        return self.width

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._in_flight >= self.capacity:
            raise RuntimeError(f"the model takes at most {self.capacity} requests at a time")
        self._waiting.append(request)

    @property
    def _in_flight(self) -> int:
        waiting = len(self._waiting) + len(self._retries) + len(self._unscored)
        return waiting + (len(self._batch.live) if self._batch else 0)

    def step(self) -> Sequence[Generation]:
        if self._batch is None:
            return [self._scored(*self._unscored.popleft())] if self._unscored else list(self._start_waiting())
        done = []
        for row in self._batch.take_finished(_SLICE_S):
            generation = self._generation(row)
            if row.scoring is None:
                done.append(generation)
            else:
                self._unscored.append((row, generation))
        if not self._batch.live:  # the thread is about to end; nothing else may use the model before it has
            self._batch.join()
            self._batch = None
        elif self._batch.over:
            done += self._recover(self._batch)
            self._batch = None
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(request for request in self._waiting if request.id != request_id)
        self._retries = deque(request for request in self._retries if request.id != request_id)
        self._unscored = deque(pair for pair in self._unscored if pair[1].request_id != request_id)
        for row in self._batch.live if self._batch else ():
            row.dropped = row.dropped or row.request.id == request_id

    def use_sequential_mode(self) -> None:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        self.invariance = None
        self.capacity = 1

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        self.use_sequential_mode()
        requests = [request.unscored for request in requests]
        selected, longest = select_prepared(requests, lambda request: len(self._preprocessor.inputs(request).ids))
        if not selected:
            return None
        width = self._width(requests, 2 * longest)
        modes = {BATCHED: lambda cases: self._force_batches(cases, width)} if width > 1 else {}
        conditions = {"width": width, "prompt_tokens": length_class(longest), "gpu": gpu_name(self.info.device)}
        check = ModeCheck(selected, self._case, self._padded, modes, conditions, stop)
        self.invariance = check.run(self.stored_checks)
        if self.invariance is None:
            return None
        if self.invariance.way != SEQUENTIAL:
            self.capacity = width
        return self.invariance

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        inputs = self._preprocessor.inputs(request)
        (logits,) = self._forced([(request, inputs, forced)]) if forced else ([],)
        images = split_pixels(inputs.tensors, inputs.images)
        return build_probe(request, inputs.text, inputs.ids, images, forced, logits, keep=keep)

    def close(self) -> None:
        self._waiting.clear()
        self._retries.clear()
        self._unscored.clear()
        if self._batch is not None:
            for row in self._batch.live:
                row.dropped = True
            self._batch.join()
        self._batch = self._model = None
        del self._preprocessor, self._detokenizer, self._constrainer
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _start_waiting(self) -> Iterator[Generation]:
        """Start a batch of waiting requests; yield errors of those that cannot be prepared."""
        rows: list[TorchRow] = []
        waiting, limit = (self._retries, 1) if self._retries else (self._waiting, self.capacity)
        while waiting and len(rows) < limit:
            request = waiting.popleft()
            try:
                with redirect_stdout(sys.stderr):
                    inputs = self._preprocessor.inputs(request)
                if isinstance(request.form, Likelihood):
                    yield self._likeliest(request, request.form, inputs)
                else:
                    rows.append(self._row(request, inputs))
            except Exception as error:  # a request that fails must not end the run
                yield Generation(request.id, "", "error", error=one_line(error))
        if rows:
            self._batch = TorchBatch(self._model, rows, self._ends, self._pad)

    def _row(self, request: Request, inputs: TorchInputs) -> TorchRow:
        constraints = self._constrainer.processors(request.unscored.form)
        draw = make_sampler(request.decoding, request.sampling_seed)
        scoring = CandidateScoring(request.form, self._tokenizer) if isinstance(request.form, Candidates) else None
        limit = request.decoding.max_tokens
        return TorchRow(request, inputs, limit, next(iter(constraints), None), draw, scoring=scoring)

    def _scored(self, row: TorchRow, generation: Generation) -> Generation:
        """Return an answer with the scores of its request's candidates, or the error of scoring them."""
        assert row.scoring is not None
        started = perf_counter()
        try:
            row.scoring.start(self._detokenizer.text(_answer(row)))
            logits = self._continuations(row.request.unscored, row.inputs, row.scoring.sequences)
            scores = row.scoring.scores(_answer(row), logits)
        except Exception as error:  # a request that fails must not end the run
            return Generation(generation.request_id, "", "error", error=one_line(error))
        seconds = (generation.prefill_s or 0.0) + perf_counter() - started
        return replace(generation, scores=scores, prefill_s=seconds)

    def _continuations(self, request: Request, inputs: TorchInputs, sequences: Sequence[Sequence[int]]) -> list[Any]:
        """Return the logits of ``sequences`` after a prompt, which is computed once if this gives the same as forcing.

        The first ones of a model are computed in both ways.
        """
        if not sequences:
            return []
        if self._continues is None and len(sequences[0]) > 1:  # the longest
            (reference,) = self._forced([(request, inputs, sequences[0])])
            try:
                (logits,) = continuation_logits(self._model, inputs, sequences[:1], self._pad)
                self._continues = agree(logits, reference)
            except Exception:  # a model that cannot be called in this way
                self._continues = False
        if self._continues is not False:
            return continuation_logits(self._model, inputs, sequences, self._pad)
        return [logits for tokens in sequences for logits in self._forced([(request, inputs, tokens)])]

    def _likeliest(self, request: Request, form: Likelihood, inputs: TorchInputs) -> Generation:
        """Return the likeliest of the options, forced in a batch where that is proven."""
        started = perf_counter()

        def forced_logits(sequences: Sequence[Sequence[int]]) -> Sequence[Any]:
            rows = [(request, inputs, tokens) for tokens in sequences]
            starts = range(0, len(rows), self.capacity)
            return [logits for start in starts for logits in self._forced(rows[start : start + self.capacity])]

        scored = score_options(form, self._tokenizer, forced_logits)
        return scored.generation(request, len(inputs.ids), perf_counter() - started, peak_memory(self.info.device))

    def _recover(self, batch: TorchBatch) -> list[Generation]:
        """Return the error of the only row of a failed batch, or retry several rows one by one."""
        if batch.error is None:
            return []
        requests = [row.request for row in batch.live]
        if out_of_memory(batch.error):
            self.capacity = max(1, self.capacity // 2)
            gc.collect()
        if len(batch.rows) == 1:
            return [Generation(request.id, "", "error", error=one_line(batch.error)) for request in requests]
        self._retries.extend(requests)
        return []

    def _generation(self, row: TorchRow) -> Generation:
        return Generation(
            row.request.id,
            self._detokenizer.reply(row.request, _answer(row)),
            row.finished or "error",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.inputs.ids),
            completion_tokens=len(row.tokens),
            prefill_s=row.prefill_s,
            decode_s=row.decode_s,
            peak_memory=row.peak_memory,
        )

    # --- teacher forcing ------------------------------------------------------------------------------

    def _case(self, request: Request) -> ReferenceAnswer:
        """Return the reference answer of ``request``, computed alone."""
        import numpy as np

        row = self._row(request, self._preprocessor.inputs(request))
        row.logits = []
        self._run([row])
        return ReferenceAnswer(request, row.tokens, np.stack(row.logits))

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Return the logits of each case, next to a longer row that pads it."""
        logits = []
        for case in cases:
            words = len(self._preprocessor.inputs(case.request).ids) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            logits.append(self._force_batches([case, ReferenceAnswer(longer, case.tokens, None)], 2)[0])
        return logits

    def _force_batches(self, cases: Sequence[ReferenceAnswer], width: int) -> list[Any]:
        """Return the logits of ``cases``, forced through their tokens in batches of ``width``."""
        logits: list[Any] = []
        for start in range(0, len(cases), width):
            batch = cases[start : start + width]
            logits += self._forced(
                [(case.request, self._preprocessor.inputs(case.request), case.tokens) for case in batch]
            )
        return logits

    def _forced(self, forced_rows: Sequence[tuple[Request, TorchInputs, Sequence[int]]]) -> list[Any]:
        """Return the logits, of the shape (tokens, vocabulary), of rows forced through tokens in one batch."""
        import numpy as np

        rows = [
            TorchRow(request, inputs, len(tokens), forced=tokens, logits=[]) for request, inputs, tokens in forced_rows
        ]
        self._run(rows)
        return [np.stack(row.logits or []) for row in rows]

    def _run(self, rows: Sequence[TorchRow]) -> None:
        batch = TorchBatch(self._model, rows, self._ends, self._pad)
        batch.join()
        if batch.error is not None:
            raise batch.error

    def _width(self, requests: Sequence[Request], longest: int) -> int:
        """Return how many of ``requests`` fit next to the model, allowing for prompts of ``longest`` tokens."""
        return memory_and_cache_sizes.batch_width(
            self._config,
            self._model.get_memory_footprint(),
            longest,
            max(request.decoding.max_tokens for request in requests),
            gpu_memory(self.info.device, loaded=True),
            most=self.width,
            prefill_tokens=longest,
        )


def _answer(row: TorchRow) -> Sequence[int]:
    """Return the tokens of a finished answer, without the one that ended it."""
    return row.tokens[:-1] if row.finished == "stop" else row.tokens


def gpu_memory(device: str, *, loaded: bool = False) -> dict[str, Any]:
    """Return a GPU's memory, as :func:`memory_fit` takes it: the free part, and PyTorch's own if a model is ``loaded``."""
    if device != "cuda":
        return {}
    import torch

    free_bytes, _ = torch.cuda.mem_get_info()
    return {"total_memory": free_bytes + (torch.cuda.memory_reserved() if loaded else 0)}


def gpu_name(device: str) -> str:
    """Return the name of the GPU that PyTorch computes on; empty on other devices."""
    if device != "cuda":
        return ""
    import torch

    return str(torch.cuda.get_device_name())
