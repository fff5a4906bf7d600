"""Loading and checking of images: every file gives an RGB image or a MediaError."""

from __future__ import annotations

import hashlib
import io
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from benchmarks.errors import MediaError, SpecError
from benchmarks.media.decoder import run_decoder
from benchmarks.media.decoder_faults import is_decoder_fault
from benchmarks.media.limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read, open_regular
from benchmarks.vocabulary import Mark, Media

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

_Size = tuple[int, int]

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


def image_suffix(data: bytes) -> str | None:
    """Return the suffix (with its dot) of the image format whose signature ``data`` has; None for anything else."""
    image_format = _format(data)
    return image_format[1] if image_format else None


def read_image(path: Path, kind: str = "image") -> bytes:
    """Return the bytes of an image file. Raises MediaError if it is missing, unreadable or larger than 256 MiB.

    Errors call it a ``kind``.
    """
    name = f"the {kind} {path.name!r}"
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
    """Return the bytes of ``media``'s file. Raises MediaError if it is missing or its digest differs from its name."""
    noun = {"audio": "sound", "point_cloud": "3D model"}.get(media.modality, media.modality)
    name = f"the {noun} {path.name!r}"
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
    """Return the first frame of an image as RGB, rotated by its EXIF orientation and with alpha on white.

    An image of more than ``max_pixels`` is scaled down with its aspect ratio preserved; none is scaled up. ``marks`` are
    drawn after scaling, so that they are as legible as on an image of that size. A child process decodes large and unusual
    files under limits. Raises MediaError if the image is missing, not an image, truncated, larger than ``LARGEST_IMAGE``
    pixels (checked in the header, before decoding) or too expensive to decode; SpecError for ``max_pixels`` below 1.
    """
    if max_pixels is not None and max_pixels < 1:
        raise SpecError(f"max_pixels is {max_pixels}; an image needs at least 1 pixel.")
    name = "the image" if isinstance(source, bytes) else f"the image {Path(source).name!r}"
    data = source if isinstance(source, bytes) else read_image(Path(source))
    size = _dimensions(data, name)
    if _is_plain(data, size):
        try:
            decoded, full_size = decode(io.BytesIO(data), max_pixels)
            image = decoded.copy() if decoded.format else decoded  # releases the file and its decoder
        except MediaError as error:
            raise MediaError(name, error.reason) from error
    else:
        try:
            image, full_size = _decode_in_child(data, name, max_pixels)
        except MediaError as error:
            large = size is not None and size[0] * size[1] > _PLAIN_PIXELS
            raise MediaError(name, DAMAGED_OR_LARGE if large and error.reason == DAMAGED else error.reason) from error
    if not marks:
        return image
    from benchmarks.media.set_of_mark import draw_marks

    return draw_marks(image, marks, *full_size)


