"""Logits processors that record the logits of an answer, or force it through given tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ForcedAnswer:
    """Logits processor that forces an answer through ``tokens`` and records the ``logits`` on the way."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = tokens
        self.logits: list[Any] = []

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        if len(self.logits) == len(self.tokens):  # engines compute one token ahead
            return logits
        forced = self.tokens[len(self.logits)]
        self.logits.append(_to_numpy(logits))
        return mx.where(mx.arange(logits.shape[-1]) == forced, logits, mx.array(-float("inf"), logits.dtype))


class LogitsRecorder:
    """Logits processor that records the ``logits`` of an answer's first ``limit`` tokens, None for all, and changes nothing."""

    def __init__(self, limit: int | None = None) -> None:
        self.logits: list[Any] = []
        self._limit = limit

    def __call__(self, tokens: Any, logits: Any) -> Any:
        if self._limit is None or len(self.logits) < self._limit:
            self.logits.append(_to_numpy(logits))
        return logits


def _to_numpy(logits: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    return np.array(logits.astype(mx.float32)).reshape(-1)
