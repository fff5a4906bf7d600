"""Patch of mlx-vlm: Granite Vision 4's prompts with several images, of which it reads the first alone.

mlx-vlm encodes the first image's tiles, and gives the positions of all further images the last of its features. The patch has it
encode the tiles of all images at once, without those that only pad images to one number of tiles, and pack them image by image.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from itertools import accumulate
from typing import Any

_FAULT = "pixel_values[0].transpose(0, 2, 3, 1)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.granite4_vision.granite4_vision").Model
    embed, pack = (inspect.unwrap(f) for f in (model.get_input_embeddings, model._pack_and_unpad_image_features))
    if _FAULT not in inspect.getsource(embed):
        return False
    if model.get_input_embeddings is embed:
        model.get_input_embeddings, model._pack_and_unpad_image_features = _patched(embed), _patched_packing(pack)
    return True


def _patched(embed: Any) -> Any:
    import mlx.core as mx

    @wraps(embed)
    def get_input_embeddings(self: Any, input_ids: Any = None, pixel_values: Any = None, **options: Any) -> Any:
        if pixel_values is not None and pixel_values.ndim > 4 and options.get("image_sizes") is not None:
            counts = _tile_counts(self, options["image_sizes"])
            tiles = [image[:count] for image, count in zip(pixel_values, counts, strict=True)]
            pixel_values = mx.concatenate(tiles)[None]
        return embed(self, input_ids, pixel_values, **options)

    return get_input_embeddings


def _patched_packing(pack: Any) -> Any:
    import mlx.core as mx

    @wraps(pack)
    def pack_images(self: Any, features: Any, image_sizes: Any, strategy: Any) -> Any:
        *ends, _ = accumulate(_tile_counts(self, image_sizes))
        return pack(self, mx.split(features[0], ends), image_sizes, strategy)

    return pack_images


def _tile_counts(model: Any, image_sizes: Any) -> list[int]:
    """Return the number of tiles of each image, with the small copy of the whole."""
    shape: Any = import_module("mlx_vlm.models.granite4_vision.granite4_vision").get_anyres_image_grid_shape
    config = model.config
    grids = (shape(size, config.image_grid_pinpoints, config.vision_config.image_size) for size in image_sizes)
    return [1 + rows * columns for rows, columns in grids]
