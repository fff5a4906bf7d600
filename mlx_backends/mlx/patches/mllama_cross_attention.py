"""Patch of mlx-vlm: Llama 3.2 Vision's cross-attention, in prompts without an image and behind the prompt.

Without an image, the model was trained to skip the layers that attend to images. mlx-vlm runs them, with halves of the queries
as keys and values, so that every text is answered by another model than the one that was trained. Behind a prompt with an image,
it forgets which of the image's tiles are padding, and each token of an answer attends to them too. The patch skips the
layers, and hands only the tiles that a prompt's last token sees to the tokens behind it.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

_FAULT = "mx.split(query, 2, axis=1)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    language: Any = import_module("mlx_vlm.models.mllama.language")
    layer, model = language.MllamaCrossAttentionDecoderLayer, language.LanguageModel
    if _FAULT not in inspect.getsource(language.MllamaTextCrossAttention.__call__):
        return False
    if layer.__call__ is inspect.unwrap(layer.__call__):
        layer.__call__, model.__call__ = _skipped(layer.__call__), _trimmed(model.__call__)
    return True


def _skipped(read: Any) -> Any:
    @wraps(read)
    def call(self: Any, hidden_states: Any, cross_attention_states: Any = None, **options: Any) -> Any:
        if cross_attention_states is None:
            return hidden_states
        return read(self, hidden_states, cross_attention_states=cross_attention_states, **options)

    return call


def _trimmed(read: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    @wraps(read)
    def call(self: Any, *arguments: Any, cross_attention_mask: Any = None, **options: Any) -> Any:
        output = read(self, *arguments, cross_attention_mask=cross_attention_mask, **options)
        if cross_attention_mask is not None:
            seen = np.flatnonzero(np.array(cross_attention_mask[0, 0, -1]) >= 0)
            output.cross_attention_states = output.cross_attention_states[:, mx.array(seen)]
        return output

    return call
