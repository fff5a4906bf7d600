"""Comparison of two pictures in detail, which tells charts of one template with other values apart."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

    from benchmarks.training.same_picture_hash import Window

Array = np.ndarray[Any, np.dtype[Any]]

_LONGEST = 384
"""The pixels of the longer side at which pictures are compared, or those of the smaller picture."""
_BLOCK = 12
"""The pixels of a block's sides."""
_FAR, _NEAR = 4, 1
"""The pixels by which a block may be shifted before and after the pictures are aligned."""
_NOISE = 12.0
"""The standard deviation of grey values that encoding anew adds in a block, beside what it blurs."""
_TEXTURED = 100.0
"""The mean square of the gradient from which a block shows by how much it is shifted."""
_CROPPED = 0.005
"""The share of the longer side by which an edge is moved to align two pictures of which one is a crop."""
_EXPLAINED, _EXPLAINED_OF_CROP = 0.5, 1.0
"""The largest difference that is encoding anew: of a whole picture, and of a crop, whose edges are known less well."""


def is_one_picture(whole: PILImage, other: PILImage, window: Window) -> bool:
    """Return whether ``whole`` shows no other details than ``other``'s window, whose place may be off by 4 pixels in 384."""
    box = _box(other, window)
    size = _common_size(whole, (box[2] - box[0], box[3] - box[1]))
    first = _grey(whole, size, (0, 0, *whole.size))
    second = _grey(other, size, box)
    if _largest_difference(first, second) <= _EXPLAINED:
        return True
    aligned = box
    for _ in range(2):
        aligned = _aligned(first, second, aligned, other.size)
        second = _grey(other, size, aligned)
    is_crop = window[2] < 1 or max(abs(a - b) for a, b in zip(aligned, box, strict=True)) > _CROPPED * max(other.size)
    return _largest_difference(first, second) <= (_EXPLAINED_OF_CROP if is_crop else _EXPLAINED)


def _largest_difference(first: Array, second: Array) -> float:
    """Return the largest difference of a block, in shares of what encoding anew explains."""
    return float(_compare(first, second, _NEAR)[0].max())


def _box(image: PILImage, window: Window) -> tuple[float, float, float, float]:
    left, top, side = window
    return left * image.width, top * image.height, (left + side) * image.width, (top + side) * image.height


def _common_size(whole: PILImage, part: tuple[float, float]) -> tuple[int, int]:
    share = min(1.0, _LONGEST / max(whole.size), part[0] / whole.width, part[1] / whole.height)
    width, height = (max(1, round(side * share / _BLOCK)) * _BLOCK for side in whole.size)
    return width, height


def _grey(image: PILImage, size: tuple[int, int], box: tuple[float, float, float, float]) -> Array:
    from PIL import Image, ImageFilter

    view = image.convert("L").resize(size, Image.Resampling.BICUBIC, box=box)
    return np.asarray(view.filter(ImageFilter.GaussianBlur(0.8)), dtype=np.float32)


def _compare(first: Array, second: Array, reach: int) -> tuple[Array, Array]:
    """Return the difference of each block, and the shift at which it is least, as rows of x and y."""
    shifts = sorted(product(range(-reach, reach + 1), repeat=2), key=lambda shift: abs(shift[0]) + abs(shift[1]))
    padded = np.pad(second, reach, mode="edge")
    height, width = first.shape
    squares = np.stack(
        [
            _block_means((first - padded[reach + y : reach + y + height, reach + x : reach + x + width]) ** 2)
            for x, y in shifts
        ]
    )
    best = squares.argmin(axis=0)
    least = np.take_along_axis(squares, best[None], axis=0)[0]
    return least / (_NOISE**2 + 0.25 * np.minimum(_gradients(first), _gradients(second))), np.array(shifts)[best]


def _gradients(image: Array) -> Array:
    y, x = np.gradient(image)
    return _block_means(x * x + y * y)


def _block_means(image: Array) -> Array:
    height, width = image.shape
    means: Array = image.reshape(height // _BLOCK, _BLOCK, width // _BLOCK, _BLOCK).mean(axis=(1, 3))
    return means


def _aligned(
    first: Array, second: Array, box: tuple[float, float, float, float], limits: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Return the box moved and scaled as the shifts of textured blocks say."""
    _, shifts = _compare(first, second, _FAR)
    textured = _gradients(first) > _TEXTURED
    edges = list(box)
    for axis in (0, 1):
        places = np.broadcast_to(
            (np.arange(textured.shape[1]) if axis == 0 else np.arange(textured.shape[0])[:, None]), textured.shape
        )[textured]
        moves = shifts[..., axis][textured]
        if len(moves) < 4 or places.min() == places.max():
            continue
        slope, start = np.polyfit(places, moves, 1)
        for _ in range(2):  # without blocks that fit no other place
            near = np.abs(moves - (start + slope * places)) <= 1.5
            if near.sum() < 4 or places[near].min() == places[near].max():
                break
            slope, start = np.polyfit(places[near], moves[near], 1)
        count = textured.shape[1 - axis]
        per_pixel = (box[2 + axis] - box[axis]) / (count * _BLOCK)
        edges[axis] = max(0.0, box[axis] + (start - slope / 2) * per_pixel)
        edges[2 + axis] = min(limits[axis], box[2 + axis] + (start + slope * (count - 0.5)) * per_pixel)
    return edges[0], edges[1], edges[2], edges[3]
