"""Patch of mlx-vlm: LLaVA-OneVision's prompts with several images, all of which it cuts into tiles.

The model was trained to see an image in tiles only where it is the prompt's only one; of several, each is padded to a square and
seen once. mlx-vlm tiles all of them, which takes up to ten times as many tokens. The patch has the image processor, which knows
the rule, told which images belong together, and the model take images of one tile each.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

_FAULT = "self.image_processor(images, return_tensors="


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processor: Any = import_module("mlx_vlm.models.llava_onevision.processing_llava_onevision").LlavaOnevisionProcessor
    model: Any = import_module("mlx_vlm.models.llava_onevision.llava_onevision").Model
    call, encode = inspect.unwrap(processor.__call__), inspect.unwrap(model.get_image_features)
    if _FAULT not in inspect.getsource(call):
        return False
    if processor.__call__ is call:
        processor.__call__, model.get_image_features = _patched(call), _patched_model(encode)
    return True


def _patched(call: Any) -> Any:
    @wraps(call)
    def process(self: Any, images: Any = None, text: Any = None, **options: Any) -> Any:
        if not isinstance(images, list) or len(images) < 2 or not (isinstance(text, str) or len(text or ()) == 1):
            return call(self, images, text, **options)
        self._get_number_of_features = lambda *_: self.num_image_tokens + 1  # and the newline
        try:
            inputs = call(self, [images], text, **options)
        finally:
            del self._get_number_of_features
        return inputs

    return process


def _patched_model(encode: Any) -> Any:
    import mlx.core as mx

    @wraps(encode)
    def get_image_features(self: Any, pixel_values: Any, image_sizes: Any) -> Any:
        if pixel_values.ndim < 5 or pixel_values.shape[1] > 1:
            return encode(self, pixel_values, image_sizes)
        *_, hidden_states = self.vision_tower(pixel_values[:, 0].transpose(0, 2, 3, 1), output_hidden_states=True)
        features = self.multi_modal_projector(self._select_features(hidden_states))
        return mx.concatenate(self.pack_image_features([image[None] for image in features], image_sizes))

    return get_image_features
