"""Rows of one loaded model: for its answers and for its checks, with the sizes of their caches."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Request
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.mlx.mlx_preprocess import Preprocessor
from mlx_backends.mlx.vision.vision_cache import VisionEncoder
from mlx_backends.models.memory_and_cache_sizes import least_caches

if TYPE_CHECKING:
    from mlx_backends.core.saved_work import Reuse
    from mlx_backends.mlx.prompt_reading import SharedWork
    from mlx_backends.mlx.vlm_batch import VLMRows

_USUAL_PROMPT = 4096
"""Tokens of a prompt before any is known."""


class RowFactory:
    """Maker of the rows of one loaded model. ``cache_sizes`` are those of the caches that its answers share.

    ``kv_bits`` quantises the rows' key-value caches.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        preprocessor: Preprocessor,
        encoder: VisionEncoder,
        limits: MemoryLimits,
        kv_bits: int | None,
    ) -> None:
        self.cache_sizes = least_caches(model.config, _USUAL_PROMPT, kv_bits)
        self._model = model
        self._processor = processor
        self._preprocessor = preprocessor
        self._encoder = encoder
        self._limits = limits
        self._kv_bits = kv_bits

    def for_answers(
        self, width: int, shared: SharedWork | None, reuse: Reuse | None, *, equal: bool = False
    ) -> VLMRows:
        """Return rows of the answering, which ``reuse`` counts, with the caches ``shared``."""
        from mlx_backends.mlx.vlm_batch import MAX_PADDING_FACTOR, NO_PADDING, VLMRows

        return VLMRows(
            self._model,
            self._processor,
            width,
            shared,
            max_padding=NO_PADDING if equal else MAX_PADDING_FACTOR,
            kv_bits=self._kv_bits,
            reuse=reuse,
        )

    def for_check(
        self,
        width: int,
        *,
        share: bool,
        join: bool = True,
        equal: bool = False,
        work: tuple[SharedWork, Reuse] | None = None,
    ) -> VLMRows:
        """Return rows of a check, which join short suffixes whatever the padding.

        Those that ``share`` have empty caches, unless ``work`` has some, with the count of what they hold.
        """
        from mlx_backends.mlx.vlm_batch import NO_PADDING, VLMRows

        shared, reuse = work or (self.empty_caches() if share else None, None)
        padding = NO_PADDING if equal else inf
        return VLMRows(
            self._model,
            self._processor,
            width,
            shared,
            join=join,
            max_padding=padding,
            kv_bits=self._kv_bits,
            reuse=reuse,
        )

    def empty_caches(self) -> SharedWork:
        """Return empty caches for what prompts share."""
        from mlx_backends.mlx.prompt_reading import SharedWork

        return SharedWork(self._encoder, self.cache_sizes)

    def fitting(self, requests: Sequence[Request], checked: Sequence[Request], most: int) -> int:
        """Return how many of ``requests``, at most ``most``, fit next to the model.

        A prompt may be twice as long as those ``checked``. What is left after that is divided among the caches.
        """
        from mlx_backends.mlx.batch_memory import divide_memory

        prompt = 2 * max(map(self.prompt_tokens, checked))
        answer = max(request.decoding.max_tokens for request in requests)
        width, self.cache_sizes = divide_memory(self._model, self._limits, prompt, answer, most, self._kv_bits)
        return width

    def prompt_tokens(self, request: Request) -> int:
        """Return the number of a prompt's tokens."""
        return len(self._preprocessor.inputs(request).content)
