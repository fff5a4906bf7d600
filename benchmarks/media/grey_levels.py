"""Grey levels of 16 bits, 32 bits and floats, scaled to the 8 bits that a model gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image as PILImage

    Levels = np.ndarray[tuple[int, ...], np.dtype[Any]]

_STRIP = 1 << 20
_FULL = 255
_BYTE = 8
_DARK_BITS = 12
"""The number of bits up to which a picture of 16 is too dark to see: a sixteenth of the range."""

_BITS_PER_SAMPLE, _SAMPLE_FORMAT = 258, 339
_UNSIGNED = 1


@dataclass(frozen=True, slots=True)
class Scale:
    """The levels that become black and white, and a ``note`` where the file does not say so itself."""

    low: float
    high: float
    note: str = ""
    unsigned: bool = False
    """True for 32 bits without a sign, which Pillow reads as with one."""


def is_deep(image: PILImage) -> bool:
    """Return whether an image has one channel of more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def deep_scale(image: PILImage) -> Scale | None:
    """Return the scale of a deep image that Pillow's own conversion would show black, white or clipped; None for others.

    A float picture is of 0 to 1, of 0 to 255, or else of what it uses; integers have as many bits as they use, at least 8
    and as many as the file declares. A 16-bit picture that uses more than 12 is of all 16.
    """
    unsigned = image.mode == "I" and tiff_tag(image, _SAMPLE_FORMAT) == _UNSIGNED
    extrema = [(float(levels.min()), float(levels.max())) for levels in _finite_levels(image, unsigned) if levels.size]
    low, high = min((low for low, _ in extrema), default=0.0), max((high for _, high in extrema), default=0.0)
    if image.mode == "F":
        return _float_scale(low, high)
    if low < 0:
        return _used(low, high)
    bits = max(_BYTE, _declared_bits(image), int(high).bit_length())
    if bits == _BYTE if image.mode == "I" else bits > _DARK_BITS:
        return None
    return Scale(0, 2**bits - 1, f"it uses {bits} bits, and {2**bits - 1} is shown as white", unsigned)


def to_grey(strip: PILImage, scale: Scale | None) -> PILImage:
    """Return a deep image in 8 bits (mode L). NaN is black."""
    import numpy as np
    from PIL import Image

    if scale is not None:
        levels = (_levels(strip, scale.unsigned).astype(np.float64) - scale.low) * (_FULL / (scale.high - scale.low))
        return Image.fromarray(np.nan_to_num(levels, posinf=_FULL, neginf=0).clip(0, _FULL).round().astype(np.uint8))
    if strip.mode.startswith("I;16"):
        # Pillow clips 16 bits to 8 instead of scaling them.
        strip = strip.convert("I").point(lambda value: value * (1 / 257))
    return strip.convert("L")


def _float_scale(low: float, high: float) -> Scale | None:
    """Return the scale of floats; a sixteenth of the range may be missing, or exceeded as resampling does."""
    for white in (1, _FULL):
        if -white / 16 <= low and white / 16 < high <= white * 17 / 16:
            return None if white == _FULL else Scale(0, 1)
    return _used(low, high)


def _used(low: float, high: float) -> Scale | None:
    if high <= low:
        return None
    return Scale(low, high, f"its levels from {low:.6g} to {high:.6g} are shown from black to white")


def _declared_bits(image: PILImage) -> int:
    """Return the number of bits that a TIFF declares for a level, if that is not a whole number of bytes; else 0."""
    bits = tiff_tag(image, _BITS_PER_SAMPLE) or 0
    return bits if bits % _BYTE else 0


def tiff_tag(image: PILImage, number: int) -> int | None:
    """Return the first value of a tag of a TIFF image; None without it."""
    value = getattr(image, "tag_v2", {}).get(number)
    value = value[0] if isinstance(value, tuple) and value else value
    return value if isinstance(value, int) else None


def _finite_levels(image: PILImage, unsigned: bool) -> Iterator[Levels]:
    import numpy as np

    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):
        levels = _levels(image.crop((0, top, image.width, min(top + rows, image.height))), unsigned)
        yield levels[np.isfinite(levels)] if image.mode == "F" else levels


def _levels(image: PILImage, unsigned: bool) -> Levels:
    import numpy as np

    levels = np.asarray(image)
    return levels.view(np.uint32) if unsigned else levels
