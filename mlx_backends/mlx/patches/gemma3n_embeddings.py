"""Patch of mlx-vlm: Gemma 3n's text embeddings, which it does not scale in prompts.

The model multiplies the embedding of a text's token by the root of its width. mlx-vlm does so for the tokens of an answer
and not for those of a prompt, which the model then reads at a fraction of their strength beside its images.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "inputs_embeds = self.language_model.model.embed_tokens(input_ids)\n"
_SCALED_ELSEWHERE = "h = inputs_embeds *"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.gemma3n.gemma3n").Model
    language_model: Any = import_module("mlx_vlm.models.gemma3n.language").Gemma3Model
    if _SCALED_ELSEWHERE in inspect.getsource(language_model.__call__):
        return False
    return replace_method(model, "get_input_embeddings", _FAULT, _patched)


def _patched(embed: Any) -> Any:
    import mlx.core as mx

    @wraps(embed)
    def get_input_embeddings(self: Any, input_ids: Any = None, pixel_values: Any = None, **options: Any) -> Any:
        output = embed(self, input_ids, pixel_values, **options)
        is_text = (input_ids < self.embed_vision.vocab_offset)[..., None]
        scale = self.config.text_config.hidden_size**0.5
        output.inputs_embeds = mx.where(is_text, output.inputs_embeds * scale, output.inputs_embeds)
        return output

    return get_input_embeddings
