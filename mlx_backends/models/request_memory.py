"""Memory that one request takes next to the weights, computed from a model's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from mlx_backends.models.config_defaults import text_defaults

_STEP = 256  # tokens by which MLX's caches grow
_BYTES = {"float32": 4, "mlx.core.float32": 4}
_SLIDING = ("sliding_attention", "chunked_attention")
_FULL = ("full_attention", "attention")
_PATCH_NUMBERS = 40
"""Working memory of an image encoder: numbers per patch, as a multiple of the encoder's width.

Measured with MLX on a CPU, on encoders of real width in fp32 at 64 tokens: Qwen3-VL-4B 38 times the width, Qwen3-VL-8B 35,
Qwen2.5-VL-7B 34. At 144 and 256 tokens Qwen3-VL-4B takes 33 times, besides attention, which a CPU does not fuse.
Measured on no Mac.
"""
_KIMI_POSITIONS = 5 * 512**2 * 4
"""Bytes for each number of a head in which Kimi-VL's encoder computes the positions of its whole grid, for every image.

Measured with MLX on a CPU: 79 MB for heads of 16 numbers.
"""
_GROUPS = (64, 32)  # the first is the default of mlx-vlm and mlx-lm
_SIDES = ("scale_factor", "downsample_factor", "spatial_merge_size")
_PATCHES_PER_TOKEN = {"gemma3n": 1, "kimi_vl": 4, "phi3_v": 4, "llava_next": 2, "llava_onevision": 2}
"""The vectors for a token where the configuration does not tell; those of the last two depend on the image."""

_MERGE, _PATCH = 2, 16  # of most models, where a configuration does not tell


def cache_bytes(config: Any, tokens: int, kv_bits: int | None = None, *, read: int = 1) -> int | None:
    """Return the bytes of one request's key-value cache with ``tokens`` tokens; None where the configuration does not tell.

    Each token and layer takes two (keys and values) of key-value heads x head dimension numbers. ``config`` is a model's
    ``config.json``, or the configuration that mlx-vlm or mlx-lm made of it. A layer with a sliding window holds that many tokens
    and, while a prompt is read, the others of the ``read`` tokens of one pass; layers without attention (convolutions, linear
    attention) hold a small state, which the model's own allowance covers; layers that share another's cache hold none.
    MLX's caches grow in steps of 256 tokens. With ``kv_bits``, layers of full attention hold numbers of that many bits, and a
    scale and a bias for each group of them (:func:`kv_group_size`).
    """
    text = text_config(config)
    kinds = _layers(text)
    if not kinds or not head_size(config) or not _key_value_heads(text):
        return None
    cached_tokens = -(-tokens // _STEP) * _STEP
    window = number(text, "sliding_window")
    windowed_tokens = min(tokens, window + max(read, 1) - 1) if window else cached_tokens
    element = element_bytes(config)
    full, windowed = (_cached_numbers(config, is_full=is_full) for is_full in (True, False))
    full_bytes, windowed_bytes = full * element, windowed * element  # of a token and layer
    group = kv_group_size(head_size(config, is_full=True) or 0) if kv_bits is not None else None
    if kv_bits is not None and group is not None:
        full_bytes = full * kv_bits // 8 + full // group * 2 * element
    full_count = sum(kind in _FULL for kind in kinds)
    return full_count * cached_tokens * full_bytes + (len(kinds) - full_count) * windowed_tokens * windowed_bytes


def head_size(config: Any, *, is_full: bool = False) -> int | None:
    """Return how many numbers a head of the language model has; None where the configuration does not tell.

    ``is_full`` asks for a layer of full attention, whose heads are wider in Gemma 4.
    """
    text = text_config(config)
    heads, hidden_size = number(text, "num_attention_heads"), number(text, "hidden_size")
    wider = number(text, "global_head_dim") if is_full else None
    return wider or number(text, "head_dim") or (hidden_size // heads if hidden_size and heads else None)


def kv_group_size(size: int) -> int | None:
    """Return how many numbers of a quantised cache share a scale and a bias, for heads of ``size``; None if MLX has no such."""
    return next((group for group in _GROUPS if size % group == 0), None)


def _key_value_heads(text: Any, *, is_full: bool = False) -> int:
    """Return the key-value heads of a layer; Gemma 4's layers of full attention have fewer where keys serve as values."""
    fewer = number(text, "num_global_key_value_heads") if is_full and _value(text, "attention_k_eq_v") else None
    return fewer or number(text, "num_key_value_heads") or number(text, "num_attention_heads") or 0


