"""Differences between two engines' processed pixels of one image: mean, scale, channel order, size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ROUNDING = 1e-4
"""The largest difference between pixel values that counts as rounding: PyTorch's and MLX's differ by 1e-7."""

_RESIDUAL = 2e-3
"""The largest residual of a linear fit between two images, in standard deviations."""

_SAME_PICTURE = 0.8
"""The correlation above which two images are the same picture, processed differently."""


def same_stats(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Return whether mean, deviation and greatest absolute value are equal up to rounding."""
    return all(
        abs(value_a - value_b) <= ROUNDING * max(1.0, abs(value_a)) for value_a, value_b in zip(a, b, strict=True)
    )


def pixel_difference(a: Array, b: Array) -> str:
    """Return the relation of B's pixels to A's, in words; empty where they are equal up to rounding."""
    import numpy as np

    if a.shape != b.shape:
        return f"the image has another size: {_shape(a)} values in A, {_shape(b)} in B"
    a, b = a.astype(np.float64), b.astype(np.float64)
    if np.abs(a - b).max(initial=0.0) <= ROUNDING:
        return ""
    for channels_a, channels_b in zip(_channels(a), _channels(b), strict=True):
        if (relation := _linear_relation(channels_a, channels_b)) is not None:
            return relation
    for channels_a, channels_b in zip(_channels(a), _channels(b), strict=True):
        for order in permutations(range(len(channels_a))):
            if np.abs(channels_a[list(order)] - channels_b).max() <= ROUNDING:
                return f"the colour channels are in another order: {_rgb(order)} of A are B's"
    correlation = _correlation(a, b)
    shift = np.abs(a - b).mean()
    if correlation > _SAME_PICTURE:
        return f"the picture is resized or filtered differently (correlation {correlation:.3f}, values move by {shift:.2g})"
    return f"it is another picture (correlation {correlation:.2f})"


def _channels(values: Array) -> Iterator[Array]:
    """Yield the values by colour channel, of shape (channels, values), for each possible layout; last as one channel."""
    import numpy as np

    for axis, size in enumerate(values.shape):
        if size == 3:
            yield np.moveaxis(values, axis, 0).reshape(3, -1)
    if values.ndim >= 2 and values.shape[-1] % 3 == 0 and 3 not in values.shape:
        patches = values.reshape(-1, values.shape[-1])
        yield np.moveaxis(patches.reshape(len(patches), 3, -1), 1, 0).reshape(3, -1)  # flattened with channels first
        yield np.moveaxis(patches.reshape(len(patches), -1, 3), 2, 0).reshape(3, -1)  # and last
    yield values.reshape(1, -1)


def _linear_relation(a: Array, b: Array) -> str | None:
    """Describe ``b`` as ``a`` times a factor plus a shift in every channel; None where it is not."""
    import numpy as np

    factors, shifts = [], []
    for x, y in zip(a, b, strict=True):
        variance = x.var()
        factor = float(((x - x.mean()) * (y - y.mean())).mean() / variance) if variance > 1e-12 else 1.0
        shift = float(y.mean() - factor * x.mean())
        if np.abs(y - factor * x - shift).max() > _RESIDUAL * max(y.std(), ROUNDING):
            return None
        factors.append(factor)
        shifts.append(shift)
    if min(factors) <= 0:
        return None
    unscaled = all(abs(factor - 1) < 1e-3 for factor in factors)
    unshifted = all(abs(shift) < 1e-3 for shift in shifts)
    if unscaled:
        return f"another image mean (B = A {_signed(shifts)})"
    if unshifted and all(abs(factor * 255 - 1) < 0.02 or abs(factor / 255 - 1) < 0.02 for factor in factors):
        return f"pixels are rescaled in only one of the two (B = {_per_channel(factors)} A)"
    if unshifted:
        return f"another standard deviation of the image (B = {_per_channel(factors)} A)"
    return f"another image mean or standard deviation (B = {_per_channel(factors)} A {_signed(shifts)})"


def _per_channel(values: list[float]) -> str:
    rounded = list(dict.fromkeys(f"{value:.3g}" for value in values))
    return rounded[0] if len(rounded) == 1 else f"({', '.join(f'{value:.3g}' for value in values)})"


def _signed(values: list[float]) -> str:
    text = _per_channel(values)
    return f"- {text[1:]}" if text.startswith("-") else f"+ {text}"


def _rgb(order: tuple[int, ...]) -> str:
    return "".join("RGB"[channel] for channel in order)


def _shape(values: Array) -> str:
    return "x".join(map(str, values.shape))


def _correlation(a: Array, b: Array) -> float:
    import numpy as np

    x, y = a.reshape(-1) - a.mean(), b.reshape(-1) - b.mean()
    norm = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum() / norm) if norm else 0.0
