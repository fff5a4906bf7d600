"""Patch of mlx-vlm: Gemma 4's images behind what is cached, whose tokens must see the whole image.

Its larger models and Gemma 4 Unified were trained with attention in both directions among the tokens of an image
(``use_bidirectional_attention``). mlx-vlm lets them only where a whole prompt is read at once, into an empty cache: behind a
prefix that was read before, each token sees only those before it. The patch lifts the causal mask for the newest positions,
whatever is cached, and has prompts read in pieces that do not split an image.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

_FAULT = "mm_token_type_ids.shape[1] != base_mask.shape[-1]"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    language: Any = import_module("mlx_vlm.models.gemma4.language")
    text, name = language.Gemma4TextModel, "_apply_blockwise_bidirectional_overlay"
    if getattr(text, name) is not _overlay and _FAULT not in inspect.getsource(getattr(text, name)):
        return False
    setattr(text, name, _overlay)
    language.LanguageModel.whole_images = property(_has_whole_images)
    return True


def _has_whole_images(model: Any) -> bool:
    """Return whether the model must be given an image's tokens in one piece, and their types."""
    return getattr(model.config, "use_bidirectional_attention", None) == "vision"


def _overlay(self: Any, base_mask: Any, mm_token_type_ids: Any) -> Any:
    """Return the mask with the tokens of each image seen by each other; those read now are the last that it holds."""
    import mlx.core as mx

    if mm_token_type_ids.shape[1] != base_mask.shape[-2]:  # of a prompt that is read without its images' types
        return base_mask
    image = self._block_sequence_ids_for_mask(mm_token_type_ids)
    within = (image[:, :, None] == image[:, None, :]) & (image != -1)[:, :, None]
    return base_mask | mx.pad(within, [(0, 0), (0, 0), (base_mask.shape[-1] - image.shape[1], 0)])[:, None]
