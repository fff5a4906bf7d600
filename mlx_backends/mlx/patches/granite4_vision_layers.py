"""Patch of mlx-vlm: Granite Vision 4's prompts in batches and behind a shared prefix.

The model adds features of the image to the inputs of several layers. mlx-vlm cannot join these features over the rows of a
batch, and cuts them by the length of the cache even where they are those of one piece of a prompt. The patch hands them over as
Gemma 3n's inputs for each layer, with an entry for every token, which mlx-vlm cuts and joins as it should.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

_FAULT = "prefill_offset : prefill_offset + seq_len"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    text: Any = import_module("mlx_vlm.models.granite4_vision.language").Granite
    model: Any = import_module("mlx_vlm.models.granite4_vision.granite4_vision").Model
    original_call = inspect.unwrap(text.__call__)
    if _FAULT not in inspect.getsource(original_call):
        return False
    if text.__call__ is original_call:
        text.__call__, model.get_input_embeddings = (
            _patched(original_call),
            _patched_embeddings(model.get_input_embeddings),
        )
    return True


def _patched(read: Any) -> Any:
    from mlx_vlm.models.base import create_attention_mask

    @wraps(read)
    def call(
        self: Any, inputs: Any, inputs_embeds: Any = None, mask: Any = None, cache: Any = None, **more: Any
    ) -> Any:
        features = more.pop("per_layer_inputs", None)
        if features is None or inputs_embeds is None:
            return read(self, inputs, inputs_embeds, mask, cache, **more)
        hidden_states, length = inputs_embeds * self.embedding_multiplier, inputs_embeds.shape[1]
        cache = cache or [None] * len(self.layers)
        if features.shape[1] != length:  # they are a whole prompt's, of which this is a piece
            start = cache[0].offset
            features = features[:, start : start + length]
        mask = create_attention_mask(hidden_states, cache[0]) if mask is None else mask
        for number, (layer, entry) in enumerate(zip(self.layers, cache, strict=True)):
            for index in (index for index, target in enumerate(self._deepstack_target_layers) if target == number):
                hidden_states = hidden_states + features[:, :, index]
            hidden_states = layer(hidden_states, mask, entry)
        return self.norm(hidden_states)

    return call


def _patched_embeddings(embed: Any) -> Any:
    import mlx.core as mx

    @wraps(embed)
    def get_input_embeddings(self: Any, input_ids: Any = None, pixel_values: Any = None, **options: Any) -> Any:
        output = embed(self, input_ids, pixel_values, **options)
        spatial = self.config.spatial_target_layers if self.config.use_spatial_sampling else None
        targets = [layer for _, layer in self.config.deepstack_layer_map or ()] + list(spatial or ())
        self.language_model.model._deepstack_target_layers = targets
        features, (_, length, width) = output.deepstack_visual_embeds, output.inputs_embeds.shape
        if features is None:
            features = mx.zeros((len(targets), length, width), output.inputs_embeds.dtype)
        output.per_layer_inputs = features.transpose(1, 0, 2)[None]
        output.deepstack_visual_embeds = output.visual_pos_masks = None
        return output

    return get_input_embeddings
