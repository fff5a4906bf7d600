"""Header of a TIFF file: the kind of its pixels, for a refusal that names it, and which pages are pictures."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from benchmarks.media.decoder_faults import is_decoder_fault

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_SUBFILE, _BITS, _COMPRESSION, _SAMPLES, _SAMPLE_FORMAT = 254, 258, 259, 277, 339
_REDUCED_OR_MASK = 1 | 4

_NUMBERS = {1: "unsigned integers", 2: "signed integers", 3: "floats", 5: "complex integers", 6: "complex floats"}
_ALWAYS_READ = (1, 2, 3, 4, 5, 7, 8, 32773, 32946)
"""The compressions that every libtiff reads."""

_COMPRESSIONS = {
    6: "old JPEG",
    33003: "JPEG 2000",
    33004: "JPEG 2000",
    33005: "JPEG 2000",
    34712: "JPEG 2000",
    34887: "LERC",
    34892: "lossy JPEG",
    34925: "LZMA",
    50000: "Zstandard",
    50001: "WebP",
    50002: "JPEG XL",
    52546: "JPEG XL",
}


def tiff_refusal(file: IO[bytes], *, is_opened: bool) -> str | None:
    """Return why a TIFF file cannot be read, if that is its kind: numbers or a compression. None if it may be damaged.

    ``is_opened`` says that Pillow knows the numbers, so that only the compression can be of a kind that is not read.
    """
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    try:
        file.seek(0)
        tags: Any = ImageFileDirectory_v2(file.read(8))
        file.seek(tags.next)
        tags.load(file)
        compression = int(tags.get(_COMPRESSION, 1))
        bits, formats = _values(tags.get(_BITS, 1)), _values(tags.get(_SAMPLE_FORMAT, 1))
        samples = int(tags.get(_SAMPLES, 1))
    except Exception as error:  # a damaged header makes the parser raise anything
        if isinstance(error, MemoryError) or is_decoder_fault(error):
            raise
        return None
    if _COMPRESSION not in tags or _BITS not in tags:
        return None
    if compression not in _ALWAYS_READ:
        name = _COMPRESSIONS.get(compression, f"unknown ({compression})")
        return f"is a TIFF image with {name} compression, damaged or of a kind that is not read; save it as PNG"
    if is_opened:
        return None
    numbers = " and ".join(_NUMBERS.get(number, "numbers of an unknown kind") for number in sorted(set(formats)))
    width = " and ".join(str(width) for width in sorted(set(bits)))
    order = "big-endian " if tags.prefix.startswith(b"M") else ""
    channels = f" in {samples} channels" if samples > 1 else ""
    return f"is a TIFF image of {order}{width}-bit {numbers}{channels}, a kind that is not read; save it as PNG"


def has_other_pages(image: PILImage) -> bool:
    """Return whether a TIFF image with several frames, which stands at its first, has a second one that is a page.

    Smaller versions of the first page and masks are none. After eight of them, the rest counts as pages.
    """
    frames = getattr(image, "n_frames", 1)
    try:
        for number in range(1, min(frames, 9)):
            image.seek(number)
            if not int(getattr(image, "tag_v2", {}).get(_SUBFILE, 0)) & _REDUCED_OR_MASK:
                return True
    except (SyntaxError, OSError, ValueError, TypeError):
        return True  # a page of a kind that is not read
    finally:
        image.seek(0)
    return frames > 9


def _values(value: object) -> tuple[int, ...]:
    """Return the values of a tag; one at most if the file repeats none."""
    return tuple(value)[:100] if isinstance(value, tuple) else (int(value),)  # type: ignore[call-overload]
