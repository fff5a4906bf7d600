"""Patch of mlx-vlm: Llama 4 in batches, and behind shared prefixes.

Three of four layers see only their own chunk of the prompt (8192 tokens). mlx-vlm's caches of such layers cannot be joined, its
mask of a chunk shows the padding of a batch, and both the chunks and the scale of the other layers' attention take each row's
positions from the longest row. The patch gives all layers ordinary caches, which for a prompt beyond one chunk hold more than is
seen, and counts each row's positions without its padding.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_EPSILON = 1e-6  # of the norm of queries and keys, which mlx-vlm has fixed


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    language: Any = import_module("mlx_vlm.models.llama4.language")
    needed = replace_method(language.LanguageModel, "make_cache", "ChunkedKVCache(", _patched_caches)
    if needed:
        replace_method(language.LlamaModel, "__call__", "", _patched_model)
        replace_method(language.Attention, "__call__", "", _patched_attention)
    return needed


def _patched_caches(_: Any) -> Any:
    from mlx_vlm.models.cache import KVCache

    return lambda self: [KVCache() for _ in self.layers]


def _patched_model(_: Any) -> Any:
    from mlx_vlm.models.base import create_attention_mask

    def call(self: Any, input_ids: Any = None, input_embeds: Any = None, mask: Any = None, cache: Any = None) -> Any:
        hidden = self.embed_tokens(input_ids) if input_embeds is None else input_embeds
        caches = cache or [None] * len(self.layers)
        causal = create_attention_mask(hidden, caches)
        chunked = _chunk_mask(hidden.shape[1], caches[0], self.config.attention_chunk_size)
        whole = causal if mask is None else mask
        for layer, entry in zip(self.layers, caches, strict=True):
            of_chunk = causal if chunked is None else chunked
            hidden = layer(hidden, of_chunk if layer.use_chunked_attention else whole, cache=entry)
        return self.norm(hidden)

    return call


def _chunk_mask(length: int, cache: Any, size: int) -> Any:
    """Return which positions each of ``length`` new tokens sees: those before it in its chunk. None if there is one chunk."""
    import mlx.core as mx

    padding = getattr(cache, "left_padding", None)
    start = 0 if cache is None else cache.offset if padding is None else cache._idx
    if start + length <= size:
        return None
    keys = mx.arange(start + length)[None]
    if padding is not None:
        keys = keys - padding[:, None, None, None]
    queries = keys[..., start:].swapaxes(-1, -2)
    return (keys >= 0) & (keys <= queries) & (keys // size == queries // size)


def _patched_attention(_: Any) -> Any:
    import mlx.core as mx
    from mlx_vlm.models.base import scaled_dot_product_attention

    def attend(self: Any, x: Any, mask: Any = None, cache: Any = None) -> Any:
        rows, length, _ = x.shape
        queries, keys, values = (
            project(x).reshape(rows, length, -1, self.head_dim).transpose(0, 2, 1, 3)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        offset = 0 if cache is None else cache.offset
        if self.use_rope:
            queries, keys = self.rope(queries, offset=offset), self.rope(keys, offset=offset)
            if self.use_qk_norm:
                queries, keys = (mx.fast.rms_norm(part, weight=None, eps=_EPSILON) for part in (queries, keys))
        elif self.attn_temperature_tuning:
            places = mx.array(offset).reshape(-1, 1) + mx.arange(1, length + 1)
            scales = mx.log(mx.floor(places / self.floor_scale) + 1) * self.attn_scale + 1
            queries = (queries * scales[:, None, :, None]).astype(queries.dtype)
        if cache is not None:
            keys, values = cache.update_and_fetch(keys, values)
        output = scaled_dot_product_attention(queries, keys, values, cache, scale=self.scale, mask=mask)
        return self.o_proj(output.transpose(0, 2, 1, 3).reshape(rows, length, -1))

    return attend
