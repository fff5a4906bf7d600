"""Translation of ``config.json`` as transformers 5 writes it into the form that mlx-vlm and mlx-lm read.

transformers 5 moves RoPE's base and scaling into ``rope_parameters``, and what Qwen2-VL kept at the top level into
``text_config``. The libraries take their own defaults for keys that they do not find, without a word. The translation adds
the keys that they read and removes none: a library that knows the new form reads that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.models.broken_file_advice import fetch_again

_FLAT = ("paddleocr_vl", "qwen2_vl", "qwen2_5_vl")
"""Types whose language model mlx-vlm configures from the top level."""

_OWN_VISION_TYPES = (*_FLAT, "hunyuan_vl", "qwen3_vl", "qwen3_vl_moe")
"""Types whose vision encoder mlx-vlm knows by the model's own type alone, and transformers 5 by ``TYPE_vision``."""

_LANGUAGE_SETTINGS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "use_bias",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "hidden_act",
    "vocab_size",
    "eos_token_id",
    "tie_word_embeddings",
)
"""Keys that transformers 5 writes into ``text_config`` and transformers 4 wrote at the top level, in types of ``_FLAT``."""

_MAY_DIFFER = ("vocab_size", "eos_token_id", "tie_word_embeddings")
"""Keys that both levels may hold with different values; the top level's count."""

UNSCALED = (None, "default", "axial", "mrope", "proportional")
"""Kinds of RoPE in which positions are not scaled."""

_NOT_SCALING = ("rope_theta", "partial_rotary_factor", "rope_type", "type")


def library_form(config: Mapping[str, Any], file: Path, *, has_head: bool | None = None) -> dict[str, Any]:
    """Return ``config``, of ``file``, in the form that mlx-vlm and mlx-lm read; equal to it where they read it as it is.

    ``has_head`` says whether the weights hold an output layer: tying that only the top level states is passed on where they
    agree with it, because transformers also writes its default there. Raises ModelError where two of its keys contradict
    each other.
    """
    translated = _renamed(_with_rope(config, file, ""))
    for name in ("text_config", "vision_config", "llm_config", "language_config", "thinker_config"):
        if isinstance(config.get(name), Mapping):
            translated[name] = _renamed(_with_rope(config[name], file, f"{name}."))
    kind, text, vision = config.get("model_type"), translated.get("text_config"), translated.get("vision_config")
    if isinstance(vision, dict) and kind in _OWN_VISION_TYPES and vision.get("model_type") == f"{kind}_vision":
        vision["model_type"] = kind
    if isinstance(text, dict):
        text |= _global_heads(text)
        if kind == "gemma3" and "rope_theta" in text:
            text.setdefault("rope_global_base_freq", text["rope_theta"])
        if has_head is not None and config.get("tie_word_embeddings") is (not has_head):
            text.setdefault("tie_word_embeddings", not has_head)
        if kind in _FLAT:
            _lift(translated, text, file)
    return translated


def _renamed(section: dict[str, Any]) -> dict[str, Any]:
    """Return ``section`` with older names of its settings too, under which the libraries look for them."""
    names = {"num_experts": "num_local_experts", "num_attention_heads": "attention_heads"}
    if str(section.get("model_type")).startswith("lfm2"):
        names |= dict.fromkeys(("block_dim", "conv_dim", "conv_dim_out"), "hidden_size")
    older = {name: section[newer] for name, newer in names.items() if section.get(name) is None and newer in section}
    return section | older


def scaling_kind(parameters: Mapping[str, Any]) -> Any:
    """Return the kind of RoPE in ``rope_parameters`` or ``rope_scaling``, such as "linear"; None where they do not tell."""
    return parameters.get("rope_type") or parameters.get("type")


