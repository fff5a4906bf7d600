"""Expected time of a run's requests in each mode of answering, its check included, from the times of the first answers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mlx_backends.core.observed_answers import OBSERVED_TOKENS, ObservedAnswer

Mode = Literal["sequential", "shared", "batched"]

SHARING_CHECK = 1.0
"""Time of the check of shared prefixes, as a multiple of reading a prompt: one is read once more."""

BATCH_CHECK, STORED_BATCH_CHECK = 7.5, 4.0
"""Time of the whole check of batches, and of confirming a stored one, in the same unit, measured with two benchmarks on a CPU."""

_STEP_SHARE = {"cpu": 0.6}
_STEP_SHARE_OF_GPU = 0.3
"""Time of a token in a batch, as a share of that of a sequential one. A CPU computes most of it for each row, which is measured;
a GPU reads the weights once for all of them, which is assumed."""


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """Facts from which the time of coming requests follows.

    Attributes:
        total: The requests.
        prefill_s: Seconds until the first token of a sequential answer.
        decode_s: Seconds from then to its end.
        tokens: The tokens of an answer.
        shared: The share of the prompts' tokens that earlier prompts begin with.
        device: What computes them: "cpu", "metal" or "cuda".
        is_stored: True if the check of batches is stored, and has to be confirmed only.
    """

    total: int
    prefill_s: float
    decode_s: float
    tokens: float
    shared: float
    device: str
    is_stored: bool = False

    @classmethod
    def of(
        cls, answers: Sequence[ObservedAnswer], total: int, shared: float, device: str, *, is_stored: bool
    ) -> ExpectedTime:
        """Return what follows from the ``answers`` observed so far, at least one."""
        prefill, decode, tokens = (
            statistics.median(values)
            for values in zip(*((item.prefill_s, item.decode_s, item.length) for item in answers), strict=True)
        )
        return cls(total, prefill, decode, tokens, shared, device, is_stored)

    @property
    def best(self) -> Mode:
        """The mode in which all requests are answered first."""
        times: dict[Mode, float] = {"sequential": self.sequential, "shared": self._shared, "batched": self._batched}
        return min(times, key=lambda mode: times[mode])

    @property
    def sequential(self) -> float:
        return self.total * (self.prefill_s + self.decode_s)

    @property
    def gives_references(self) -> bool:
        """True if it takes less time to give the answers that a check of batches refers to sequentially than to repeat them."""
        lost = self.shared * self.prefill_s + (1 - self._step_share) * self.decode_s
        return lost < self.prefill_s + self.decode_s * min(1.0, OBSERVED_TOKENS / max(1.0, self.tokens))

    @property
    def _shared(self) -> float:
        read = (1 - self.shared) * self.prefill_s
        return (SHARING_CHECK + self.shared) * self.prefill_s + self.total * (read + self.decode_s)

    @property
    def _batched(self) -> float:
        check = STORED_BATCH_CHECK if self.is_stored else BATCH_CHECK
        read = (1 - self.shared) * self.prefill_s
        return check * self.prefill_s + self.total * (read + self._step_share * self.decode_s)

    @property
    def _step_share(self) -> float:
        return _STEP_SHARE.get(self.device, _STEP_SHARE_OF_GPU)