def decode(file: IO[bytes], max_pixels: int | None) -> tuple[PILImage, _Size]:
    """Return the image as :func:`load_image` does, and its size before scaling, in this process."""
    from PIL import Image, ImageOps

    file.seek(0)
    if (image_format := _format(file.read(16))) is None:
        raise MediaError(NAME, NO_IMAGE)
    file.seek(0)
    image: PILImage | None = None
    try:
        with warnings.catch_warnings():
            # Pillow warns of its own, larger limit and of odd metadata in readable files.
            warnings.simplefilter("ignore")
            image = Image.open(file, formats=[image_format[0]])
            if image.width * image.height > LARGEST_IMAGE:
                raise MediaError(NAME, TOO_LARGE)
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
            rgb = _rgb(image)
    except (MediaError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise MediaError(NAME, TOO_LARGE) from error
    # A decoder can raise anything for hostile bytes.
    except Exception as error:
        if is_decoder_fault(error):
            raise
        large = image is not None and image.width * image.height > _PLAIN_PIXELS
        raise MediaError(NAME, DAMAGED_OR_LARGE if large else DAMAGED) from error
    size = fit_size(rgb.width, rgb.height, max_pixels)
    del image
    return (rgb if size == rgb.size else rgb.resize(size, Image.Resampling.LANCZOS)), rgb.size


def _decode_in_child(data: bytes, name: str, max_pixels: int | None) -> tuple[PILImage, _Size]:
    from PIL import Image

    image, full_size, top = Image.new("RGB", (1, 1)), (1, 1), 0
    for fields, strip in run_decoder("image", name, data, max_pixels=max_pixels):
        if "size" in fields:
            image, full_size = Image.new("RGB", tuple(fields["size"])), tuple(fields["full_size"])
        else:
            rows = len(strip) // (3 * image.width)
            image.paste(Image.frombytes("RGB", (image.width, rows), strip), (0, top))
            top += rows
    return image, full_size


def _dimensions(data: bytes, name: str) -> _Size | None:
    """Return the size that the header declares, before a decoder allocates memory for it; None if it cannot be located.

    Raises MediaError for data that are not an image and for a size beyond ``LARGEST_IMAGE``.
    """
    if (image_format := _format(data)) is None:
        raise MediaError(name, NO_IMAGE)
    size = _SIZES[image_format[0]](data) if image_format[0] in _SIZES else None
    if size is not None and size[0] * size[1] > LARGEST_IMAGE:
        raise MediaError(name, TOO_LARGE)
    return size


def _png_size(data: bytes) -> _Size | None:
    if data[12:16] != b"IHDR":
        return None
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _gif_size(data: bytes) -> _Size:
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _webp_size(data: bytes) -> _Size | None:
    if data[12:16] == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if data[12:16] == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def _bmp_size(data: bytes) -> _Size | None:
    if data[14:18] != b"\x28\0\0\0":
        return None
    return int.from_bytes(data[18:22], "little"), abs(int.from_bytes(data[22:26], "little", signed=True))


def _jpeg_size(data: bytes) -> _Size | None:
    """Return the size in the first frame header of a JPEG with few metadata segments; None for any other."""
    at = 2
    for _ in range(_PLAIN_SEGMENTS):
        marker, length = data[at : at + 2], int.from_bytes(data[at + 2 : at + 4], "big")
        if len(marker) < 2 or marker[0] != 0xFF or length < 2:
            return None
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 2 + length
    return None


_SIZES: Mapping[str, Callable[[bytes], _Size | None]] = {
    "PNG": _png_size,
    "GIF": _gif_size,
    "WEBP": _webp_size,
    "BMP": _bmp_size,
    "JPEG": _jpeg_size,
}


def _is_plain(data: bytes, size: _Size | None) -> bool:
    """Return whether a file is cheap to decode whatever it contains, as nearly all files are.

    Not cheap are TIFF and large files, JPEG files with very many scans, and files with much metadata, which Pillow copies.
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
    """Return the size of a JPEG's EXIF segment in bytes."""
    at = data.find(b"Exif\0\0")
    return int.from_bytes(data[max(at - 2, 0) : at], "big") if at > 1 else 0


def image_size(data: bytes) -> _Size | None:
    """Return the width and height that an image's header states; None where it has no such header."""
    try:
        return _dimensions(data, NAME)
    except MediaError:
        return None


def pixel_digest(image: PILImage) -> str:
    """Return the sha256, in hex, of an RGB image's size and pixels, which is equal for equal images in different files."""
    sha256 = hashlib.sha256(f"{image.width}x{image.height}:".encode())
    sha256.update(image.tobytes())
    return sha256.hexdigest()


def _format(data: bytes) -> tuple[str, str] | None:
    """Return Pillow's name and the suffix of the format whose signature ``data`` has."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP", ".webp"
    return next((names for magic, names in _FORMATS.items() if data.startswith(magic)), None)


def _rgb(image: PILImage) -> PILImage:
    from PIL import Image

    if image.mode == "RGB" and not image.has_transparency_data:
        return image
    rgb = Image.new("RGB", image.size)
    rows = max(1, _STRIP // image.width)
    for top in range(0, image.height, rows):  # by strips, so that there are never three full copies
        rgb.paste(_flat(image.crop((0, top, image.width, min(top + rows, image.height)))), (0, top))
    return rgb


def _flat(image: PILImage) -> PILImage:
    """Return an image of any mode as RGB, with alpha on white."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        # Pillow clips 16 bits to 8 instead of scaling them.
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    white = Image.new("RGBA", layer.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, layer).convert("RGB")


def fit_size(width: int, height: int, max_pixels: int | None) -> tuple[int, int]:
    """Return the size of an image scaled down to at most ``max_pixels`` with its aspect ratio preserved; None leaves it."""
    if max_pixels is None or width * height <= max_pixels:
        return width, height
    scale = math.sqrt(max_pixels / (width * height))
    if min(width, height) * scale < 1:
        return (1, max_pixels) if width < height else (max_pixels, 1)
    return int(width * scale), int(height * scale)
