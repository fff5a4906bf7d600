"""Patch of mlx-vlm: Gemma 3's images, whose tokens must see the whole image.

Gemma 3 was trained with attention in both directions among the tokens of an image. mlx-vlm reads them like text, each without
what comes behind it, and so computes other features of the text's context than the model learnt: logits differ by more than
their own spread from those of transformers. The patch lifts the causal mask within each image, and has prompts with images
read in pieces that do not split one.

Found in 0.7.10; proposed upstream in Blaizzy/mlx-vlm pull request 671, which was closed without being merged.
``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

_FAULT = "local_mask = sliding_window_mask"
_HANDLED = ("token_type_ids", "bidirectional", "image")


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.gemma3.gemma3").Model
    text: Any = import_module("mlx_vlm.models.gemma3.language").Gemma3Model
    original_call = inspect.unwrap(text.__call__)
    source = inspect.getsource(original_call)
    if _FAULT not in source or any(word in source for word in _HANDLED):
        return False
    if text.__call__ is original_call:
        text.__call__ = _reading(original_call)
        model.get_input_embeddings = _embedding(model.get_input_embeddings)
        model.chunked_prefill_policy = _has_no_image
    return True


def _has_no_image(self: Any, *, input_ids: Any = None, **_: Any) -> bool:
    """Return whether mlx-vlm may read a prompt in pieces, which could split an image."""
    return input_ids is None or not bool((input_ids == self.config.image_token_index).any())


def _embedding(embed: Any) -> Any:
    @wraps(embed)
    def get_input_embeddings(self: Any, *arguments: Any, **options: Any) -> Any:
        text = self.language_model.model
        text.image_token, self.language_model.whole_images = self.config.image_token_index, True
        features = embed(self, *arguments, **options)
        features.attention_mask_4d = None  # of ones, and read by nothing
        return features

    return get_input_embeddings


def _reading(read: Any) -> Any:
    import mlx.core as mx

    @wraps(read)
    def call(self: Any, inputs: Any, inputs_embeds: Any = None, mask: Any = None, cache: Any = None) -> Any:
        is_image = None if inputs is None else inputs == getattr(self, "image_token", -1)
        if mask is not None or cache is None or is_image is None or inputs.shape[1] == 1 or not bool(is_image.any()):
            return read(self, inputs, inputs_embeds, mask, cache)
        starts = is_image & ~mx.pad(is_image, [(0, 0), (1, 0)])[:, :-1]
        image = mx.where(is_image, mx.cumsum(starts.astype(mx.int32), axis=1), 0)
        within = (image[:, :, None] == image[:, None, :]) & is_image[:, :, None]
        ahead = mx.triu(mx.ones(within.shape[1:], dtype=mx.bool_), k=1)
        layers, self.layers = self.layers, [_Seeing(layer, within & ahead, self) for layer in self.layers]
        try:
            return read(self, inputs, inputs_embeds, mask, cache)
        finally:
            self.layers = layers

    return call


class _Seeing:
    """A layer whose mask also lets tokens see what ``ahead`` says, of the newest positions."""

    def __init__(self, layer: Any, ahead: Any, model: Any) -> None:
        self._layer = layer
        self._ahead = ahead
        self._window = model.window_size if layer.self_attn.is_sliding else None

    def __call__(self, hidden: Any, mask: Any, cache: Any) -> Any:
        import mlx.core as mx

        count = hidden.shape[1]
        if not isinstance(mask, mx.array):
            mask = cache.make_mask(count, window_size=self._window, return_array=True)
        seen = mx.pad(self._ahead, [(0, 0), (0, 0), (mask.shape[-1] - count, 0)])[:, None]
        return self._layer(hidden, mask | seen, cache)
