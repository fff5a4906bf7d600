"""Probe: what one engine makes of one request, before and while it answers; engines are compared by it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.base import Request
    from mlx_backends.base import Backend

TOP = 20
"""How many of the most likely tokens of a position are kept."""

_PIXELS, _GRID = "pixel_values", "image_grid_thw"

Pixels = tuple[float, float, float]
"""An image's processed pixel values: their mean, standard deviation and greatest absolute value."""


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """What one engine makes of one request, before and while it answers.

    ``prompt`` is the text after the chat template, special tokens included; ``token_ids`` are those the model reads, an
    image's places expanded. Of every image in order, ``pixels`` is the sha256 of its processed pixel values (float32,
    little-endian, row-major), ``pixel_stats`` their mean, standard deviation and greatest absolute value, and
    ``pixel_values`` the arrays themselves where they were asked for. Where the processor does not keep images apart there is
    one entry for all of them. ``forced`` are the answer's tokens that the model was led through, ``top`` the :data:`TOP`
    most likely tokens before each of them with their natural logprobs, the likeliest first, and ``logprobs`` those of the
    forced tokens themselves.
    """

    request_id: str
    prompt: str
    token_ids: tuple[int, ...]
    pixels: tuple[str, ...]
    pixel_stats: tuple[Pixels, ...]
    pixel_values: tuple[np.ndarray[Any, Any], ...] | None
    forced: tuple[int, ...]
    top: tuple[tuple[tuple[int, float], ...], ...]
    logprobs: tuple[float, ...]


def probe(
    backend: Backend, requests: Sequence[Request], forced: Mapping[str, Sequence[int]], *, keep: bool = False
) -> Iterator[Probe]:
    """The probes of ``requests`` in their order, each led through ``forced`` tokens by the request's id (none: inputs alone).

    ``keep``: with the pixel values themselves. Raises ModelError of an engine that cannot be probed, and what preparing a
    request raises (PromptError, MediaError).
    """
    for request in requests:
        yield backend.probe(request, forced.get(request.id, ()), keep=keep)


def made(
    request: Request,
    prompt: str,
    token_ids: Sequence[int],
    images: Sequence[np.ndarray[Any, Any]],
    forced: Sequence[int],
    logits: Sequence[np.ndarray[Any, Any]],
    *,
    keep: bool,
) -> Probe:
    """The probe of what an engine found: ``images`` one array of pixel values each, ``logits`` one array of the
    vocabulary's length for each forced token."""
    import numpy as np

    images = [np.ascontiguousarray(image, dtype="<f4") for image in images]
    logprobs = log_softmax(np.array(logits, dtype=np.float64)) if len(forced) else np.zeros((0, 1))
    order = np.argsort(-logprobs, axis=-1, kind="stable")[:, :TOP]
    return Probe(
        request.id,
        prompt,
        tuple(map(int, token_ids)),
        tuple(hashlib.sha256(image.data).hexdigest() for image in images),
        tuple((float(i.mean()), float(i.std()), float(np.abs(i).max(initial=0))) for i in images),
        tuple(images) if keep else None,
        tuple(map(int, forced)),
        tuple(tuple((int(t), float(row[t])) for t in likely) for row, likely in zip(logprobs, order, strict=True)),
        tuple(float(row[token]) for row, token in zip(logprobs, forced, strict=True)),
    )


def log_softmax(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Natural logprobs of logits, along the last axis."""
    import numpy as np

    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: np.ndarray[Any, Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def pictures(tensors: Mapping[str, Any], count: int) -> list[Any]:
    """The processed pixel values of each of ``count`` images as float32 arrays, or one for all where they are not told apart.

    Channels come before height and width. ``tensors`` are those of either engine.
    """
    import numpy as np

    if tensors.get(_PIXELS) is None:
        return []
    pixels, grid = _array(tensors[_PIXELS]), tensors.get(_GRID)
    if pixels.ndim >= 4 and pixels.shape[-1] == 3 != pixels.shape[-3]:
        pixels = np.moveaxis(pixels, -1, -3)
    if grid is not None and pixels.ndim == 2:
        sizes = [int(np.prod(size)) for size in np.array(grid).tolist()]
        if len(sizes) == count and sum(sizes) == len(pixels):
            return np.split(pixels, np.cumsum(sizes)[:-1])
    if pixels.ndim >= 3 and len(pixels) == count:
        return list(pixels)
    return [pixels]


def _array(value: Any) -> Any:
    """A tensor of either framework as a NumPy array of float32."""
    import numpy as np

    if isinstance(value, list):
        return np.stack([_array(one) for one in value])
    if "mlx" in type(value).__module__:
        import mlx.core as mx

        return np.array(value.astype(mx.float32))
    return np.asarray(value.float() if hasattr(value, "float") else value, dtype=np.float32)
