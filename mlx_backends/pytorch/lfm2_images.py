"""LFM2-VL's images as transformers prepares them, by PIL: transformers' own processor needs torchvision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

_DEFAULTS: dict[str, Any] = {
    "downsample_factor": 2,
    "do_image_splitting": True,
    "min_tiles": 2,
    "max_tiles": 10,
    "use_thumbnail": True,
    "min_image_tokens": 64,
    "max_image_tokens": 256,
    "encoder_patch_size": 16,
    "tile_size": 512,
    "max_pixels_tolerance": 2.0,
    "resample": 2,  # bilinear
    "rescale_factor": 1 / 255,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


class Lfm2VLImageProcessor(dict[str, Any]):
    """Stand-in for transformers' Lfm2VlImageProcessor, whose arithmetic it follows; as a dictionary it can be printed.

    An image that is too large becomes a grid of tiles followed by a thumbnail; any other becomes one view. Each view is a row of
    patches, padded to the most that a row may have.
    """

    model_input_names = ("pixel_values", "pixel_attention_mask", "spatial_shapes")

    def __init__(self, **settings: Any) -> None:
        super().__init__({key: settings.get(key, default) for key, default in _DEFAULTS.items()})
        for key, value in self.items():
            setattr(self, key, value)
        self._unit = self["encoder_patch_size"] * self["downsample_factor"]
        tile = (self["tile_size"] // self["encoder_patch_size"]) ** 2 if self["do_image_splitting"] else 0
        self._most_patches = max(self["max_image_tokens"] * self["downsample_factor"] ** 2, tile)

    def fetch_images(self, images: Any) -> Any:
        """Return ``images`` unchanged: none is an address."""
        return images

    def __call__(self, images: Any, **_: Any) -> dict[str, Any]:
        import numpy as np
        import torch

        pixels, masks, shapes, rows, columns, sizes = [], [], [], [], [], []
        for image in _flat(images):
            views, grid, size = self._views(image.convert("RGB"))
            for view in views:
                patches, shape = self._patches(view)
                padded = np.zeros((self._most_patches, patches.shape[1]), np.float32)
                padded[: len(patches)] = patches
                pixels.append(padded)
                masks.append(np.arange(self._most_patches) < len(patches))
                shapes.append(shape)
            rows.append(grid[1])
            columns.append(grid[0])
            sizes.append([size[1], size[0]])
        return {
            "pixel_values": torch.from_numpy(np.stack(pixels)),
            "pixel_attention_mask": torch.from_numpy(np.stack(masks).astype(np.int32)),
            "spatial_shapes": torch.tensor(shapes),
            "image_rows": rows,
            "image_cols": columns,
            "image_sizes": sizes,
        }

    def _views(self, image: Image) -> tuple[list[Image], tuple[int, int], tuple[int, int]]:
        """Return the views of an image, its grid of tiles, and its size as one view, each as (width, height)."""
        small = self._small(image.width, image.height)
        if not self["do_image_splitting"] or self["min_tiles"] == self["max_tiles"] == 1 or not self._large(image):
            return [image.resize(small, self["resample"])], (1, 1), small
        wide, high = self._grid(image)
        tile = self["tile_size"]
        resized = image.resize((wide * tile, high * tile), self["resample"])
        places = [(column * tile, row * tile) for row in range(high) for column in range(wide)]
        views = [resized.crop((left, top, left + tile, top + tile)) for left, top in places]
        if self["use_thumbnail"] and len(views) > 1:
            views.append(image.resize(small, self["resample"]))
        return views, (wide, high), small

    def _rounded(self, length: int, least: int) -> int:
        return int(max(least, round(length / self._unit) * self._unit))

    def _large(self, image: Image) -> bool:
        patch = int(self["encoder_patch_size"])
        area = self._rounded(image.height, patch) * self._rounded(image.width, patch)
        return bool(area > self["max_image_tokens"] * self._unit**2 * self["max_pixels_tolerance"])

    def _small(self, width: int, height: int) -> tuple[int, int]:
        """Return the size of an image in one view, with as many tokens as allowed."""
        unit = self._unit
        minimum, maximum = self["min_image_tokens"] * unit**2, self["max_image_tokens"] * unit**2
        size = self._rounded(width, unit), self._rounded(height, unit)
        if size[0] * size[1] > maximum:
            scale = math.sqrt(width * height / maximum)
            return max(unit, math.floor(width / scale / unit) * unit), max(
                unit, math.floor(height / scale / unit) * unit
            )
        if size[0] * size[1] < minimum:
            scale = math.sqrt(minimum / (width * height))
            return math.ceil(width * scale / unit) * unit, math.ceil(height * scale / unit) * unit
        return size

    def _grid(self, image: Image) -> tuple[int, int]:
        """Return the grid nearest the image's proportions; of equal ones the larger, if the image fills half of it."""
        counts = range(1, self["max_tiles"] + 1)
        grids = {(w, h) for w in counts for h in counts if self["min_tiles"] <= w * h <= self["max_tiles"]}
        best, nearest = (1, 1), math.inf
        for wide, high in sorted(sorted(grids), key=lambda grid: grid[0] * grid[1]):
            distance = abs(image.width / image.height - wide / high)
            fills_half = image.width * image.height > 0.5 * self["tile_size"] ** 2 * wide * high
            if distance < nearest or (distance == nearest and fills_half):
                best, nearest = (wide, high), distance
        return best

    def _patches(self, view: Image) -> tuple[Any, list[int]]:
        import numpy as np

        size = int(self["encoder_patch_size"])
        values = np.asarray(view, dtype=np.float32) * np.float32(self["rescale_factor"])
        values = (values - np.float32(self["image_mean"])) / np.float32(self["image_std"])
        high, wide = view.height // size, view.width // size
        patches = values[: high * size, : wide * size].reshape(high, size, wide, size, 3).transpose(0, 2, 1, 3, 4)
        return patches.reshape(high * wide, -1), [high, wide]


def _flat(images: Any) -> Iterator[Image]:
    if isinstance(images, Sequence):
        for image in images:
            yield from _flat(image)
    else:
        yield images
