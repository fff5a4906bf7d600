"""Patches of mlx-vlm; each is applied before a model of an affected type is loaded, where it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from mlx_backends.mlx.patches import gelu

PATCHES: Mapping[str, tuple[str, ...]] = {
    "deepseek_vl_v2": ("deepseek_vl_v2_tiles", "deepseek_vl_v2_positions"),
    "fastvlm": ("fastvlm_several_images",),
    "gemma3": ("gemma3_image_attention",),
    "gemma3n": ("gemma3n_embeddings", "gemma3n_shared_positions"),
    "gemma4": ("gemma4_image_attention",),
    "gemma4_unified": ("gemma4_image_attention",),
    "granite4_vision": ("granite4_vision_several_images", "granite4_vision_layers", "granite4_vision_gelu"),
    "hunyuan_vl": ("hunyuan_vl_resizing", "hunyuan_vl_several_images", "hunyuan_vl_positions"),
    "internvl": ("internvl_gelu",),
    "internvl_chat": ("internvl_gelu",),
    "llama4": ("llama4_tiles", "llama4_gelu", "llama4_batches"),
    "llava": ("llava_image_arguments",),
    "llava_next": ("llava_next_image_layout",),
    "llava_onevision": ("llava_onevision_several_images",),
    "minicpmv4_6": ("minicpmv4_6_gelu",),
    "mllama": ("mllama_cross_attention",),
    "minicpmv4_7": ("minicpmv4_6_gelu",),
    "paddleocr_vl": ("paddleocr_vl_several_images",),
    "phi3_v": ("phi3_v_dropped_tokens", "phi3_v_tile_order", "phi3_v_proportions"),
    "zaya1_vl": ("zaya1_vl_inputs",),
}
"""The patches for a type of model: modules, each with a function ``apply_patch``, and those of :mod:`.gelu`."""

_ONE_BOS = frozenset({"aya_vision", "gemma3", "llama4", "mistral3", "mllama", "pixtral"})
"""The types whose processors add a second BOS token in mlx-vlm 0.7.10, which :mod:`mlx_backends.mlx.mlx_preprocess` prevents."""


def patch_names(model_type: str) -> str:
    """Return the names of the repairs that change answers of ``model_type``, with commas between.

    They are part of an engine's identity, so that a run is not resumed with other repairs than it was begun with.
    """
    return ",".join([*PATCHES.get(model_type, ()), *(["one_bos"] if model_type in _ONE_BOS else [])])


def apply_patches(model_type: str) -> None:
    """Patch the installed mlx-vlm, in this process, for models of ``model_type``."""
    for name in PATCHES.get(model_type, ()):
        apply_patch(name)


def apply_patch(name: str) -> bool:
    """Apply a patch by its name, and return whether the installed mlx-vlm needed it."""
    if name in gelu.PATCHES:
        return gelu.apply_patch(name)
    needed: bool = import_module(f"{__name__}.{name}").apply_patch()
    return needed
