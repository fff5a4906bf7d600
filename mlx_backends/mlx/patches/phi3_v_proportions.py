"""Patch of mlx-vlm: the proportions of Phi-3 Vision's images.

The model's own processor scales an image to the width of its tiles and fills the rest of their height with white, half above and
half below (of a tall image, width and height change roles). mlx-vlm stretches the image over all its tiles instead.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import partial, wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "img.resize((target_width, target_height)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processing: Any = import_module("mlx_vlm.models.phi3_v.processing_phi3_v")
    patched = partial(_patched, tiled_size=processing._calc_hd_transform_size)
    return replace_method(processing, "_hd_transform", _FAULT, patched)


def _patched(stretch: Any, tiled_size: Any) -> Any:
    from PIL import Image

    @wraps(stretch)
    def fit(image: Any, hd_num: int = 16) -> Any:
        width, height = image.size
        tiled = tiled_size(width, height, hd_num)
        long, ratio = max(tiled), max(width, height) / min(width, height)
        inner = (long, int(long / ratio)) if width >= height else (int(long / ratio), long)
        picture = Image.new("RGB", tiled, (255, 255, 255))
        place = ((tiled[0] - inner[0]) // 2, (tiled[1] - inner[1]) // 2)
        picture.paste(image.resize(inner, Image.Resampling.BILINEAR), place)
        return picture

    return fit
