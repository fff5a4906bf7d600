"""Quantised key-value caches: keys and values of full attention in 8 or 4 bits, from the first token on.

Each token's keys and values are quantised by themselves, and attention reads nothing but the quantised ones. An answer
therefore does not depend on the pieces in which its prompt is read, unlike with mlx-vlm's and mlx-lm's own ``kv_bits``, which
quantises a cache after each piece. Layers with a sliding window, and the states of other layers, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from mlx_lm.models.cache import KVCache as TextKVCache
from mlx_lm.models.cache import QuantizedKVCache as TextQuantizedKVCache
from mlx_lm.models.cache import make_prompt_cache as make_text_prompt_cache
from mlx_vlm.models.cache import KVCache, QuantizedKVCache, make_prompt_cache

from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.mlx.metal.metal_fault_recovery import root_cause
from mlx_backends.models.request_memory import kv_group_size

PREFILL_TOKENS = 512
"""Most tokens of a prompt that are read in one pass; attention to a quantised cache holds the scores of all of them."""

MAX_SHIFT_SHARE = 0.2
"""Most that 8 bits may move one of the ten highest logprobs, as a share of the standard deviation of all of them.

Rounding to 8 bits moves them by some hundredths of it; a model that reads the quantised cache wrongly by more than 1.
"""

_CHECKED_BITS, _TOP = 8, 10
_TEXT = "The bar for March shows 42 thousand visitors, but the passage reports 57 thousand for the same month."

Cache = list[Any]
"""A model's key-value cache of one prompt: an entry for each layer."""


class QuantizedCache(QuantizedKVCache):  # type: ignore[misc]
    """mlx-vlm's quantised cache of one layer and one row, in groups that fit the heads, and with a way into a batch."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if self.keys is None:
            self.group_size = _group_size(keys, values)
        return super().update_and_fetch(keys, values)

    @classmethod
    def merge(cls, rows: Sequence[QuantizedCache]) -> Any:
        """Return the caches of several rows as one of a batch."""
        return rows[0].prefix_cache_merge(rows, [row.offset for row in rows])


class QuantizedTextCache(TextQuantizedKVCache):  # type: ignore[misc]
    """mlx-lm's quantised cache of one layer, in groups that fit the heads."""

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        if self.keys is None:
            self.group_size = _group_size(keys, values)
        return super().update_and_fetch(keys, values)


def make_vlm_cache(language_model: Any, bits: int | None) -> Cache:
    """Return an empty cache for a language model of mlx-vlm, quantised to ``bits`` unless these are None."""
    cache: Cache = make_prompt_cache(language_model)
    return cache if bits is None else [_quantized(entry, KVCache, QuantizedCache, bits) for entry in cache]


def make_text_cache(model: Any, bits: int | None) -> Cache:
    """Return an empty cache for a model of mlx-lm, quantised to ``bits`` unless these are None."""
    cache: Cache = make_text_prompt_cache(model)
    return cache if bits is None else [_quantized(entry, TextKVCache, QuantizedTextCache, bits) for entry in cache]


def check_quantized_cache(name: str, model: Any, tokenizer: Any, *, has_vision: bool) -> None:
    """Raise ModelError if a loaded model does not compute correctly with a quantised cache.

    It reads a sentence with and without one of 8 bits, of which the rounding is known to be small. ``tokenizer`` may be a
    processor.
    """
    import mlx.core as mx

    ids = mx.array([getattr(tokenizer, "tokenizer", tokenizer).encode(_TEXT)])
    try:
        if has_vision:
            make: Callable[[int | None], Cache] = lambda bits: make_vlm_cache(model.language_model, bits)  # noqa: E731
            caches = make(None), make(_CHECKED_BITS)
            plain, quantised = (_vlm_logprobs(model, ids, cache) for cache in caches)
        else:
            caches = make_text_cache(model, None), make_text_cache(model, _CHECKED_BITS)
            plain, quantised = (_text_logprobs(model, ids[0], cache) for cache in caches)
    except Exception as failure:  # attention code that expects plain arrays can raise anything
        error = root_cause(failure)
        if metal_fault(error) is not None:
            raise
        raise ModelError(f"{name} cannot answer with a quantised key-value cache: {one_line(error)}.") from error
    if not any(isinstance(entry, QuantizedCache | QuantizedTextCache) for entry in caches[1]):
        kinds = ", ".join(sorted({type(entry).__name__ for entry in caches[1]}))
        raise ModelError(f"{name} has no key-value cache that can be quantised ({kinds}); remove kv_bits.")
    highest = plain.argsort()[-_TOP:]
    shift = float(abs(plain - quantised)[highest].max())
    if not shift <= MAX_SHIFT_SHARE * float(plain.std()):
        raise ModelError(
            f"{name} computes wrongly with a quantised key-value cache: 8 bits alone move a logprob by {shift:.3g} "
            f"where they spread by {plain.std():.3g}; remove kv_bits."
        )


def _quantized(entry: Any, plain: type, quantized: type, bits: int) -> Any:
    return quantized(bits=bits) if type(entry) is plain else entry


def _group_size(keys: Any, values: Any) -> int:
    """Return the numbers that share a scale; both kinds must have whole groups."""
    sizes = [kv_group_size(int(array.shape[-1])) for array in (keys, values)]
    if None in sizes:
        raise ModelError(f"its heads have {keys.shape[-1]} and {values.shape[-1]} numbers, not multiples of 32")
    return min(size for size in sizes if size is not None)


def _vlm_logprobs(model: Any, ids: Any, cache: Cache) -> Any:
    """Return the logprobs of the token after ``ids``, of the shape (1, tokens), as an array of NumPy."""
    from mlx_vlm.generate import ar

    return _first(ar.generate_step(ids, model, None, None, max_tokens=1, temperature=0.0, prompt_cache=cache))


def _text_logprobs(model: Any, ids: Any, cache: Cache) -> Any:
    """Return the logprobs of the token after ``ids``, of the shape (tokens,), as an array of NumPy."""
    from mlx_lm.generate import generate_step

    return _first(generate_step(ids, model, max_tokens=1, prompt_cache=cache))


def _first(steps: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    ((_, logprobs),) = islice(steps, 1)
    steps.close()
    return np.array(logprobs.astype(mx.float32)).reshape(-1)
