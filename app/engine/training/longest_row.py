"""Longest row of a training set for a model, which decides the memory of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.media.image_files import image_size
from benchmarks.media.image_pixels import fit_size
from benchmarks.training.training_set import ChatRow
from mlx_backends.mlx.training.row_sizes import row_sizes
from mlx_backends.models.training_memory import RowTokens

_HEADERS = (1 << 12, 1 << 16, -1)
"""The bytes of an image that are read for its size, until they are enough; a JPEG can have much before it."""
_UNKNOWN = (1024, 1024)
_CANDIDATES = 8
"""The rows with most images, pixels, text and answer that are measured."""
_SHAPES = 4
"""The steps of an image's shape for a factor of two; of each step, the row with most pixels is measured."""


def longest_row(
    model: Path, rows: Sequence[ChatRow], *, max_length: int, max_pixels: int | None, pairs: bool
) -> RowTokens:
    """Return the size of the longest row for the model in a folder, with the most tokens of images and of an answer.

    Rows with most of something are measured by the model's own processor: tiles depend on an image's shape, not on its pixels.
    A row of more than ``max_length`` tokens is not trained on. Raises ModelError if the model can read none.
    """
    sizes = {image: image_file_size(image, max_pixels) for image in {image for row in rows for image in row.images}}

    def pixels(row: ChatRow) -> int:
        return sum(width * height for width, height in (sizes[image] for image in row.images))

    def answer(row: ChatRow) -> int:
        return max(len(row.target), len(row.rejected))

    keys: list[Callable[[ChatRow], int]] = [
        pixels,
        lambda row: len(row.images),
        lambda row: len(row.prompt) + answer(row),
        answer,
    ]
    candidates = {row.where: row for key in keys for row in sorted(rows, key=key)[-_CANDIDATES:]}
    shapes = {_shape(sizes[row.images[0]]): row for row in sorted(rows, key=pixels) if row.images}
    candidates |= {row.where: row for row in shapes.values()}
    measured = row_sizes(model, list(candidates.values()), max_pixels=max_pixels, pairs=pairs)
    return RowTokens(
        min(max_length, max(row.total for row in measured)),
        min(max_length, max(row.image for row in measured)),
        max(row.answer for row in measured),
    )


def _shape(size: tuple[int, int]) -> int:
    width, height = size
    return round(_SHAPES * math.log2(width / height))


def image_file_size(image: Path, max_pixels: int | None) -> tuple[int, int]:
    """Return the width and height of an image file, scaled down to ``max_pixels``."""
    with image.open("rb") as file:
        data = b""
        for header in _HEADERS:
            data += file.read(header)
            if size := image_size(data):
                return fit_size(*size, max_pixels)
    return fit_size(*_UNKNOWN, max_pixels)
