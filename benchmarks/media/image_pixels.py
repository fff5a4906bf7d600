"""Decoding of an image file to the RGB pixels that a person sees in a viewer, with notes on what was chosen."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from benchmarks.errors import MediaError
from benchmarks.media.colour_and_brightness import lighten
from benchmarks.media.decoder_faults import is_decoder_fault
from benchmarks.media.grey_levels import Scale, deep_scale, is_deep, to_grey
from benchmarks.media.image_refusal import refusal
from benchmarks.media.jpeg_end import with_end
from benchmarks.media.media_limits import LARGEST_IMAGE
from benchmarks.media.tiff_header import has_other_pages, tiff_refusal

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

Size = tuple[int, int]

NAME = "the image"
TOO_LARGE = f"has more than {LARGEST_IMAGE // 1_000_000} megapixels or 256 MiB; scale it down"
DAMAGED = "is truncated or damaged; replace the file"
DAMAGED_OR_LARGE = "is truncated or damaged, or takes too much memory to decode; replace the file, or scale it down"

ONE_COLOUR = "the image is of one colour, or nearly: nothing can be seen on it"
NEARLY_BLANK = "the image is nearly blank: less than a thousandth of it differs from the rest, if anything"
PARTLY_UNSEEN = (
    "part of the drawing cannot be seen on any ground: the image is transparent, save it on a ground of its own"
)
NARROW = "the image is too narrow for a model to see anything on it"
FIRST_FRAME = "the image is an animation, of which only the first picture is shown"
FIRST_PAGE = "the image has several pages, of which only the first is shown"

PLAIN_PIXELS = 10_000_000
"""The maximum number of pixels of a file that is decoded in this process."""

_STRIP = 1 << 20
_UNSEEN = 16
"""The difference between the darkest and the lightest level of every channel, up to which nothing can be seen."""

_HANDFUL = 1000
_DOTS = 16
"""The number of pixels that show nothing, however few they are of a picture: a number in small type has more."""

_SAMPLED = 300_000
_OPAQUE = 255

_NARROWEST = 8
_LONGEST = 200
"""The ratio of the sides from which common processors of models refuse an image."""

# No other decoder may open a file, since some formats start other programs.
_FORMATS = {
    b"\x89PNG\r\n\x1a\n": ("PNG", ".png"),
    b"\xff\xd8\xff": ("JPEG", ".jpg"),
    b"GIF87a": ("GIF", ".gif"),
    b"GIF89a": ("GIF", ".gif"),
    b"BM": ("BMP", ".bmp"),
    b"II*\x00": ("TIFF", ".tif"),
    b"MM\x00*": ("TIFF", ".tif"),
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """An RGB image, its size before it was scaled down, and what a person should know about it.

    ``notes`` say what was chosen where the file leaves it open, ``warnings`` what may make the image useless. ``converted``
    is true if colour management changed the pixels.
    """

    image: PILImage
    full_size: Size
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    converted: bool = False


def file_format(data: bytes) -> tuple[str, str] | None:
    """Return Pillow's name and the suffix of the format whose signature ``data`` has."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP", ".webp"
    return next((names for magic, names in _FORMATS.items() if data.startswith(magic)), None)


