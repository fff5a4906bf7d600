"""Estimates of what fits in this machine's memory, before anything is loaded: a model, and how many requests besides."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.untrusted.system_tools import tool_output
from mlx_backends.models.metal_working_set import GIB, estimated_working_set, metal_working_set
from mlx_backends.models.request_memory import (
    cache_bytes,
    feature_bytes,
    image_bytes,
    pixels_per_token,
    prefill_bytes,
    score_bytes,
)

PREFILL_TOKENS = 512
"""Tokens of each prompt that are read in one pass."""

LARGE_IMAGE = 4_000_000
"""Pixels of the largest image that users should not have to think about: a screenshot, a page at 200 dots an inch."""

CACHED_PROMPTS, CACHED_IMAGES = (4, 64), (4, 64)
"""Prompts and images that the caches hold at least and at most, each counted as the longest prompt.

A run's requests come ordered by image and prefix (``app/engine/request_order.py``), so more would hardly be used.
"""

SMALL_CACHE = GIB // 4
"""Bytes that the cache of prompts may take if free: a small model's hold thousands, among them short texts that return."""

TEXT_TOKENS, ANSWER_TOKENS = 1500, 256  # of a prompt, besides its image
_RUNTIME = GIB // 2  # of MLX and its buffers, besides the weights
_PIXEL_STEP = 100_000
_MACS = (8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 192, 256, 512)
_WORKING_SET = "max_recommended_working_set_size"
_GPU_MEMORY = "total_memory"  # of MLX's CUDA build


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Result of a fit check: bytes needed and ``available``, the ``source`` of the latter, and a ``sentence`` for users."""

    need: int
    available: int
    source: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Bytes of memory for the key-value caches of shared prefixes, and for the features of images."""

    prefixes: int
    features: int

    @property
    def total(self) -> int:
        return self.prefixes + self.features


def required_memory(weights_bytes: int) -> int:
    """Return the bytes to run a model with ``weights_bytes`` of weight files: the weights, an eighth of them, and 2^30 bytes.

    The eighth and the rest are our allowance for the vision encoder's activations, the key-value cache of a prompt of
    a few thousand tokens, and MLX's buffer cache. Very long prompts or very large images need more.
    """
    return weights_bytes + weights_bytes // 8 + GIB


def memory_fit(weights_bytes: int, device: Mapping[str, Any] | None = None) -> MemoryFit:
    """Return whether a model with ``weights_bytes`` of weight files can run here.

    With ``device``, MLX's device information, the memory is Metal's recommended working set, exactly, or an NVIDIA GPU's.
    Without it, on a Mac Metal is asked in a process of its own (:func:`metal_working_set`), and where none answers it is
    estimated from the machine's memory; elsewhere it is the machine's memory less 2^31 bytes or an eighth, whichever is more.
    """
    available, source = _available(device or {})
    required = required_memory(weights_bytes)
    ok = required <= available
    verb = "fits" if ok else "does not fit"
    sentence = (
        f"it needs about {required / 1e9:.1f} GB ({weights_bytes / 1e9:.1f} GB of weights and working memory) "
        f"and {verb} in the {available / 1e9:.1f} GB of {source}"
    )
    return MemoryFit(required, available, source, ok, sentence)


def smallest_mac(weights_bytes: int) -> int | None:
    """Return the memory, in GB as Apple counts, of the smallest Mac that such a model fits on; None where there is none."""
    return next((size for size in _MACS if required_memory(weights_bytes) <= estimated_working_set(size * GIB)), None)


def row_bytes(config: Any, prompt_tokens: int, max_tokens: int, prefill_tokens: int, kv_bits: int | None = None) -> int:
    """Return the bytes of one request in a batch, for the arguments of :func:`batch_width`."""
    cache = cache_bytes(config, prompt_tokens + max_tokens, kv_bits, read=prefill_tokens) or 0
    return cache + prefill_bytes(config, min(prompt_tokens, prefill_tokens))


def least_caches(config: Any, prompt_tokens: int, kv_bits: int | None = None) -> CacheSizes:
    """Return the sizes with which a run in order hardly computes anything twice, whatever the memory."""
    return CacheSizes(
        CACHED_PROMPTS[0] * (cache_bytes(config, prompt_tokens, kv_bits) or 0),
        CACHED_IMAGES[0] * feature_bytes(config, prompt_tokens),
    )


