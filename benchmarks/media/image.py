"""Loading and checking images; whatever a file holds, it is an RGB image or a MediaError."""

from __future__ import annotations

import hashlib
import io
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from benchmarks.base import Mark, Media
from benchmarks.errors import MediaError, SpecError
from benchmarks.media.decoder import read
from benchmarks.media.limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read, open_regular

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

NAME = "the image"
MISSING = "is missing; put the file in its place"
UNSAFE = "is no regular file of its build; build it again"
CHANGED = "is not the one that was built; build it again"
NO_IMAGE = "is not a PNG, JPEG, GIF, WebP, BMP or TIFF image; convert it to one of them"
TOO_LARGE = f"has more than {LARGEST_IMAGE // 1_000_000} megapixels or 256 MiB; scale it down"
DAMAGED = "is truncated or damaged; replace the file"
DAMAGED_OR_LARGE = "is truncated or damaged, or takes too much memory to decode; replace the file, or scale it down"

_PLAIN_BYTES = 4 * 1024 * 1024
_PLAIN_PIXELS = 10_000_000
_PLAIN_SCANNED = 200_000_000
_PLAIN_EXIF = 32 * 1024
_PLAIN_SEGMENTS = 64
_STRIP = 1 << 20

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
    drawn on it after that, so that they are as legible as on a picture that was small from the beginning. A large or unusual
    file is decoded by a child process, under limits. Raises MediaError for what is missing, is no image, is truncated, has
    more than ``LARGEST_IMAGE`` pixels (seen in its header, before anything is decoded) or takes too much to decode; SpecError
    for ``max_pixels`` below 1.
    """
    if max_pixels is not None and max_pixels < 1:
        raise SpecError(f"max_pixels is {max_pixels}; an image needs at least 1 pixel.")
    name = "the image" if isinstance(source, bytes) else f"the image {Path(source).name!r}"
    data = source if isinstance(source, bytes) else read_image(Path(source))
    size = _dimensions(data, name)
    if _is_plain(data, size):
        try:
            decoded, whole = decode(io.BytesIO(data), max_pixels)
            image = decoded.copy() if decoded.format else decoded  # whose file and decoder go
        except MediaError as error:
            raise MediaError(name, error.reason) from error
    else:
        try:
            image, whole = _decoded_apart(data, name, max_pixels)
        except MediaError as error:
            large = size is not None and size[0] * size[1] > _PLAIN_PIXELS
            raise MediaError(name, DAMAGED_OR_LARGE if large and error.reason == DAMAGED else error.reason) from error
    if not marks:
        return image
    from benchmarks.media.set_of_mark import draw_marks

    return draw_marks(image, marks, *whole)


def decode(file: IO[bytes], max_pixels: int | None) -> tuple[PILImage, tuple[int, int]]:
    """The image in ``file`` as :func:`load_image` gives it, and its size before it was scaled down; in this process."""
    from PIL import Image, ImageOps

    file.seek(0)
    if (found := _format(file.read(16))) is None:
        raise MediaError(NAME, NO_IMAGE)
    file.seek(0)
    image: PILImage | None = None
    try:
        with warnings.catch_warnings():
            # Of Pillow's own, larger limit, and of odd metadata in files that can be read all the same.
            warnings.simplefilter("ignore")
            image = Image.open(file, formats=[found[0]])
            if image.width * image.height > LARGEST_IMAGE:
                raise MediaError(NAME, TOO_LARGE)
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
            rgb = _rgb(image)
    except (MediaError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise MediaError(NAME, TOO_LARGE) from error
    # A decoder that is given hostile bytes can raise anything.
    except Exception as error:
        large = image is not None and image.width * image.height > _PLAIN_PIXELS
        raise MediaError(NAME, DAMAGED_OR_LARGE if large else DAMAGED) from error
    size = fitting(rgb.width, rgb.height, max_pixels)
    del image
    return (rgb if size == rgb.size else rgb.resize(size, Image.Resampling.LANCZOS)), rgb.size


def _decoded_apart(data: bytes, name: str, max_pixels: int | None) -> tuple[PILImage, tuple[int, int]]:
    from PIL import Image

    image, whole, top = Image.new("RGB", (1, 1)), (1, 1), 0
    for fields, strip in read("image", name, data, max_pixels=max_pixels):
        if "size" in fields:
            image, whole = Image.new("RGB", tuple(fields["size"])), tuple(fields["whole"])
        else:
            rows = len(strip) // (3 * image.width)
            image.paste(Image.frombytes("RGB", (image.width, rows), strip), (0, top))
            top += rows
    return image, whole


def _dimensions(data: bytes, name: str) -> tuple[int, int] | None:
    """The size that a header of a known place declares, so that no decoder makes room for more; None where it is elsewhere."""
    if (found := _format(data)) is None:
        raise MediaError(name, NO_IMAGE)
    size = None
    if found[0] == "PNG" and data[12:16] == b"IHDR":
        size = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    elif found[0] == "GIF":
        size = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    elif found[0] == "WEBP" and data[12:16] == b"VP8X":
        size = int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    elif found[0] == "WEBP" and data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif found[0] == "WEBP" and data[12:16] == b"VP8 ":
        size = int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    elif found[0] == "BMP" and data[14:18] == b"\x28\0\0\0":
        size = int.from_bytes(data[18:22], "little"), abs(int.from_bytes(data[22:26], "little", signed=True))
    elif found[0] == "JPEG":
        size = _jpeg_size(data)
    if size is not None and size[0] * size[1] > LARGEST_IMAGE:
        raise MediaError(name, TOO_LARGE)
    return size


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """The size in the first frame header of a JPEG whose metadata are small; None for any other."""
    at = 2
    for _ in range(_PLAIN_SEGMENTS):
        marker, length = data[at : at + 2], int.from_bytes(data[at + 2 : at + 4], "big")
        if len(marker) < 2 or marker[0] != 0xFF or length < 2:
            return None
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 2 + length
    return None


def _is_plain(data: bytes, size: tuple[int, int] | None) -> bool:
    """Return whether a file is an ordinary one, which costs its decoder little whatever it holds: nearly all are.

    TIFF and large files are not, nor are a JPEG of very many scans and files with much metadata, which Pillow copies.
    """
    if size is None or len(data) > _PLAIN_BYTES or size[0] * size[1] > _PLAIN_PIXELS:
        return False
    if data.startswith(b"\xff\xd8") and data.count(b"\xff\xda") * size[0] * size[1] > _PLAIN_SCANNED:
        return False
    return (
        not any(mark in data for mark in (b"MPF\0", b"eXIf", b"EXIF", b"Raw profile type"))
        and _exif(data) <= _PLAIN_EXIF
    )


def _exif(data: bytes) -> int:
    """Bytes of a JPEG's EXIF segment."""
    at = data.find(b"Exif\0\0")
    return int.from_bytes(data[max(at - 2, 0) : at], "big") if at > 1 else 0


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

    if image.mode == "RGB" and not image.has_transparency_data:
        return image
    whole = Image.new("RGB", image.size)
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):  # strip by strip: there are never three whole copies
        whole.paste(_flat(image.crop((0, top, image.width, min(top + rows, image.height)))), (0, top))
    return whole


def _flat(image: PILImage) -> PILImage:
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