def decode(file: IO[bytes], max_pixels: int | None, *, managed: bool = False) -> Decoded:
    """Return the first picture of a file, in this process; see ``load_image``. Raises MediaError.

    With ``managed``, colour profiles, gamma and negatives are converted as well.
    """
    from PIL import Image, ImageOps

    file.seek(0)
    head = file.read(4096)
    if (image_format := file_format(head)) is None:
        raise MediaError(NAME, refusal(head))
    file.seek(0)
    image: PILImage | None = None
    try:
        with warnings.catch_warnings():
            # Pillow warns of its own, larger limit and of odd metadata in readable files.
            warnings.simplefilter("ignore")
            image = Image.open(file, formats=[image_format[0]])
            if image.width * image.height > LARGEST_IMAGE:
                raise MediaError(NAME, TOO_LARGE)
            sequence = _sequence_warnings(image)
            image.load()
            scaled, dark = lighten(image, file, head)
            _scale_transparent_level(image, head)
            ImageOps.exif_transpose(image, in_place=True)
            rgb, notes, unseen = _rgb(image)
            deep = is_deep(image)
            shown = rgb
            if managed:
                from benchmarks.media.colour_and_brightness import as_shown

                shown = as_shown(image, rgb)
    except (MediaError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise MediaError(NAME, TOO_LARGE) from error
    # A decoder can raise anything for hostile bytes.
    except Exception as error:
        if is_decoder_fault(error):
            raise
        if image_format[0] == "JPEG" and (whole := with_end(file)) is not None:
            return decode(whole, max_pixels, managed=managed)
        if image_format[0] == "TIFF" and (reason := tiff_refusal(file, is_opened=image is not None)):
            raise MediaError(NAME, reason) from error
        large = image is not None and image.width * image.height > PLAIN_PIXELS
        raise MediaError(NAME, DAMAGED_OR_LARGE if large else DAMAGED) from error
    size = fit_size(rgb.width, rgb.height, max_pixels)
    is_converted = shown is not rgb
    del image, rgb
    return Decoded(
        shown if size == shown.size else shown.resize(size, Image.Resampling.LANCZOS),
        shown.size,
        (*scaled, *notes),
        (*sequence, *unseen, *(dark or _pixel_warnings(shown, deep))),
        is_converted,
    )


def fit_size(width: int, height: int, max_pixels: int | None) -> Size:
    """Return the size of an image scaled down to at most ``max_pixels`` with its aspect ratio preserved; None leaves it."""
    if max_pixels is None or width * height <= max_pixels:
        return width, height
    scale = math.sqrt(max_pixels / (width * height))
    if min(width, height) * scale < 1:
        return (1, max_pixels) if width < height else (max_pixels, 1)
    return int(width * scale), int(height * scale)


def _sequence_warnings(image: PILImage) -> tuple[str, ...]:
    """Return a warning if only one of several pictures is shown. A JPEG's others are previews or a phone's depth map."""
    if image.format in ("JPEG", "MPO") or not getattr(image, "is_animated", False):
        return ()
    if image.format != "TIFF":
        return (FIRST_FRAME,)
    return (FIRST_PAGE,) if has_other_pages(image) else ()


def _pixel_warnings(rgb: PILImage, deep: bool) -> tuple[str, ...]:
    short, long = sorted(rgb.size)
    narrow = (NARROW,) if short < _NARROWEST or long > _LONGEST * short else ()
    if all(high - low <= _UNSEEN for low, high in rgb.getextrema()):  # type: ignore[misc]
        return (*narrow, ONE_COLOUR)
    pixels = rgb.width * rgb.height
    few = pixels // _HANDFUL if deep else min(_DOTS, pixels // _HANDFUL)
    histogram = rgb.histogram()
    blank = all(_n_apart(histogram[at : at + 256]) <= few for at in (0, 256, 512))
    return (*narrow, NEARLY_BLANK) if blank else narrow


def _n_apart(histogram: list[int]) -> int:
    """Return the number of pixels whose level is visibly different from the commonest one."""
    commonest = histogram.index(max(histogram))
    return sum(histogram) - sum(histogram[max(0, commonest - _UNSEEN) : commonest + _UNSEEN + 1])


def _rgb(image: PILImage) -> tuple[PILImage, tuple[str, ...], tuple[str, ...]]:
    """Return an image of any mode as RGB, notes on its levels and on the ground under its transparent parts, and warnings."""
    from PIL import Image

    if image.mode == "RGB" and not image.has_transparency_data:
        return image, (), ()
    from benchmarks.media.transparent_ground import GROUNDS, choose_ground

    sample = _sample(image)
    scale = deep_scale(image, sample) if is_deep(image) else None
    notes = scale.notes if scale is not None else ()
    layer, ground, is_seen = _layer(sample, scale), "white", True
    if image.has_transparency_data:
        if layer.mode == "RGBA" and layer.getchannel("A").getextrema()[0] < _OPAQUE:  # type: ignore[operator]
            ground, is_seen = choose_ground(layer)
            notes += (f"the image is transparent, and is shown on {ground}",)
    elif scale is not None and scale.is_partial:
        ground, is_seen = choose_ground(layer, scale.ground)
        levels = ", ".join(f"{level:.6g}" for level in scale.absent)
        notes += (f"pixels without data{levels and f' ({levels})'} are shown on {ground}",)
    rgb = Image.new("RGB", image.size)
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):  # by strips, so that there are never three full copies
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        rgb.paste(_flat(_layer(strip, scale), GROUNDS[ground]), (0, top))
    return rgb, notes, () if is_seen else (PARTLY_UNSEEN,)


def _sample(image: PILImage) -> PILImage:
    """Return an image with at most 300,000 of its pixels, unchanged ones: enough to choose a ground on."""
    from PIL import Image

    size = fit_size(image.width, image.height, _SAMPLED)
    return image if size == image.size else image.resize(size, Image.Resampling.NEAREST)


def _flat(layer: PILImage, ground: tuple[int, int, int]) -> PILImage:
    from PIL import Image

    if layer.mode == "RGBA":
        layer = Image.alpha_composite(Image.new("RGBA", layer.size, (*ground, 255)), layer)
    return layer.convert("RGB")


def _layer(image: PILImage, scale: Scale | None) -> PILImage:
    """Return an image as RGBA if it has transparent or missing pixels, else in a mode without them."""
    if scale is not None:
        grey = to_grey(image, scale)
        return grey.convert("RGBA") if grey.mode == "LA" else grey
    return image.convert("RGBA") if image.has_transparency_data else image


def _scale_transparent_level(image: PILImage, head: bytes) -> None:
    """Bring the transparent level of a PNG of less or more than 8 bits to the 8 that Pillow reads its pixels as."""
    if image.format != "PNG":
        return
    key, depth = image.info.get("transparency"), head[24]
    if image.mode == "L" and isinstance(key, int) and depth < 8:
        image.info["transparency"] = key * 255 // (2**depth - 1)
    elif image.mode == "RGB" and isinstance(key, tuple) and depth == 16:
        image.info["transparency"] = tuple(level >> 8 for level in key)
