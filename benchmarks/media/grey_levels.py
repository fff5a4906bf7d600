"""Grey levels of 16 bits, 32 bits and floats, scaled to the 8 bits that a model gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.media.missing_pixels import Used, is_absent, used_levels

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

    from benchmarks.media.missing_pixels import Levels

_STRIP = 1 << 20
_FULL = 255
_BYTE = 8
_DARK_BITS = 12
"""The number of bits up to which a picture of 16 is too dark to see: a sixteenth of the range."""

_BITS_PER_SAMPLE, _SAMPLE_FORMAT, _NO_DATA = 258, 339, 42113
_UNSIGNED = 1
_LONG = 32


@dataclass(frozen=True, slots=True)
class Scale:
    """The levels that become black and white, and ``notes`` where the file does not say so itself.

    Without ``ends``, Pillow's own conversion is right. ``absent`` are the levels that stand for missing or transparent
    pixels, ``is_partial`` says whether a pixel is missing, and ``ground`` names the ground to prefer under it. ``unsigned``
    is true for 32 bits without a sign, which Pillow reads as with one.
    """

    ends: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    unsigned: bool = False
    absent: tuple[float, ...] = ()
    is_partial: bool = False
    ground: str = "black"


def is_deep(image: PILImage) -> bool:
    """Return whether an image has one channel of more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def deep_scale(image: PILImage, sample: PILImage) -> Scale:
    """Return the scale of a deep image, of which ``sample`` has some pixels.

    A float picture is of 0 to 1, of 0 to 255, or else of what it uses; integers have as many bits as they use, at least 8
    and as many as the file declares. A 16-bit picture that uses more than 12 is of all 16. Missing data and a handful of
    outlying pixels do not count.
    """
    bits, sample_format = tiff_tag(image, _BITS_PER_SAMPLE), tiff_tag(image, _SAMPLE_FORMAT)
    unsigned = image.mode == "I" and bits == _LONG and sample_format in (None, _UNSIGNED)
    used = used_levels(lambda: _strips(image, unsigned), _levels(sample, unsigned), _declared_absent(image))
    ends, note = _ends(image, used)
    notes: tuple[str, ...] = (f"the image's levels: {note}",) if note else ()
    if used.n_outside:
        low, high = ends or (used.low, used.high)
        clipped = "1 pixel is" if used.n_outside == 1 else f"{used.n_outside} pixels are"
        notes += (f"{clipped} outside {low:.6g} to {high:.6g}, and clipped",)
    ground = "white" if any(level > used.high for level in used.absent) else "black"
    return Scale(ends, notes, unsigned, used.absent, used.n_absent > 0, ground)


def to_grey(strip: PILImage, scale: Scale) -> PILImage:
    """Return a deep image in 8 bits: mode L, or LA with missing pixels transparent."""
    import numpy as np
    from PIL import Image

    if scale.ends is not None:
        low, high = scale.ends
        levels = (_levels(strip, scale.unsigned).astype(np.float64) - low) * (_FULL / (high - low))
        grey = Image.fromarray(np.nan_to_num(levels, posinf=_FULL, neginf=0).clip(0, _FULL).round().astype(np.uint8))
    elif strip.mode.startswith("I;16"):
        # Pillow clips 16 bits to 8 instead of scaling them.
        grey = strip.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    else:
        grey = strip.convert("L")
    if scale.is_partial:
        grey.info.clear()
        present = ~is_absent(_levels(strip, scale.unsigned), scale.absent)
        grey.putalpha(Image.fromarray(present.astype(np.uint8) * _FULL))
    return grey


def _ends(image: PILImage, used: Used) -> tuple[tuple[float, float] | None, str]:
    """Return the levels that become black and white, None if Pillow's conversion is right, and a note on them."""
    low, high = used.low, used.high
    if image.mode == "F":
        # A sixteenth of the range may be missing, or exceeded as resampling does.
        for white in (1, _FULL):
            if -white / 16 <= low and white / 16 < high <= white * 17 / 16:
                return (None if white == _FULL else (0, 1)), ""
    if image.mode == "F" or low < 0:
        if high <= low:
            return None, ""
        return (low, high), f"its levels from {low:.6g} to {high:.6g} are shown from black to white"
    bits = max(_BYTE, _declared_bits(image), int(high).bit_length())
    if bits == _BYTE if image.mode == "I" else bits > _DARK_BITS:
        return None, ""
    return (0, 2**bits - 1), f"it uses {bits} bits, and {2**bits - 1} is shown as white"


def _declared_absent(image: PILImage) -> tuple[float, ...]:
    """Return the levels that a file declares to be missing (GDAL's tag) or transparent."""
    text, level = getattr(image, "tag_v2", {}).get(_NO_DATA), image.info.get("transparency")
    absent = [float(level)] if isinstance(level, int) else []
    with suppress(IndexError, ValueError):  # no such tag, or no number in it
        absent.append(float(str(text or "").split()[0]))
    return tuple(absent)


def _declared_bits(image: PILImage) -> int:
    """Return the number of bits that a TIFF declares for a level, if that is not a whole number of bytes; else 0."""
    bits = tiff_tag(image, _BITS_PER_SAMPLE) or 0
    return bits if bits % _BYTE else 0


def tiff_tag(image: PILImage, number: int) -> int | None:
    """Return the first value of a tag of a TIFF image; None without it."""
    value = getattr(image, "tag_v2", {}).get(number)
    value = value[0] if isinstance(value, tuple) and value else value
    return value if isinstance(value, int) else None


def _strips(image: PILImage, unsigned: bool) -> Iterator[Levels]:
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):
        yield _levels(image.crop((0, top, image.width, min(top + rows, image.height))), unsigned)


def _levels(image: PILImage, unsigned: bool) -> Levels:
    import numpy as np

    levels = np.asarray(image)
    return levels.view(np.uint32) if unsigned else levels