def _with_rope(section: Mapping[str, Any], file: Path, where: str) -> dict[str, Any]:
    """Return ``section`` with the keys that transformers 4 wrote for its ``rope_parameters``."""
    result = dict(section)
    for key, value in _rope(section.get("rope_parameters")).items():
        if section.get(key) is None:
            result[key] = value
        elif not _is_same(section[key], value):
            raise _contradiction(file, f"{where}{key}", section[key], f"{where}rope_parameters", value)
    scaling = result.get("rope_scaling")
    if isinstance(scaling, Mapping) and "type" not in scaling and scaling_kind(scaling) not in UNSCALED:
        result["rope_scaling"] = {**scaling, "type": scaling_kind(scaling)}
    return result


def _rope(parameters: Any) -> dict[str, Any]:
    if not isinstance(parameters, Mapping):
        return {}
    full, sliding = parameters.get("full_attention"), parameters.get("sliding_attention")
    if not isinstance(full, Mapping):
        return _flat_rope(parameters)
    keys = _flat_rope(full)
    if "rope_theta" in keys:
        keys["rope_global_base_freq"] = keys["rope_theta"]
    if isinstance(sliding, Mapping) and sliding.get("rope_theta") is not None:
        keys["rope_local_base_freq"] = sliding["rope_theta"]
    return keys


def _flat_rope(parameters: Mapping[str, Any]) -> dict[str, Any]:
    keys = {name: parameters[name] for name in ("rope_theta", "partial_rotary_factor") if name in parameters}
    scaling = {key: value for key, value in parameters.items() if key not in _NOT_SCALING}
    kind = scaling_kind(parameters)
    if "alpha" in scaling and "mrope_section" in scaling:  # Hunyuan-VL's
        scaling.setdefault("xdrope_section", scaling["mrope_section"])
    if kind not in UNSCALED or "mrope_section" in scaling:
        keys["rope_scaling"] = {**scaling, "rope_type": kind, "type": parameters.get("type") or kind}
    return {key: value for key, value in keys.items() if value is not None}


def _global_heads(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return Gemma 4's size and number of heads in layers of full attention, which transformers 5 writes layer by layer."""
    layers, kinds = text.get("per_layer_config"), text.get("layer_types")
    if not isinstance(layers, Mapping) or not isinstance(kinds, list) or "global_head_dim" in text:
        return {}
    own = [layers.get(str(number)) or {} for number, kind in enumerate(kinds) if kind == "full_attention"]
    result = {}
    for name, key in (("global_head_dim", "head_dim"), ("num_global_key_value_heads", "num_key_value_heads")):
        values = {heads.get(key, text.get(key)) for heads in own}
        if len(values) == 1 and None not in values:
            (result[name],) = values
    return result


def _lift(config: dict[str, Any], text: Mapping[str, Any], file: Path) -> None:
    """Add settings of the language model to the top level."""
    for key in _LANGUAGE_SETTINGS:
        value = text.get(key)
        if value is None or (key in _MAY_DIFFER and config.get(key) is not None):
            continue
        if config.get(key) is not None and not _is_same(config[key], value):
            raise _contradiction(file, key, config[key], f"text_config.{key}", value)
        config.setdefault(key, value)


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two values of a key mean the same; those of RoPE's scaling may differ in how they name its kind."""
    if not (isinstance(value, Mapping) and isinstance(other, Mapping)):
        return bool(value == other)
    kinds = {scaling_kind(scaling) for scaling in (value, other)}
    settings = [
        {key: item for key, item in scaling.items() if key not in _NOT_SCALING and item is not None}
        for scaling in (value, other)
    ]
    return settings[0] == settings[1] and (len(kinds) == 1 or kinds <= set(UNSCALED))


def _contradiction(file: Path, key: str, value: Any, other_key: str, other: Any) -> ModelError:
    return ModelError(
        f"{file} contradicts itself: {key} is {str(value)[:80]!r}, and {other_key} says {str(other)[:80]!r}; "
        f"correct the file, or {fetch_again(file)}."
    )
