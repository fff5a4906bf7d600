"""Loading and checking images; whatever a file holds, it is an RGB image or a MediaError."""

from __future__ import annotations

import hashlib
import io
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from benchmarks.base import Mark, Media
from benchmarks.errors import MediaError, SpecError
from benchmarks.media.limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.safe_files import UnsafeFileError, open_read, open_regular

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

MISSING = "is missing; put the file in its place"
UNSAFE = "is no regular file of its build; build it again"
CHANGED = "is not the one that was built; build it again"
NO_IMAGE = "is not a PNG, JPEG, GIF, WebP, BMP or TIFF image; convert it to one of them"
TOO_LARGE = f"has more than {LARGEST_IMAGE // 1_000_000} megapixels or 256 MiB; scale it down"
DAMAGED = "is truncated or damaged; replace the file"

# No other decoder is let near a file: some formats start other programs.
_FORMATS = {
    b"\x89PNG\r\n\x1a\n": ("PNG", ".png"),
    b"\xff\xd8\xff": ("JPEG", ".jpg"),
    b"GIF87a": ("GIF", ".gif"),
    b"GIF89a": ("GIF", ".gif"),
    b"BM": ("BMP", ".bmp"),
    b"II*\x00": ("TIFF", ".tif"),
    b"MM\x00*": ("TIFF", ".tif"),
}


def image_suffix(data: bytes) -> str | None:
    """The suffix, with its dot, of the image format that ``data`` begins like; None for anything else."""
    found = _format(data)
    return found[1] if found else None


def read_image(path: Path, what: str = "image") -> bytes:
    """The bytes of an image's file. Raises MediaError where it is missing, unreadable or larger than 256 MiB.

    ``what`` is what an error calls it.
    """
    name = f"the {what} {path.name!r}"
    try:
        with open_regular(path) as stream:
            return _bounded(stream, name)
    except (OSError, ValueError) as error:
        raise MediaError(name, MISSING) from error


def _bounded(stream: BinaryIO, name: str) -> bytes:
    if os.fstat(stream.fileno()).st_size <= LARGEST_FILE:
        data = stream.read(LARGEST_FILE + 1)
        if len(data) <= LARGEST_FILE:
            return data
    raise MediaError(name, TOO_LARGE)


def read_media(path: Path, media: Media) -> bytes:
    """The bytes of ``media``'s file. Raises MediaError where they are not there, or not those the medium is named by."""
    what = {"audio": "sound", "point_cloud": "3D model"}.get(media.modality, media.modality)
    name = f"the {what} {path.name!r}"
    try:
        with open_read(path.parent, path.name) as stream:
            data = _bounded(stream, name)
    except UnsafeFileError as error:
        raise MediaError(name, UNSAFE) from error
    except (OSError, ValueError) as error:
        raise MediaError(name, MISSING) from error
    if hashlib.sha256(data).hexdigest() != media.sha256:
        raise MediaError(name, CHANGED)
    return data


def load_image(source: Path | str | bytes, max_pixels: int | None = None, marks: Sequence[Mark] = ()) -> PILImage:
    """The image in a file or in bytes, as RGB: turned as its EXIF says, alpha laid on white, the first frame.

    With ``max_pixels`` it is scaled down, its aspect kept, to at most so many pixels; it is never scaled up. ``marks`` are
    drawn on it after that, so that they are as legible as on a picture that was small from the beginning. Raises
    MediaError for what is missing, is no image, is truncated, or has more than ``LARGEST_IMAGE`` pixels (seen in its
    header, before anything is decoded); SpecError for ``max_pixels`` below 1.
    """
    if max_pixels is not None and max_pixels < 1:
        raise SpecError(f"max_pixels is {max_pixels}; an image needs at least 1 pixel.")
    from PIL import Image, ImageOps

    name = "the image" if isinstance(source, bytes) else f"the image {Path(source).name!r}"
    data = source if isinstance(source, bytes) else read_image(Path(source))
    found = _format(data)
    if found is None:
        raise MediaError(name, NO_IMAGE)
    try:
        with warnings.catch_warnings():
            # Of Pillow's own, larger limit, and of odd metadata in files that can be read all the same.
            warnings.simplefilter("ignore")
            image: PILImage = Image.open(io.BytesIO(data), formats=[found[0]])
            if image.width * image.height > LARGEST_IMAGE:
                raise MediaError(name, TOO_LARGE)
            image.load()
            rgb = _rgb(ImageOps.exif_transpose(image))
    except MediaError:
        raise
    except Image.DecompressionBombError as error:
        raise MediaError(name, TOO_LARGE) from error
    # A decoder that is given hostile bytes can raise anything.
    except Exception as error:
        raise MediaError(name, DAMAGED) from error
    size = fitting(rgb.width, rgb.height, max_pixels)
    shown = rgb if size == rgb.size else rgb.resize(size, Image.Resampling.LANCZOS)
    if not marks:
        return shown
    from benchmarks.marks import draw_marks

    return draw_marks(shown, marks, rgb.width, rgb.height)


def pixel_digest(image: PILImage) -> str:
    """sha256, in hex, of an RGB image's size and pixels: equal for one picture in two files."""
    whole = hashlib.sha256(f"{image.width}x{image.height}:".encode())
    whole.update(image.tobytes())
    return whole.hexdigest()


def _format(data: bytes) -> tuple[str, str] | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP", ".webp"
    return next((names for magic, names in _FORMATS.items() if data.startswith(magic)), None)


def _rgb(image: PILImage) -> PILImage:
    from PIL import Image

    if image.mode.startswith("I;16"):
        # Pillow clips 16 bits to 8 instead of scaling them.
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    white = Image.new("RGBA", layer.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, layer).convert("RGB")


def fitting(width: int, height: int, max_pixels: int | None) -> tuple[int, int]:
    """The size of an image scaled down, its aspect kept, to at most ``max_pixels``; None leaves it."""
    if max_pixels is None or width * height <= max_pixels:
        return width, height
    scale = math.sqrt(max_pixels / (width * height))
    if min(width, height) * scale < 1:
        return (1, max_pixels) if width < height else (max_pixels, 1)
    return int(width * scale), int(height * scale)
