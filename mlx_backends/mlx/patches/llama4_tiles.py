"""Patch of mlx-vlm: the tiles of Llama 4's images.

The model's own processor scales an image, in its proportions, to the canvas of whole tiles that it fits best, fills the rest with
black, and adds the whole image as a last tile. mlx-vlm knows few canvases, stretches the image over them, and leaves out the last
tile, for which the prompt has tokens: these keep values that differ from call to call. The patch prepares tiles as transformers
does.

Source: transformers 5.23, ``models/llama4/image_processing_llama4.py``, which needs torchvision. Found in mlx-vlm 0.7.10; not yet
reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "tiles = self._split_into_tiles(img, ar)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processing: Any = import_module("mlx_vlm.models.llama4.processing_llama4")
    return replace_method(processing.Llama4ImageProcessor, "preprocess", _FAULT, _patched)


def canvas_of(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """Return the rows and columns of tiles, ``side`` pixels wide and at most ``most``, that an image in pixels fits best.

    The least enlargement comes first, then the least reduction, then the fewest tiles.
    """
    grids = [(rows, tiles // rows) for tiles in range(most, 0, -1) for rows in range(1, tiles + 1) if tiles % rows == 0]
    scales = {grid: min(grid[1] * side / width, grid[0] * side / height) for grid in grids}
    enlarging = [scale for scale in scales.values() if scale >= 1]
    scale = min(enlarging) if enlarging else max(scales.values())
    return min((grid for grid in grids if scales[grid] == scale), key=lambda grid: grid[0] * grid[1])


def tiles_of(image: Any, side: int, most: int) -> tuple[list[Any], tuple[int, int]]:
    """Return an RGB image's tiles of ``side`` pixels, with the whole image last where there are several, and its grid."""
    from PIL import Image

    rows, columns = canvas_of(image.width, image.height, side, most)
    height = min(max(image.height, side), rows * side)  # never enlarged beyond one tile
    width = min(max(image.width, side), columns * side)
    scale = min(width / image.width, height / image.height)
    size = (max(min(int(image.width * scale), width), 1), max(min(int(image.height * scale), height), 1))
    canvas = Image.new("RGB", (columns * side, rows * side))
    canvas.paste(image.resize(size, Image.Resampling.BILINEAR))
    places = [(column * side, row * side) for row in range(rows) for column in range(columns)]
    tiles = [canvas.crop((left, top, left + side, top + side)) for left, top in places]
    if len(tiles) > 1:
        tiles.append(image.resize((side, side), Image.Resampling.BILINEAR))
    return tiles, (rows, columns)


def _patched(preprocess: Any) -> Any:
    import numpy as np
    from PIL import Image

    @wraps(preprocess)
    def prepare(self: Any, images: Any, **_: Any) -> dict[str, Any]:
        pixels, grids = [], []
        for image in images if isinstance(images, list) else [images]:
            picture = image if isinstance(image, Image.Image) else Image.fromarray(np.uint8(image))
            tiles, grid = tiles_of(picture.convert("RGB"), self.size, self.max_patches)
            pixels += [self._preprocess_single(tile) for tile in tiles]
            grids.append(grid)
        return {"pixel_values": np.stack(pixels), "aspect_ratios": grids}

    return prepare