def _cached_numbers(config: Any, *, is_full: bool) -> int:
    """Return how many numbers a layer caches for a token; latent attention has its own sizes."""
    text = text_config(config)
    nope, rope, value = (number(text, name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    of_head = nope + rope + value if nope and rope and value else 2 * (head_size(config, is_full=is_full) or 0)
    return _key_value_heads(text, is_full=is_full) * of_head


def prefill_bytes(config: Any, tokens: int) -> int:
    """Return the bytes of working memory while ``tokens`` tokens of one prompt are read.

    These are the logits of all of them, which MLX computes before it drops all but the last, and four times a layer's widest
    activations.
    """
    text = text_config(config)
    widest = (number(text, "vocab_size") or 0) + 4 * (number(text, "intermediate_size") or 0)
    return tokens * widest * element_bytes(config)


def score_bytes(config: Any, tokens: int, context: int) -> int:
    """Return the bytes of working memory while ``tokens`` tokens attend to ``context`` tokens of a quantised cache.

    MLX has no fused kernel for it: the scores of all heads are computed before and after the softmax.
    """
    return 2 * (number(text_config(config), "num_attention_heads") or 0) * tokens * context * element_bytes(config)


def image_bytes(config: Any, tokens: int) -> int:
    """Return the bytes of working memory while an image of ``tokens`` tokens is encoded; 0 for a text model."""
    vision = vision_config(config)
    if vision is None:
        return 0
    width = number(vision, "hidden_size") or number(vision, "embed_dim") or 1024
    positions = 0
    if str(_value(config, "model_type")) == "kimi_vl":
        positions = _KIMI_POSITIONS * width // (number(vision, "num_attention_heads") or 16)
    return tokens * _merge(vision) ** 2 * width * _PATCH_NUMBERS * element_bytes(config) + positions


def feature_bytes(config: Any, tokens: int) -> int:
    """Return the bytes of what a model uses of its encoder's output for an image of ``tokens`` tokens."""
    vision, text = _value(config, "vision_config"), text_config(config)
    widths = (
        *(number(vision, name) for name in ("out_hidden_size", "hidden_size", "width")),
        number(text, "hidden_size"),
    )
    width = next((width for width in widths if width), 1024)
    return int(tokens * _patches_per_token(config) * width * _used_layers(config) * element_bytes(config))


def _patches_per_token(config: Any) -> float:
    """Return how many of the vectors that an encoder returns a model joins to a token, behind the encoder."""
    vision, family = _value(config, "vision_config"), str(_value(config, "model_type"))
    if family in _PATCHES_PER_TOKEN or number(vision, "spatial_merge_size"):  # such an encoder joins them itself
        return _PATCHES_PER_TOKEN.get(family, 1)
    if per_image := number(config, "mm_tokens_per_image") or number(text_config(config), "mm_tokens_per_image"):
        return ((number(vision, "image_size") or 896) // (number(vision, "patch_size") or 14)) ** 2 / per_image
    sides = (*(number(config, name) for name in _SIDES), number(_value(config, "projector_config"), "downsample_ratio"))
    if side := next((side for side in sides if side), None):
        return side**2
    rate = _value(config, "downsample_ratio") or _value(config, "downsample_rate") or 1  # 0.5, or "4/8"
    with suppress(ValueError, ArithmeticError):
        return float(Fraction(str(rate))) ** -2
    return 1


def _used_layers(config: Any) -> int:
    """Return of how many of an encoder's layers a model uses the output."""
    deepstack = _value(_value(config, "vision_config"), "deepstack_visual_indexes") or ()
    selected, mapped = _value(config, "vision_feature_layer"), _value(config, "deepstack_layer_map") or ()
    with suppress(TypeError, ValueError):
        if mapped:  # Granite Vision 4
            spatial = {_value(config, "spatial_vision_layer")} if _value(config, "use_spatial_sampling") else set()
            return len({layer for layer, _ in mapped} | spatial)
        return len(set(selected)) if isinstance(selected, list | tuple) else 1 + len(deepstack)
    return 1


def pixels_per_token(config: Any) -> int:
    """Return how many pixels of an image become one token."""
    vision = _value(config, "vision_config")
    return ((number(vision, "patch_size") or _PATCH) * _merge(vision)) ** 2


def _merge(vision: Any) -> int:
    return number(vision, "spatial_merge_size") or _MERGE


def _layers(text: Any) -> list[str]:
    """Return the kind of attention of each layer that holds a cache of its own; empty where the configuration does not tell."""
    count, kinds = number(text, "num_hidden_layers") or 0, _value(text, "layer_types")
    attending, interval = _value(text, "full_attn_idxs"), number(text, "full_attention_interval")
    pattern = number(text, "sliding_window_pattern") or number(text, "_sliding_window_pattern")
    if isinstance(kinds, list | tuple):
        own_kinds = [str(kind) for kind in kinds]
    elif isinstance(attending, list | tuple):  # LFM2; the other layers are convolutions
        own_kinds = [_FULL[0] for layer in attending if layer in range(count)]
    elif interval:  # Qwen3.5; the other layers have linear attention
        own_kinds = [_FULL[0]] * (count // interval)
    elif pattern and number(text, "sliding_window"):
        own_kinds = [_FULL[0] if (layer + 1) % pattern == 0 else _SLIDING[0] for layer in range(count)]
    else:  # Llama 3.2 Vision's layers that attend to images hold none
        own_kinds = [_FULL[0]] * (count - len(_value(text, "cross_attention_layers") or ()))
    own_kinds = own_kinds[: len(own_kinds) - (number(text, "num_kv_shared_layers") or 0)]
    return [kind for kind in own_kinds if kind in (*_FULL, *_SLIDING)]


def text_config(config: Any, *, with_defaults: bool = True) -> Any:
    """Return the language model's part of a configuration; Phi-3 Vision's is not in the part of that name.

    In that of a file, mlx-vlm's defaults stand for what the file leaves out, unless ``with_defaults`` is False.
    """
    for key in ("text_config", "llm_config", "language_config"):
        if (part := _value(config, key)) is not None:
            complete = {**text_defaults(_value(config, "model_type")), **part} if isinstance(part, Mapping) else part
            if number(complete, "num_hidden_layers"):
                return complete if with_defaults else part
    return config


def element_bytes(config: Any) -> int:
    """Return the bytes of one number in the cache, whose type is that of the activations; two unless it is a 32-bit type."""
    for part in (text_config(config), config):
        for key in ("dtype", "torch_dtype"):
            if (dtype := _value(part, key)) is not None:
                return _BYTES.get(str(dtype), 2)
    return 2


def vision_config(config: Any) -> Any:
    """Return the image encoder's part of a configuration, which Phi-3 Vision calls otherwise; None for a text model."""
    part = _value(config, "vision_config")
    return _value(config, "img_processor") if part is None else part


def number(part: Any, key: str) -> int | None:
    """Return a positive whole number of a configuration; None where it has none of that name."""
    value = _value(part, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _value(part: Any, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
