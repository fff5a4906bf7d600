"""Vision-language models in PyTorch: one request at a time, or several where the canary found that the same."""

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

from benchmarks.base import Generation, Likelihood, Message, Request, Text
from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import ALONE, BATCHED, BatchInvariance, ReferenceAnswer, answered, prove
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.loglikelihood import score
from mlx_backends.core.probe import Probe, made, pictures
from mlx_backends.mlx.load import one_line
from mlx_backends.mlx.memory_limits import out_of_memory
from mlx_backends.models import memory_estimate
from mlx_backends.pytorch.batch import TorchBatch, TorchRow, draws, peak_memory
from mlx_backends.pytorch.preprocess import TorchInputs, TorchPreprocessor

WIDTH = 8
"""How many requests are answered together, where nobody says otherwise."""

_SLICE_S = 0.05
_PADDED = 2


class TorchBackend(Backend):
    """A vision-language model in PyTorch.

    A model's own generation settings never apply but for the tokens that end an answer, greedy answers are the most likely
    token's, and sampling is seeded from the request's digest. Requests are answered one at a time, until :meth:`prove` has
    found that they are answered the same together. Whatever goes wrong while answering becomes a Generation with an error.

    The model works in a thread, so that :meth:`step` can return meanwhile. Of a Generation, ``tokens`` are all that the model
    gave, the one that ended the answer included; times are a request's share of what was spent while it was under way;
    ``peak_memory`` is PyTorch's on a GPU, of the whole batch, and the process's own most so far on a CPU.
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
        """``config`` is what the model's folder says; ``width`` bounds how many requests are answered together."""
        from transformers import GenerationConfig

        self.info = info
        self.width = width or WIDTH
        self.proof: BatchInvariance | None = None
        self._model = model
        self._config = config
        self._tokenizer = tokenizer = processor.tokenizer
        self._ends = answer_ends(Path(tokenizer.name_or_path), config, tokenizer)
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(self._ends), 0)
        model.generation_config = GenerationConfig(pad_token_id=self._pad)  # nothing of the model's own is to apply
        with redirect_stdout(sys.stderr):
            self._preparer = TorchPreprocessor(processor, model.config, media)
        self._reader = Detokenizer(tokenizer)
        self._constrainer = Constrainer(tokenizer, self._ends)
        self._waiting: deque[Request] = deque()
        self._alone: deque[Request] = deque()
        """Requests that are asked by themselves, because a batch that they were part of failed."""
        self._batch: TorchBatch | None = None

    @property
    def remarks(self) -> Sequence[str]:
        return () if self.proof is None else self.proof.remarks(self.info.model)

    @property
    def widest(self) -> int:
        return self.width

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._in_flight >= self.capacity:
            raise RuntimeError(f"the model takes at most {self.capacity} requests at a time")
        self._waiting.append(request)

    @property
    def _in_flight(self) -> int:
        return len(self._waiting) + len(self._alone) + (len(self._batch.live) if self._batch else 0)

    def step(self) -> Sequence[Generation]:
        if self._batch is None:
            return list(self._begin())
        done = [self._generation(row) for row in self._batch.finished(_SLICE_S)]
        if not self._batch.live:  # the thread is about to end; nothing else may use the model before it has
            self._batch.join()
            self._batch = None
        elif self._batch.over:
            done += self._ended(self._batch)
            self._batch = None
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(request for request in self._waiting if request.id != request_id)
        self._alone = deque(request for request in self._alone if request.id != request_id)
        for row in self._batch.live if self._batch else ():
            row.dropped = row.dropped or row.request.id == request_id

    def exact(self) -> None:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        self.proof = None
        self.capacity = 1

    def prove(self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False) -> BatchInvariance | None:
        self.exact()
        if not (cases := answered(requests, self._case, stop)):
            return None
        width = self._width(requests, cases)
        ways = {BATCHED: lambda cases: self._led(cases, width)} if width > 1 else {}
        self.proof = prove(cases, self._padded, ways)
        if self.proof.way != ALONE:
            self.capacity = width
        return self.proof

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        inputs = self._preparer.inputs(request)
        (logits,) = self._forced([(request, inputs, forced)]) if forced else ([],)
        images = pictures(inputs.tensors, inputs.images)
        return made(request, inputs.text, inputs.ids, images, forced, logits, keep=keep)

    def close(self) -> None:
        self._waiting.clear()
        self._alone.clear()
        if self._batch is not None:
            for row in self._batch.live:
                row.dropped = True
            self._batch.join()
        self._batch = self._model = None
        del self._preparer, self._reader, self._constrainer
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(self) -> Iterator[Generation]:
        """Start answering what waits; the errors of requests that cannot be prepared."""
        rows: list[TorchRow] = []
        waiting, most = (self._alone, 1) if self._alone else (self._waiting, self.capacity)
        while waiting and len(rows) < most:
            request = waiting.popleft()
            try:
                with redirect_stdout(sys.stderr):
                    inputs = self._preparer.inputs(request)
                if isinstance(request.form, Likelihood):
                    yield self._likeliest(request, request.form, inputs)
                else:
                    rows.append(self._row(request, inputs))
            except Exception as error:  # a request that fails must not end the run
                yield Generation(request.id, "", "error", error=one_line(error))
        if rows:
            self._batch = TorchBatch(self._model, rows, self._ends, self._pad)

    def _row(self, request: Request, inputs: TorchInputs) -> TorchRow:
        constraints = self._constrainer.processors(request.form)
        draw = draws(request.decoding, int(request.digest[:8], 16))
        return TorchRow(request, inputs, request.decoding.max_tokens, next(iter(constraints), None), draw)

    def _likeliest(self, request: Request, form: Likelihood, inputs: TorchInputs) -> Generation:
        """The likeliest of the options, which are read together where that is proven."""
        started = perf_counter()

        def led(sequences: Sequence[Sequence[int]]) -> Sequence[Any]:
            asked = [(request, inputs, tokens) for tokens in sequences]
            at = range(0, len(asked), self.capacity)
            return [logits for start in at for logits in self._forced(asked[start : start + self.capacity])]

        found = score(form, self._tokenizer, led)
        return found.generation(request, len(inputs.ids), perf_counter() - started, peak_memory(self.info.device))

    def _ended(self, batch: TorchBatch) -> list[Generation]:
        """What becomes of the rows of a batch that failed: alone they are errors, else each of them is asked again by itself."""
        if batch.error is None:
            return []
        requests = [row.request for row in batch.live]
        if out_of_memory(batch.error):
            self.capacity = max(1, self.capacity // 2)
            gc.collect()
        if len(batch.rows) == 1:
            return [Generation(each.id, "", "error", error=one_line(batch.error)) for each in requests]
        self._alone.extend(requests)
        return []

    def _generation(self, row: TorchRow) -> Generation:
        stopped = row.finished == "stop"
        return Generation(
            row.request.id,
            self._reader.text(row.tokens[:-1] if stopped else row.tokens),
            row.finished or "error",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.inputs.ids),
            completion_tokens=len(row.tokens),
            prefill_s=row.prefill_s,
            decode_s=row.decode_s,
            peak_memory=row.peak_memory,
        )

    # --- what the canary, probes and scores compare ---------------------------------------------------

    def _case(self, request: Request) -> ReferenceAnswer:
        """``request`` answered by itself."""
        import numpy as np

        row = self._row(request, self._preparer.inputs(request))
        row.logits = []
        self._whole([row])
        return ReferenceAnswer(request, row.tokens, np.stack(row.logits))

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """The first cases, each beside a longer row that pads it."""
        found = []
        for case in cases[:_PADDED]:
            words = len(self._preparer.inputs(case.request).ids) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            found.append(self._led([case, ReferenceAnswer(longer, case.tokens, None)], 2)[0])
        return found

    def _led(self, cases: Sequence[ReferenceAnswer], width: int) -> list[Any]:
        """The logits of ``cases`` when they are led through their tokens, ``width`` together."""
        found: list[Any] = []
        for start in range(0, len(cases), width):
            some = cases[start : start + width]
            found += self._forced([(case.request, self._preparer.inputs(case.request), case.tokens) for case in some])
        return found

    def _forced(self, asked: Sequence[tuple[Request, TorchInputs, Sequence[int]]]) -> list[Any]:
        """The logits, of the shape (tokens, vocabulary), of rows that are led through given tokens together."""
        import numpy as np

        rows = [TorchRow(request, inputs, len(tokens), forced=tokens, logits=[]) for request, inputs, tokens in asked]
        self._whole(rows)
        return [np.stack(row.logits or []) for row in rows]

    def _whole(self, rows: Sequence[TorchRow]) -> None:
        batch = TorchBatch(self._model, rows, self._ends, self._pad)
        batch.join()
        if batch.error is not None:
            raise batch.error

    def _width(self, requests: Sequence[Request], cases: Sequence[ReferenceAnswer]) -> int:
        """How many of ``requests`` fit beside the model, if a prompt twice as long as those that were tried is still to come."""
        longest = 2 * max(len(self._preparer.inputs(case.request).ids) for case in cases)
        return memory_estimate.width(
            self._config,
            self._model.get_memory_footprint(),
            longest,
            max(request.decoding.max_tokens for request in requests),
            gpu_memory(self.info.device, loaded=True),
            most=self.width,
            read_at_once=longest,
        )


def answer_ends(folder: Path, config: dict[str, Any], tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer, as mlx-vlm finds them: the generation settings', else the
    configuration's; and the tokenizer's."""
    own = folder / "generation_config.json"
    try:
        settings = read_json_file(own) if own.is_file() else {}
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{own} cannot be read as JSON; fetch the model again.") from error
    found = (settings if isinstance(settings, dict) else {}).get("eos_token_id", config.get("eos_token_id"))
    every = [*(found if isinstance(found, list) else [found]), tokenizer.eos_token_id]
    return frozenset(token for token in every if isinstance(token, int))


def gpu_memory(where: str, *, loaded: bool = False) -> dict[str, Any]:
    """A GPU's memory, as :func:`memory.fits` takes it: what is free, and what PyTorch itself has if a model is ``loaded``."""
    if where != "cuda":
        return {}
    import torch

    free, _ = torch.cuda.mem_get_info()
    return {"total_memory": free + (torch.cuda.memory_reserved() if loaded else 0)}
