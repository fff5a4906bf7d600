"""Patch of mlx-vlm: DeepSeek-VL2's images, of which some are never shown to the model.

mlx-vlm counts the tiles of a prompt in a loop over ``pixel_values.shape[1]`` (tiles), and reads the size of an image in each
turn from ``images_spatial_crop``, which has a row for each image. It reads beyond the end, where memory holds anything: the
count is then wrong, and where it is zero the prompt is answered without its images, without any error. The loop ends at a row of
zeros, so the patch adds rows of zeros up to the number of tiles.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "max_n_images = pixel_values.shape[1]"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.deepseek_vl_v2.deepseek_vl_v2").Model
    return replace_method(model, "get_input_embeddings", _FAULT, _patched)


def _patched(embed: Any) -> Any:
    import mlx.core as mx

    @wraps(embed)
    def get_input_embeddings(
        self: Any,
        input_ids: Any = None,
        pixel_values: Any = None,
        images_spatial_crop: Any = None,
        images_seq_mask: Any = None,
        **options: Any,
    ) -> Any:
        if pixel_values is not None:
            missing = max(0, pixel_values.shape[1] - images_spatial_crop.shape[1])
            images_spatial_crop = mx.pad(images_spatial_crop, [(0, 0), (0, missing), (0, 0)])
        return embed(self, input_ids, pixel_values, images_spatial_crop, images_seq_mask, **options)

    return get_input_embeddings
