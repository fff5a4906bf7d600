"""Patch of mlx-vlm: FastVLM's prompts with several images, whose texts are moved.

mlx-vlm splits the embeddings of the text where the images stand in the prompt, but these embeddings no longer hold the
images' tokens: every image after the first comes a token too late for each image before it, so that the beginning of the text
behind it is read in front of it. The patch puts texts and images together in their order.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "split_sizes = image_token_indices[1:]"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.fastvlm.fastvlm").Model
    return replace_method(model, "prepare_inputs_for_multimodal", _FAULT, _patched)


def _patched(combine: Any) -> Any:
    import mlx.core as mx

    @wraps(combine)
    def prepare_inputs_for_multimodal(self: Any, image_features: Any, input_ids: Any, mask: Any) -> Any:
        tokens = input_ids[0].tolist()
        images = [position for position, token in enumerate(tokens) if token == self.config.image_token_index]
        if len(input_ids) != 1 or len(images) < 2:
            return combine(self, image_features, input_ids, mask)
        embed = self.language_model.model.embed_tokens
        pieces, start = [], 0
        for number, position in enumerate(images):
            pieces += [embed(input_ids[0, start:position]), image_features[number]]
            start = position + 1
        embeddings = mx.concatenate([*pieces, embed(input_ids[0, start:])])
        return embeddings[None, : self.config.tokenizer_model_max_length]

    return prepare_inputs_for_multimodal
