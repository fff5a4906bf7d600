"""Patch of mlx-vlm: Hunyuan-VL's prompts with several images.

The model was trained with an image encoder in which a patch attends to those of its own image. mlx-vlm lets it attend to those
of all images of a prompt. The patch encodes each image by itself.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "hidden_states = layer(hidden_states)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.hunyuan_vl.vision").VisionModel
    return replace_method(model, "__call__", _FAULT, _patched)


def _patched(encode: Any) -> Any:
    import mlx.core as mx

    @wraps(encode)
    def encode_apart(self: Any, pixel_values: Any, grid_thw: Any) -> Any:
        ends: Any = mx.cumsum(grid_thw[:, 1] * grid_thw[:, 2]).tolist()
        starts = [0, *ends[:-1]]
        features = [
            encode(self, pixel_values[start:end], grid_thw[number : number + 1])
            for number, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        return mx.concatenate(features, axis=1)

    return encode_apart
