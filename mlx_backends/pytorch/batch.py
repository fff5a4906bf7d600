"""Rows: answers that a model in PyTorch writes together, or one, in a thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from benchmarks.base import Decoding, FinishReason, Request
from mlx_backends.core.constrained_decoding import Constraint
from mlx_backends.pytorch.preprocess import TorchInputs, together

_MIN_TEMPERATURE = 0.01  # mlx-vlm's; below it the scaled logits overflow


@dataclass(eq=False)
class TorchRow:
    """An answer under way: what it is of, how its tokens are chosen, and those that have come.

    ``forced`` are tokens it is led through instead; ``logits`` collects what tokens are chosen from, unless it is None.
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
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int | None = None

    def chosen(self, logits: Any) -> int | None:
        """The next token, where it is not simply the most likely one."""
        if self.logits is not None:
            self.logits.append(logits.float().cpu().numpy().copy())
        if self.forced is not None:
            return self.forced[len(self.tokens)]
        if self.constraint is None and self.draw is None:
            return None
        import numpy as np

        values = logits.double().cpu().numpy()
        if self.constraint is not None:
            values = np.where(self.constraint.allowed(lambda: self.tokens[-1], len(values)), values, -np.inf)
        return int(values.argmax()) if self.draw is None else self.draw(values)

    def take(self, token: int, ends: frozenset[int]) -> None:
        """Take the token that came."""
        self.tokens.append(token)
        if self.forced is None and token in ends:
            self.finished = "stop"
        elif len(self.tokens) >= self.max_tokens:
            self.finished = "length"


class TorchBatch:
    """Rows that transformers generates together, in a thread; each is to be had as soon as it is finished.

    What transformers calls before it chooses a token (a logits processor) and after (a stopping criterion) are this object's.
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
        """The rows that nobody has had yet."""
        return [row for row in self.rows if not row.dropped]

    def finished(self, seconds: float) -> list[TorchRow]:
        """The rows that are finished, after at most so many seconds of waiting for one."""
        found: list[TorchRow] = []
        try:
            item = self._done.get(timeout=seconds)
            while item is not None:
                if not item.dropped:
                    item.dropped = True
                    found.append(item)
                item = self._done.get_nowait()
            self.join()
            self.over = True
        except Empty:
            pass
        return found

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _work(self) -> None:
        try:
            self._generate()
        except BaseException as error:  # it belongs to whoever asks
            self.error = error
        finally:
            self._done.put(None)

    def _generate(self) -> None:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        where = self._model.device
        if where.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        tensors = together([row.inputs for row in self.rows], self._pad)
        numbers = self._model.dtype
        moved = {
            name: value.to(where, numbers) if value.is_floating_point() else value.to(where)
            for name, value in tensors.items()
        }
        most = max(row.max_tokens for row in self.rows)
        with torch.inference_mode():
            self._model.generate(
                **moved,
                generation_config=GenerationConfig(max_new_tokens=most, do_sample=False, pad_token_id=self._pad),
                logits_processor=LogitsProcessorList([self._before]),
                stopping_criteria=StoppingCriteriaList([self._after]),
            )

    def _before(self, _: Any, logits: Any) -> Any:
        for number, row in enumerate(self.rows):
            if row.finished or row.dropped:
                continue
            token = row.chosen(logits[number])
            if token is not None:
                logits[number] = -float("inf")
                logits[number, token] = 0
        return logits

    def _after(self, tokens: Any, *_: Any, **__: Any) -> Any:
        import torch

        came = tokens[:, -1].tolist()
        now = perf_counter()
        live = [row for row in self.rows if not row.finished and not row.dropped]
        share, self._since = (now - self._since) / max(1, len(live)), now
        for row, token in zip(self.rows, came, strict=True):
            if row not in live:
                continue
            row.take(token, self._ends)
            if self._read:
                row.decode_s += share
            else:
                row.prefill_s += share
            if row.finished:
                row.peak_memory = peak_memory(tokens.device.type)
                self._done.put(row)
        self._read = True
        return torch.tensor([bool(row.finished or row.dropped) for row in self.rows], device=tokens.device)


def draws(decoding: Decoding, seed: int) -> Callable[[Any], int] | None:
    """What draws the tokens of one sampled answer, the same on every device; nothing for a greedy one.

    Temperature is applied first, then top-p, as mlx-vlm does; the random numbers are NumPy's and not MLX's.
    """
    if decoding.temperature == 0:
        return None
    import numpy as np

    random = np.random.default_rng(seed)

    def draw(logits: Any) -> int:
        scaled = logits / max(decoding.temperature, _MIN_TEMPERATURE)
        shares = np.exp(scaled - scaled.max())
        order = np.argsort(-shares, kind="stable")
        whole = np.cumsum(shares[order]) / shares.sum()
        kept = int(np.searchsorted(whole, decoding.top_p)) + 1
        at = np.searchsorted(whole[:kept], random.random() * whole[:kept][-1], side="right")
        return int(order[min(int(at), kept - 1)])

    return draw


def peak_memory(where: str) -> int | None:
    """The most memory in bytes: PyTorch's on a GPU since the batch began, the process's since it began on a CPU."""
    import torch

    if where == "cuda":
        return int(torch.cuda.max_memory_allocated())
    if where == "mps":
        return int(torch.mps.driver_allocated_memory())
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)
