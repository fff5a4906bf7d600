"""Patch of mlx-vlm: the order of an image's tokens in Phi-3 Vision.

The model reads the tiles of an image as one picture, row by row across all tiles that stand beside each other. mlx-vlm leaves
out the step that puts tiles beside each other: the first tile's tokens fill the picture's first rows, and so on. The patch puts
the tokens in order, after they are computed, since each is computed by itself.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "(1, h * 12, w * 12, 4 * C),"
_STEP = "h, w, 12, 12"
_SIDE = 12
"""Tokens in a row of a tile."""

_PIXELS = 336
"""Width of a tile."""


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    encoder: Any = import_module("mlx_vlm.models.phi3_v.vision").VisionModel
    return replace_method(encoder, "__call__", _FAULT, _patched, unless=_STEP)


def _patched(encode: Any) -> Any:
    @wraps(encode)
    def encode_in_order(
        self: Any, pixels: Any, embeddings: Any = None, sizes: Any = None, positions: Any = None, *options: Any
    ) -> Any:
        output = encode(self, pixels, embeddings, sizes, positions, *options)
        if positions is None:
            return output
        first = 0
        for rows, columns in (sizes // _PIXELS).tolist():
            row, start = positions[first]
            count = rows * _SIDE * (columns * _SIDE + 1)
            output[row, start : start + count] = _in_order(output[row, start : start + count], rows, columns)
            first += (rows * columns + 1) * _SIDE * _SIDE + 1 + (rows + 1) * _SIDE
        return output

    return encode_in_order


def _in_order(tokens: Any, rows: int, columns: int) -> Any:
    """Return the tokens of ``rows`` times ``columns`` tiles, given one tile after the other, row by row of the picture.

    Each row of tokens ends with a separator, which stays.
    """
    import mlx.core as mx

    width = tokens.shape[-1]
    lines = tokens.reshape(rows * _SIDE, columns * _SIDE + 1, width)
    tiles = lines[:, :-1].reshape(rows, columns, _SIDE, _SIDE, width)
    picture = tiles.transpose(0, 2, 1, 3, 4).reshape(rows * _SIDE, columns * _SIDE, width)
    return mx.concatenate([picture, lines[:, -1:]], axis=1).reshape(-1, width)
