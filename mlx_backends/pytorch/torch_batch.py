"""Rows of a model in PyTorch: answers generated in a batch, or alone, in a thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from benchmarks.vocabulary import Decoding, FinishReason, Request
from mlx_backends.core.constrained_decoding import Constraint
from mlx_backends.core.loglikelihood import CandidateScoring
from mlx_backends.pytorch.torch_preprocess import TorchInputs, collate

_MIN_TEMPERATURE = 0.01  # mlx-vlm's; below it the scaled logits overflow


@dataclass(eq=False)
class TorchRow:
    """An answer in progress: its request, how its tokens are chosen, and the tokens so far.

    ``forced`` are tokens for teacher forcing instead; ``logits`` collects what tokens are chosen from, unless it is None.
    ``scoring`` observes the answer of a request with candidates.
    """

    request: Request
    inputs: TorchInputs
    max_tokens: int
    constraint: Constraint | None = None
    draw: Callable[[Any], int] | None = None
    forced: Sequence[int] | None = None
    logits: list[Any] | None = None
    tokens: list[int] = field(default_factory=list)
    finished: FinishReason | None = None
    dropped: bool = False
    scoring: CandidateScoring | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int | None = None

    def next_token(self, logits: Any) -> int | None:
        """Return the next token; None where it is simply the most likely one."""
        if self.logits is not None:
            self.logits.append(logits.float().cpu().numpy().copy())
        if self.scoring is not None:
            self.scoring.answer.see(logits.float().cpu().numpy().copy())
        if self.forced is not None:
            return self.forced[len(self.tokens)]
        if self.constraint is None and self.draw is None:
            return None
        import numpy as np

        values = logits.double().cpu().numpy()
        if self.constraint is not None:
            values = np.where(self.constraint.allowed(lambda: self.tokens[-1], len(values)), values, -np.inf)
        return int(values.argmax()) if self.draw is None else self.draw(values)

    def append(self, token: int, ends: frozenset[int]) -> None:
        """Add a generated token."""
        self.tokens.append(token)
        if self.scoring is not None:
            self.scoring.answer.add(token)
        if self.forced is None and token in ends:
            self.finished = "stop"
        elif len(self.tokens) >= self.max_tokens:
            self.finished = "length"


class TorchBatch:
    """Rows that transformers generates in one batch, in a thread; each can be taken as soon as it is finished.

    Its methods serve as transformers' hooks before a token is chosen (a logits processor) and after (a stopping criterion).
    """

    def __init__(self, model: Any, rows: Sequence[TorchRow], ends: frozenset[int], pad: int) -> None:
        self.rows = rows
        self.over = False
        self.error: BaseException | None = None
        self._model = model
        self._ends = ends
        self._pad = pad
        self._done: SimpleQueue[TorchRow | None] = SimpleQueue()
        self._since = perf_counter()
        self._read = False
        self._thread = Thread(target=self._work, name="generate", daemon=True)
        self._thread.start()

    @property
    def live(self) -> list[TorchRow]:
        """Return the rows that are not dropped or taken."""
        return [row for row in self.rows if not row.dropped]

    def take_finished(self, seconds: float) -> list[TorchRow]:
        """Take the finished rows, after waiting for one for at most ``seconds``."""
        rows: list[TorchRow] = []
        try:
            row = self._done.get(timeout=seconds)
            while row is not None:
                if not row.dropped:
                    row.dropped = True
                    rows.append(row)
                row = self._done.get_nowait()
            self.join()
            self.over = True
        except Empty:
            pass
        return rows

    def join(self) -> None:
        """Wait until the batch has ended."""
        self._thread.join()

    def _work(self) -> None:
        try:
            self._generate()
        except BaseException as error:  # raised to the caller, who reads it from here
            self.error = error
        finally:
            self._done.put(None)

    def _generate(self) -> None:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        device = self._model.device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        tensors = collate([row.inputs for row in self.rows], self._pad)
        dtype = self._model.dtype
        moved = {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in tensors.items()
        }
        max_tokens = max(row.max_tokens for row in self.rows)
        with torch.inference_mode():
            self._model.generate(
                **moved,
                generation_config=GenerationConfig(max_new_tokens=max_tokens, do_sample=False, pad_token_id=self._pad),
                logits_processor=LogitsProcessorList([self._before]),
                stopping_criteria=StoppingCriteriaList([self._after]),
            )

    def _before(self, _: Any, logits: Any) -> Any:
        for number, row in enumerate(self.rows):
            if row.finished or row.dropped:
                continue
            token = row.next_token(logits[number])
            if token is not None:
                logits[number] = -float("inf")
                logits[number, token] = 0
        return logits

    def _after(self, tokens: Any, *_: Any, **__: Any) -> Any:
        import torch

        chosen_tokens = tokens[:, -1].tolist()
        now = perf_counter()
        live = [row for row in self.rows if not row.finished and not row.dropped]
        share, self._since = (now - self._since) / max(1, len(live)), now
        for row, token in zip(self.rows, chosen_tokens, strict=True):
            if row not in live:
                continue
            row.append(token, self._ends)
            if self._read:
                row.decode_s += share
            else:
                row.prefill_s += share
            if row.finished:
                row.peak_memory = peak_memory(tokens.device.type)
                self._done.put(row)
        self._read = True
        return torch.tensor([bool(row.finished or row.dropped) for row in self.rows], device=tokens.device)


def make_sampler(decoding: Decoding, seed: int) -> Callable[[Any], int] | None:
    """Return the function that samples one answer's tokens, the same on every device; None for a greedy answer.

    Temperature is applied first, then top-p, as mlx-vlm does; the random numbers are NumPy's and not MLX's.
    """
    if decoding.temperature == 0:
        return None
    import numpy as np

    random = np.random.default_rng(seed)

    def draw(logits: Any) -> int:
        scaled = logits / max(decoding.temperature, _MIN_TEMPERATURE)
        weights = np.exp(scaled - scaled.max())
        order = np.argsort(-weights, kind="stable")
        cumulative = np.cumsum(weights[order]) / weights.sum()
        count = int(np.searchsorted(cumulative, decoding.top_p)) + 1
        position = np.searchsorted(cumulative[:count], random.random() * cumulative[:count][-1], side="right")
        return int(order[min(int(position), count - 1)])

    return draw


def peak_memory(device: str) -> int | None:
    """Return the most memory in bytes: PyTorch's on a GPU since the batch started, the process's since it started on a CPU."""
    import torch

    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    if device == "mps":
        return int(torch.mps.driver_allocated_memory())
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
