"""Patch of mlx-vlm: Hunyuan-VL's positions behind the first piece of a prompt, and in batches.

A token of an image has positions of its own, in four dimensions. mlx-vlm uses them in the first pass over a prompt only: what is
read in a second piece, as the end of a large image is, gets the positions of texts. It takes them from the prompt that was
embedded last, whichever is read, and gives all rows of a batch the position of the first. Its processor gives all images the
number of the first. The patch numbers them, hands positions over with the embeddings, and rotates each token by its own.

Source of the numbers: transformers 5.23, ``models/hunyuan_vl/modeling_hunyuan_vl.py``.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_DIMENSIONS = 4
_FAULT = "cache is None or offset_scalar == 0"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    language: Any = import_module("mlx_vlm.models.hunyuan_vl.language")
    model: Any = import_module("mlx_vlm.models.hunyuan_vl.hunyuan_vl").Model
    needed = replace_method(language.Attention, "__call__", _FAULT, _patched_attention)
    if needed:
        replace_method(model, "get_input_embeddings", "", _patched_embeddings)
        replace_method(language.LanguageModel, "__call__", "", _patched_language_model)
    return needed


def _patched_embeddings(embed: Any) -> Any:
    import mlx.core as mx

    @wraps(embed)
    def get_input_embeddings(self: Any, input_ids: Any = None, pixel_values: Any = None, **options: Any) -> Any:
        output = embed(self, input_ids, pixel_values, **options)
        positions = options.get("position_ids")
        if positions is None:
            positions = mx.broadcast_to(mx.arange(input_ids.shape[1]), (1, _DIMENSIONS, input_ids.shape[1]))
        # (1, tokens, 4), which mlx-vlm cuts and joins by tokens
        output.position_ids = _with_image_numbers(mx.array(positions).swapaxes(1, 2))
        return output

    return get_input_embeddings


def _with_image_numbers(positions: Any) -> Any:
    """Return the positions (1, tokens, 4) with the number of its image, from 0, as the last one of each token of an image."""
    import mlx.core as mx

    is_image = positions[..., -1] != positions[..., 0]
    begins = is_image & ~mx.pad(is_image[:, :-1], [(0, 0), (1, 0)])
    numbers = mx.where(is_image, mx.cumsum(begins.astype(mx.int32), axis=1) - 1, positions[..., -1])
    return mx.concatenate([positions[..., :-1], numbers[..., None]], axis=-1)


def _patched_language_model(_: Any) -> Any:
    import mlx.core as mx
    from mlx_vlm.models.base import LanguageModelOutput

    def call(
        self: Any, inputs: Any = None, inputs_embeds: Any = None, mask: Any = None, cache: Any = None, **options: Any
    ) -> Any:
        rows, length = (inputs if inputs_embeds is None else inputs_embeds).shape[:2]
        offset = mx.array(cache[0].offset if cache and cache[0] is not None else 0).reshape(-1, 1)
        positions = options.get("position_ids")
        if positions is not None and positions.shape[-1] != _DIMENSIONS:  # the processor's
            positions = mx.array(positions).swapaxes(1, 2)
        if positions is not None and positions.shape[1] != length:  # those of a whole prompt
            start = int(offset.max())
            positions = positions[:, start : start + length] if start + length <= positions.shape[1] else None
        if positions is None:
            positions = mx.broadcast_to((offset + mx.arange(length))[..., None], (rows, length, _DIMENSIONS))
        hidden = self.model(
            input_ids=inputs, inputs_embeds=inputs_embeds, mask=mask, cache=cache, position_ids=positions
        )
        tied = self.args.tie_word_embeddings
        return LanguageModelOutput(logits=self.model.embed_tokens.as_linear(hidden) if tied else self.lm_head(hidden))

    return call


def _patched_attention(_: Any) -> Any:
    from mlx_vlm.models.base import kv_sequence_length, scaled_dot_product_attention

    def attend(self: Any, x: Any, mask: Any = None, cache: Any = None, position_ids: Any = None) -> Any:
        rows, length, _ = x.shape
        queries, keys, values = (
            project(x).reshape(rows, length, -1, self.head_dim).transpose(0, 2, 1, 3)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        angles = _angles(position_ids, self.rotary_emb._inv_freq, self.xdrope_section)
        queries, keys = _rotated(queries, angles), _rotated(keys, angles)
        if self.config.use_qk_norm:
            queries, keys = self.query_layernorm(queries), self.key_layernorm(keys)
        if cache is not None:
            keys, values = cache.update_and_fetch(keys, values)
        if hasattr(mask, "shape"):
            mask = mask[..., : kv_sequence_length(keys)]
        output = scaled_dot_product_attention(queries, keys, values, cache=cache, scale=self.scale, mask=mask)
        return self.o_proj(output.transpose(0, 2, 1, 3).reshape(rows, length, -1))

    return attend


def _angles(positions: Any, frequencies: Any, sections: list[int]) -> Any:
    """Return the angles, in radians and of the shape (rows, 1, tokens, head size), of ``positions`` (rows, tokens, 4).

    Each of twice the ``sections`` of a head turns by another dimension's position.
    """
    import mlx.core as mx

    half = positions[..., None].astype(mx.float32) * frequencies
    angles = mx.concatenate([half, half], axis=-1)
    sizes = sections * 2
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes) - 1)]
    parts = mx.split(angles, ends, axis=-1)
    return mx.concatenate([part[:, :, n % len(sections)] for n, part in enumerate(parts)], axis=-1)[:, None]


def _rotated(vectors: Any, angles: Any) -> Any:
    import mlx.core as mx
    from mlx_vlm.models.rope_utils import rotate_half

    precise = vectors.astype(mx.float32)
    return (precise * mx.cos(angles) + rotate_half(precise) * mx.sin(angles)).astype(vectors.dtype)
