"""Names of layers and weights in transformers' models, from those of mlx-vlm, by the model's type.

Compared with transformers 5.23 on a tiny model of each type.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.errors import ModelError

Prefixes = tuple[tuple[str, str], ...]
"""Beginnings of names and what replaces them; the first that fits counts."""

_LANGUAGE: Prefixes = (("language_model.model.", "model.language_model."), ("language_model.lm_head", "lm_head"))
_QWEN: Prefixes = (*_LANGUAGE, ("vision_tower.", "model.visual."))
_TOWER: Prefixes = (*_LANGUAGE, ("vision_tower.vision_model.", "model.vision_tower."), ("", "model."))
_MINICPM: Prefixes = (*_LANGUAGE, ("vit_merger.", "model.vision_tower.vit_merger."), ("", "model."))
_IDEFICS: Prefixes = (("language_model.lm_head", "lm_head"), ("language_model.", "model.text_model."), ("", "model."))

_LAYERS: Mapping[str, Prefixes] = {
    **dict.fromkeys(("glm4v", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5"), _QWEN),
    **dict.fromkeys(
        ("gemma3", "granite4_vision", "internvl", "lfm2_vl", "llava", "llava_onevision", "mistral3"), _TOWER
    ),
    **dict.fromkeys(("idefics3", "smolvlm"), _IDEFICS),
    **dict.fromkeys(("minicpmv4_6", "minicpmv4_7"), _MINICPM),
}

_QWEN2: Prefixes = (
    ("language_model.model.", "model."),
    ("language_model.lm_head", "lm_head"),
    ("vision_tower.", "visual."),
)
_STORED: Mapping[str, Prefixes] = {
    **dict.fromkeys(("gemma3", "internvl", "llava", "llava_onevision"), ()),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), _QWEN2),
    "granite4_vision": (*_LANGUAGE, ("", "model.")),
    "lfm2_vl": (*_LANGUAGE, ("vision_tower.", "model.vision_tower.vision_model."), ("", "model.")),
    "mistral3": (("vision_tower.vision_model.", "vision_tower."),),
}
"""Prefixes in the weights of the Hugging Face Hub, where these differ from the names of the layers."""

_PARTS: Mapping[str, Prefixes] = {
    "hunyuan_vl": (
        ("vision_tower.perceive.proj.0.", "vision_tower.patch_merger.proj_conv."),
        ("vision_tower.perceive.proj.2.", "vision_tower.patch_merger.proj_out."),
        ("vision_tower.perceive.", "vision_tower.patch_merger."),
    ),
    "paddleocr_vl": (("visual.projector.", "projector."), ("visual.layers.", "visual.encoder.layers.")),
}
"""Parts of a model that the two libraries call or place otherwise, behind which names differ by wrappers alone."""

_VISION_LAYERS: Mapping[str, Mapping[str, str]] = {
    "hunyuan_vl": {
        "input_layernorm": "layer_norm1",
        "post_attention_layernorm": "layer_norm2",
        "dense_h_to_4h": "fc1",
        "dense_4h_to_h": "fc2",
    }
}
"""Layers of an image encoder that the two libraries call otherwise."""

_OFFSET_TYPES = ("qwen3_5", "minicpmv4_6", "minicpmv4_7")
"""Beginnings of model types whose norms are stored by MLX as what they multiply by, and by PyTorch as that less one."""

_OFFSET_NORMS = ("input_layernorm.weight", "post_attention_layernorm.weight", "q_norm.weight", "k_norm.weight")
_CONVOLUTIONS = ("conv1d.weight", "conv.conv.weight")
"""Endings of one-dimensional convolutions; of three dimensions there are also the weights of experts."""


def layer_name(kind: object, layer: str) -> str:
    """Return the name in transformers' model of type ``kind`` of mlx-vlm's ``layer``. Raises ModelError for another type."""
    return _renamed(_prefixes(kind), layer)


def stored_name(kind: object, weight: str) -> str:
    """Return the name, as in the model's original files, of mlx-vlm's ``weight``. Raises ModelError for another type."""
    prefixes = _prefixes(kind)
    return _renamed(_STORED.get(str(kind), prefixes), weight).replace(".attention.in_proj.", ".attention.in_proj_")


def renamed_parts(kind: object, weight: str) -> str:
    """Return the name of mlx-vlm's ``weight`` with transformers' names of parts and layers, besides wrappers."""
    name = _renamed(_PARTS.get(str(kind), ()), weight)
    layers = _VISION_LAYERS.get(str(kind), {}) if name.startswith("vision_tower.") else {}
    return ".".join(layers.get(part, part) for part in name.split("."))


def has_channels_last(weight: str, dimensions: int) -> bool:
    """Return whether mlx-vlm's ``weight`` is of a convolution, whose channels MLX keeps last and PyTorch second."""
    return dimensions > 3 or (dimensions == 3 and weight.endswith(_CONVOLUTIONS))


def is_offset_norm(kind: object, plain: tuple[bool, str]) -> bool:
    """Return whether MLX stores a norm, named as by ``by_plain_name``, as what it multiplies by, and PyTorch as that less one."""
    is_vision, name = plain
    is_norm = name == "norm.weight" or name.endswith(_OFFSET_NORMS)
    return is_norm and not is_vision and str(kind).startswith(_OFFSET_TYPES)


def _prefixes(kind: object) -> Prefixes:
    if not isinstance(kind, str) or kind not in _LAYERS:
        raise ModelError(
            f"the names that transformers gives to the layers of a model of type {str(kind)!r:.60} are not known; known are "
            f"those of {', '.join(sorted(_LAYERS))}."
        )
    return _LAYERS[kind]


def _renamed(prefixes: Prefixes, name: str) -> str:
    for beginning, replacement in prefixes:
        if name.startswith(beginning):
            return replacement + name.removeprefix(beginning)
    return name
