"""Division of memory among the requests of a batch and the caches, next to a loaded model."""

from __future__ import annotations

from typing import Any

from mlx_backends.core import audio_video_inputs, image_inputs
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.mlx.prompt_reading import MAX_SUFFIX_TOKENS
from mlx_backends.models.memory_and_cache_sizes import (
    CacheSizes,
    batch_width,
    cache_sizes,
    device_info,
    least_caches,
    row_bytes,
)


def divide_memory(
    model: Any, limits: MemoryLimits, prompt_tokens: int, max_tokens: int, most: int, kv_bits: int | None
) -> tuple[int, CacheSizes]:
    """Return how many requests, at most ``most``, fit next to ``model``, and the sizes of the caches beside them.

    Each is counted as one of ``prompt_tokens`` and an answer of ``max_tokens``. The width follows from the machine, so that it is
    the same whenever a run resumes; what other programs leave now is for the caches.
    """
    from mlx.utils import tree_flatten

    config = model.config
    weights = sum(value.nbytes for _, value in tree_flatten(model.parameters()))
    held = weights + image_inputs.CACHE_BYTES + audio_video_inputs.CACHE_BYTES
    width = batch_width(
        config,
        held + least_caches(config, prompt_tokens, kv_bits).total,
        prompt_tokens,
        max_tokens,
        device_info(),
        most=most,
        prefill_tokens=MAX_SUFFIX_TOKENS,
        kv_bits=kv_bits,
    )
    rows = width * row_bytes(config, prompt_tokens, max_tokens, MAX_SUFFIX_TOKENS, kv_bits)
    return width, cache_sizes(config, held, prompt_tokens, rows, limits.available(), kv_bits)
