"""Patch of mlx-vlm: the resizing of Hunyuan-VL's images.

The model's own processor, like transformers', resizes bicubically; mlx-vlm does it bilinearly. The patch resizes before mlx-vlm
does, which then keeps the size.

Source: transformers 5.23, ``models/hunyuan_vl/image_processing_pil_hunyuan_vl.py``. Found in mlx-vlm 0.7.10; not yet reported.
``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "Image.BILINEAR"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processing: Any = import_module("mlx_vlm.models.hunyuan_vl.processing_hunyuan_vl")
    return replace_method(processing.HunYuanVLImageProcessor, "_preprocess_single", _FAULT, _patched)


def _patched(prepare: Any) -> Any:
    from mlx_vlm.models.hunyuan_vl.processing_hunyuan_vl import smart_resize
    from PIL import Image

    @wraps(prepare)
    def prepare_bicubically(self: Any, image: Any) -> Any:
        factor = self.patch_size * self.merge_size
        limits = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        height, width = smart_resize(image.height, image.width, factor=factor, **limits)
        return prepare(self, image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC))

    return prepare_bicubically
