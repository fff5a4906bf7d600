"""How the processed pixels of one image relate in two engines: another mean, another order of channels, another size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ROUNDING = 1e-4
"""Pixel values that differ by no more are the same, rounded otherwise: PyTorch's and MLX's differ by 1e-7."""

_FITTED = 2e-3
"""An image is a line of another where it lies so near it, in deviations."""

_SAME_PICTURE = 0.8
"""Above this correlation two images are one picture, prepared otherwise."""


def same_stats(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Whether mean, deviation and greatest absolute value are those of one image, up to rounding."""
    return all(abs(one - other) <= ROUNDING * max(1.0, abs(one)) for one, other in zip(a, b, strict=True))


def relation(a: Array, b: Array) -> str:
    """What B's pixels are to A's, in words; empty where they are the same up to rounding."""
    import numpy as np

    if a.shape != b.shape:
        return f"the image has another size: {_shape(a)} values in A, {_shape(b)} in B"
    a, b = a.astype(np.float64), b.astype(np.float64)
    if np.abs(a - b).max(initial=0.0) <= ROUNDING:
        return ""
    for one, other in zip(_channels(a), _channels(b), strict=True):
        if (line := _line(one, other)) is not None:
            return line
    for one, other in zip(_channels(a), _channels(b), strict=True):
        for order in permutations(range(len(one))):
            if np.abs(one[list(order)] - other).max() <= ROUNDING:
                return f"the colour channels come in another order: {_rgb(order)} of A are B's"
    r = _correlation(a, b)
    moved = np.abs(a - b).mean()
    if r > _SAME_PICTURE:
        return f"the picture is resized or filtered otherwise (correlation {r:.3f}, values move by {moved:.2g})"
    return f"it is another picture (correlation {r:.2f})"


def _channels(values: Array) -> Iterator[Array]:
    """The values by colour channel, of shape (channels, values), for each layout they may have; last as one channel."""
    import numpy as np

    for axis, size in enumerate(values.shape):
        if size == 3:
            yield np.moveaxis(values, axis, 0).reshape(3, -1)
    if values.ndim >= 2 and values.shape[-1] % 3 == 0 and 3 not in values.shape:
        patches = values.reshape(-1, values.shape[-1])
        yield np.moveaxis(patches.reshape(len(patches), 3, -1), 1, 0).reshape(3, -1)  # flattened with channels first
        yield np.moveaxis(patches.reshape(len(patches), -1, 3), 2, 0).reshape(3, -1)  # and last
    yield values.reshape(1, -1)


def _line(a: Array, b: Array) -> str | None:
    """What is told of ``b`` if it is ``a`` times a factor plus a shift in every channel; None where it is not."""
    import numpy as np

    factors, shifts = [], []
    for one, other in zip(a, b, strict=True):
        spread = one.var()
        factor = float(((one - one.mean()) * (other - other.mean())).mean() / spread) if spread > 1e-12 else 1.0
        shift = float(other.mean() - factor * one.mean())
        if np.abs(other - factor * one - shift).max() > _FITTED * max(other.std(), ROUNDING):
            return None
        factors.append(factor)
        shifts.append(shift)
    if min(factors) <= 0:
        return None
    plain = all(abs(factor - 1) < 1e-3 for factor in factors)
    unmoved = all(abs(shift) < 1e-3 for shift in shifts)
    told = f"B = {_each(factors)} A {_signed(shifts)}"
    if plain:
        return f"another image mean (B = A {_signed(shifts)})"
    if unmoved and all(abs(factor * 255 - 1) < 0.02 or abs(factor / 255 - 1) < 0.02 for factor in factors):
        return f"pixels are rescaled in one of the two alone (B = {_each(factors)} A)"
    if unmoved:
        return f"another standard deviation of the image (B = {_each(factors)} A)"
    return f"another image mean or standard deviation ({told})"


def _each(values: list[float]) -> str:
    rounded = list(dict.fromkeys(f"{value:.3g}" for value in values))
    return rounded[0] if len(rounded) == 1 else f"({', '.join(f'{value:.3g}' for value in values)})"


def _signed(values: list[float]) -> str:
    told = _each(values)
    if told.startswith("("):
        return f"+ {told}"
    return f"- {told[1:]}" if told.startswith("-") else f"+ {told}"


def _rgb(order: tuple[int, ...]) -> str:
    return "".join("RGB"[channel] for channel in order)


def _shape(values: Array) -> str:
    return "x".join(map(str, values.shape))


def _correlation(a: Array, b: Array) -> float:
    import numpy as np

    one, other = a.reshape(-1) - a.mean(), b.reshape(-1) - b.mean()
    whole = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum() / whole) if whole else 0.0
