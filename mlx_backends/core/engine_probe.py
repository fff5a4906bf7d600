"""Probe: the prompt, token ids, pixels and logprobs that an engine computes for one request, to compare engines by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.vocabulary import Request

TOP_TOKENS = 20
"""Number of most likely tokens recorded for each position."""

_PIXELS, _GRID = "pixel_values", "image_grid_thw"
_SLICE_SIZES = "tgt_sizes"
"""MiniCPM-V's sizes of slices, each of which mlx-vlm lays out as a row of patches, (channels, patch, patches * patch)."""

LikelyTokens = tuple[tuple[int, float], ...]
"""Tokens with their natural logprobs, the likeliest first."""

PixelStats = tuple[float, float, float]
"""Mean, standard deviation and greatest absolute value of an image's processed pixel values."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Everything one engine computes for one request, before and while it answers.

    ``prompt`` is the text after the chat template, special tokens included; ``token_ids`` are those the model reads, with
    image placeholders expanded. For every image in order, ``pixels`` is the sha256 of its processed pixel values (float32,
    little-endian, row-major), ``pixel_stats`` their mean, standard deviation and greatest absolute value, and
    ``pixel_values`` the arrays themselves where requested. A processor that does not keep images apart yields one entry for
    all of them. ``forced`` are the answer's tokens used for teacher forcing, ``top`` the :data:`TOP_TOKENS` most likely tokens
    before each of them with their natural logprobs, the likeliest first, and ``logprobs`` those of the forced tokens themselves.
    """

    request_id: str
    prompt: str
    token_ids: tuple[int, ...]
    pixels: tuple[str, ...]
    pixel_stats: tuple[PixelStats, ...]
    pixel_values: tuple[np.ndarray[Any, Any], ...] | None
    forced: tuple[int, ...]
    top: tuple[LikelyTokens, ...]
    logprobs: tuple[float, ...]


def build_probe(
    request: Request,
    prompt: str,
    token_ids: Sequence[int],
    images: Sequence[np.ndarray[Any, Any]],
    forced: Sequence[int],
    logits: Sequence[np.ndarray[Any, Any]],
    *,
    keep: bool,
) -> Probe:
    """Return the probe of one request from an engine's inputs and logits.

    ``images`` holds one array of pixel values for each image, ``logits`` one array of the vocabulary's length for each forced
    token.
    """
    import numpy as np

    images = [np.ascontiguousarray(image, dtype="<f4") for image in images]
    logprobs = log_softmax(np.array(logits, dtype=np.float64)) if len(forced) else np.zeros((0, 1))
    return Probe(
        request.id,
        prompt,
        tuple(map(int, token_ids)),
        tuple(hashlib.sha256(image.data).hexdigest() for image in images),
        tuple((float(i.mean()), float(i.std()), float(np.abs(i).max(initial=0))) for i in images),
        tuple(images) if keep else None,
        tuple(map(int, forced)),
        tuple(map(_likeliest, logprobs)),
        tuple(float(row[token]) for row, token in zip(logprobs, forced, strict=True)),
    )


def likeliest(logits: np.ndarray[Any, Any]) -> LikelyTokens:
    """Return the :data:`TOP_TOKENS` most likely tokens by the ``logits`` of one position, with their natural logprobs."""
    import numpy as np

    return _likeliest(log_softmax(np.array(logits, dtype=np.float64)))


def _likeliest(logprobs: np.ndarray[Any, Any]) -> LikelyTokens:
    import numpy as np

    order = np.argsort(-logprobs, kind="stable")[:TOP_TOKENS]
    return tuple((int(token), float(logprobs[token])) for token in order)


def log_softmax(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the natural logprobs of logits, along the last axis."""
    import numpy as np

    shifted = logits - logits.max(axis=-1, keepdims=True)
    logprobs: np.ndarray[Any, Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logprobs


def split_pixels(tensors: Mapping[str, Any], count: int) -> list[Any]:
    """Return the processed pixel values of each of ``count`` images as float32 arrays, or one array where they cannot be split.

    Channels come before height and width. ``tensors`` are those of either engine.
    """
    import numpy as np

    if tensors.get(_PIXELS) is None:
        return []
    if tensors.get(_SLICE_SIZES) is not None and tensors[_PIXELS] and tensors[_PIXELS][0]:
        return _joined_slices([_array(part) for part in tensors[_PIXELS][0]], count)
    if isinstance(tensors[_PIXELS], list) and len(tensors[_PIXELS]) == count:  # of different sizes
        return [_array(pixels) for pixels in tensors[_PIXELS]]
    pixels, grid = _array(tensors[_PIXELS]), tensors.get(_GRID)
    if pixels.ndim >= 4 and pixels.shape[-1] == 3 != pixels.shape[-3]:
        pixels = np.moveaxis(pixels, -1, -3)
    if pixels.ndim == 5 and len(pixels) == 1:  # one prompt, with all tiles of all its images
        pixels = pixels[0]
    if grid is not None and pixels.ndim == 2:
        sizes = [int(np.prod(size)) for size in np.array(grid).tolist()]
        if len(sizes) == count and sum(sizes) == len(pixels):
            return np.split(pixels, np.cumsum(sizes)[:-1])
    if pixels.ndim >= 3 and len(pixels) == count:
        return list(pixels)
    return [pixels]


def _joined_slices(parts: list[Any], count: int) -> list[Any]:
    """Return the slices of ``count`` images as one array, unless they are of images of different sizes."""
    import numpy as np

    if len({part.shape[:-1] for part in parts}) > 1:
        return parts
    pixels = np.concatenate(parts, axis=-1)  # transformers has the patches of all slices in one row
    return [pixels] if count == 1 else [pixels[None]]


def _array(value: Any) -> Any:
    """Return a tensor of either framework as a NumPy array of float32."""
    import numpy as np

    if isinstance(value, list):
        return np.stack([_array(item) for item in value])
    if "mlx" in type(value).__module__:
        import mlx.core as mx

        return np.array(value.astype(mx.float32))
    return np.asarray(value.float() if hasattr(value, "float") else value, dtype=np.float32)
