"""Patch of mlx-vlm: PaddleOCR-VL's prompts with several images.

mlx-vlm joins the images of a prompt into one array, with a grid of one image of several moments. Where they have different sizes
that is an error, and where they have the same one the prompt has too few tokens. The patch processes each image by itself.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "patches = np.array(processed_images)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processing: Any = import_module("mlx_vlm.models.paddleocr_vl.processing_paddleocr_vl")
    return replace_method(processing.ImageProcessor, "preprocess", _FAULT, _patched)


def _patched(preprocess: Any) -> Any:
    import numpy as np

    @wraps(preprocess)
    def process(self: Any, images: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(images, list) or len(images) < 2:
            return preprocess(self, images, *arguments, **options)
        outputs = [preprocess(self, [image], *arguments, **options) for image in images]
        whole = outputs[0]
        for name, axis in (("pixel_values", 1), ("image_grid_thw", 0)):
            whole[name] = np.concatenate([np.asarray(output[name]) for output in outputs], axis=axis)
        return whole

    return process