def cache_sizes(
    config: Any,
    weights_bytes: int,
    prompt_tokens: int,
    rows_bytes: int,
    available: int,
    kv_bits: int | None = None,
) -> CacheSizes:
    """Return the sizes of the caches beside a model and the requests in progress, which take ``rows_bytes``.

    Beyond :func:`least_caches`, they get half and an eighth of what is left of the ``available`` bytes, for prompts of up to
    ``prompt_tokens``, image tokens included, but no more than :data:`CACHED_PROMPTS` (or :data:`SMALL_CACHE`) and
    :data:`CACHED_IMAGES` allow.
    """
    least = least_caches(config, prompt_tokens, kv_bits)
    spare = max(0, available - required_memory(weights_bytes) - rows_bytes - least.total)
    return CacheSizes(
        min(least.prefixes + spare // 2, max(SMALL_CACHE, least.prefixes // CACHED_PROMPTS[0] * CACHED_PROMPTS[1])),
        min(least.features + spare // 8, least.features // CACHED_IMAGES[0] * CACHED_IMAGES[1]),
    )


def batch_width(
    config: Any,
    weights_bytes: int,
    prompt_tokens: int,
    max_tokens: int,
    device: Mapping[str, Any] | None = None,
    *,
    most: int,
    prefill_tokens: int = PREFILL_TOKENS,
    kv_bits: int | None = None,
) -> int:
    """Return how many requests can be answered in a batch: at least 1 and at most ``most``.

    As many as fit in the working set of ``device`` (see :func:`memory_fit`) next to the model (:func:`required_memory`), each
    counted as if it were the longest: ``prompt_tokens``, image tokens included, and an answer of ``max_tokens``. Each takes its
    key-value cache (``cache_bytes``) and the working memory of reading ``prefill_tokens`` tokens of its prompt while the
    others read theirs (``prefill_bytes``; 0 where prompts are read one by one). ``config`` is what ``cache_bytes`` takes;
    1 where it does not tell how large a cache is. With ``kv_bits``, caches are quantised, and one prompt at a time is read next
    to all the others (:func:`score_bytes`).
    """
    if cache_bytes(config, prompt_tokens + max_tokens, kv_bits) is None:
        return 1
    row = row_bytes(config, prompt_tokens, max_tokens, prefill_tokens, kv_bits)
    spare = memory_fit(weights_bytes, device).available - required_memory(weights_bytes)
    if kv_bits is not None:
        spare -= score_bytes(config, min(prompt_tokens, PREFILL_TOKENS), prompt_tokens)
    return max(1, min(most, spare // row if row else most))


def peak_memory(
    config: Any, weights_bytes: int, *, prompt_tokens: int, image_tokens: int = 0, max_tokens: int, width: int = 1
) -> int:
    """Return the peak in bytes with ``width`` requests in a batch, of which one is being encoded and all are being read.

    ``prompt_tokens`` include the ``image_tokens``. It is never less than :func:`required_memory`.
    """
    row = row_bytes(config, prompt_tokens, max_tokens, PREFILL_TOKENS)
    peak = weights_bytes + _RUNTIME + width * row + image_bytes(config, image_tokens)
    return max(required_memory(weights_bytes), peak)


def suggested_max_pixels(config: Any, weights_bytes: int, available: int) -> int | None:
    """Return the pixels to which images should be limited so that one request fits in ``available`` bytes.

    None if images of ``LARGE_IMAGE`` pixels fit, or if the model does not even fit with the smallest images.
    """
    for pixels in range(LARGE_IMAGE, 0, -_PIXEL_STEP):
        tokens = pixels // pixels_per_token(config)
        peak = peak_memory(
            config,
            weights_bytes,
            prompt_tokens=TEXT_TOKENS + tokens,
            image_tokens=tokens,
            max_tokens=ANSWER_TOKENS,
        )
        if peak <= available:
            return None if pixels == LARGE_IMAGE else pixels
    return None


def total_memory() -> int:
    """Return this machine's memory in bytes; in a container, its limit."""
    return _total()


def device_info() -> Mapping[str, Any]:
    """Return MLX's information on the device it computes on; empty where this build of MLX has none."""
    import mlx.core as mx

    query = getattr(mx, "device_info", None) or getattr(mx.metal, "device_info", None)
    try:
        info = query() if query is not None else {}
    except RuntimeError:
        return {}
    return info if isinstance(info, dict) else {}


def device_name() -> str:
    """Return MLX's name of the device it computes on; empty where it has none."""
    return str(device_info().get("device_name", ""))


def working_set(device: Mapping[str, Any]) -> int | None:
    """Return Metal's recommended working set in bytes, from MLX's device information; None where that has no usable value."""
    exact = device.get(_WORKING_SET)
    return exact if isinstance(exact, int) and exact > 0 else None


def gpu_memory(device: Mapping[str, Any]) -> int | None:
    """Return the memory of an NVIDIA GPU in bytes, from MLX's device information; None where it has none of its own."""
    total = device.get(_GPU_MEMORY)
    return total if isinstance(total, int) and total > 0 else None


def _available(device: Mapping[str, Any]) -> tuple[int, str]:
    recommended = working_set(device)
    if recommended is not None:
        return recommended, "Metal's recommended working set"
    if (own := gpu_memory(device)) is not None:
        return own, "the GPU's memory"
    if (recommended := metal_working_set()) is not None:
        return recommended, "Metal's recommended working set"
    total = _total()
    if sys.platform == "darwin":
        return estimated_working_set(total), f"Metal's working set, estimated for a Mac with {total / GIB:.0f} GB"
    return max(0, total - max(2 * GIB, total // 8)), f"memory to use, of {total / 1e9:.1f} GB"


def _total() -> int:
    """Return the machine's memory in bytes."""
    if sys.platform == "darwin":
        size = tool_output("/usr/sbin/sysctl", "-n", "hw.memsize").strip()
        if size.isdigit():
            return int(size)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(physical, _container_limit() or physical)


def _container_limit() -> int | None:
    """Return the memory limit of a Linux container, where one is set."""
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text()
    except OSError:
        return None
    return int(text) if text.strip().isdigit() else None
