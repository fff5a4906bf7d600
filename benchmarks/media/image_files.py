"""Loading and checking of image files under limits: every file gives an RGB image or a MediaError."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from benchmarks.errors import MediaError, SpecError
from benchmarks.media.image_pixels import (
    DAMAGED,
    DAMAGED_OR_LARGE,
    NAME,
    PLAIN_PIXELS,
    TOO_LARGE,
    Decoded,
    Size,
    decode,
    file_format,
)
from benchmarks.media.image_refusal import refusal
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import LARGEST_FILE, LARGEST_IMAGE
from benchmarks.untrusted.safe_files import UnsafeFileError, open_read, open_regular
from benchmarks.vocabulary import Mark, Media

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

MISSING = "is missing; put the file in its place"
UNSAFE = "is no regular file of its build; build it again"
CHANGED = "is not the one that was built; build it again"

_PLAIN_BYTES = 4 * 1024 * 1024
_PLAIN_SCANNED = 200_000_000
_PLAIN_EXIF = 32 * 1024
_PLAIN_SEGMENTS = 64

_COLOUR_MARKS = (b"iCCP", b"gAMA", b"ICC_PROFILE\0", b"ICCP")
"""Marks of a PNG, JPEG or WebP file that may need colour management."""


def image_suffix(data: bytes) -> str | None:
    """Return the suffix (with its dot) of the image format whose signature ``data`` has; None for anything else."""
    image_format = file_format(data)
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
    """Return the first picture of an image file as RGB, as a viewer shows it, rotated by its EXIF orientation.

    Transparent parts are laid on white, or on black or grey if the drawing would not be seen on white; levels of more than
    8 bits are scaled to those that the file uses where it leaves the range open, or would be too dark to see.

    An image of more than ``max_pixels`` is scaled down with its aspect ratio preserved; none is scaled up. ``marks`` are
    drawn after scaling, so that they are as legible as on an image of that size. A child process decodes large and unusual
    files under limits. Raises MediaError if the image is missing, not an image, truncated, larger than ``LARGEST_IMAGE``
    pixels (checked in the header, before decoding) or too expensive to decode; SpecError for ``max_pixels`` below 1.
    """
    if max_pixels is not None and max_pixels < 1:
        raise SpecError(f"max_pixels is {max_pixels}; an image needs at least 1 pixel.")
    name = NAME if isinstance(source, bytes) else f"the image {Path(source).name!r}"
    decoded = _decoded(source if isinstance(source, bytes) else read_image(Path(source)), name, max_pixels)
    if not marks:
        return decoded.image
    from benchmarks.media.set_of_mark import draw_marks

    return draw_marks(decoded.image, marks, *decoded.full_size)


def examine_image(data: bytes) -> Decoded:
    """Return an image as :func:`load_image` does, with notes and warnings about it. Raises MediaError."""
    return _decoded(data, NAME, None)


def shown_image(data: bytes) -> bytes:
    """Return an image file whose plain pixels are what a viewer shows, for a build of a user's own images.

    That is ``data``, unless it has a colour profile or gamma other than sRGB's, or is a negative: then a PNG. Raises
    MediaError.
    """
    _dimensions(data, NAME)
    if not data.startswith((b"II", b"MM")) and not any(mark in data for mark in _COLOUR_MARKS):
        return data
    decoded = _decode_in_child(data, NAME, None, managed=True)
    if not decoded.converted:
        return data
    file = io.BytesIO()
    decoded.image.save(file, "PNG")
    return file.getvalue()


def _decoded(data: bytes, name: str, max_pixels: int | None) -> Decoded:
    size = _dimensions(data, name)
    try:
        if not _is_plain(data, size):
            return _decode_in_child(data, name, max_pixels)
        decoded = decode(io.BytesIO(data), max_pixels)
    except MediaError as error:
        large = size is not None and size[0] * size[1] > PLAIN_PIXELS
        raise MediaError(name, DAMAGED_OR_LARGE if large and error.reason == DAMAGED else error.reason) from error
    image = decoded.image.copy() if decoded.image.format else decoded.image  # releases the file and its decoder
    return replace(decoded, image=image)


def _decode_in_child(data: bytes, name: str, max_pixels: int | None, *, managed: bool = False) -> Decoded:
    from PIL import Image

    decoded, top = Decoded(Image.new("RGB", (1, 1)), (1, 1)), 0
    for fields, strip in run_decoder("image", name, data, max_pixels=max_pixels, managed=managed):
        if "size" in fields:
            image = Image.new("RGB", tuple(fields["size"]))
            texts = tuple(fields["notes"]), tuple(fields["warnings"])
            decoded = Decoded(image, tuple(fields["full_size"]), *texts, converted=fields["converted"])
        else:
            rows = len(strip) // (3 * decoded.image.width)
            decoded.image.paste(Image.frombytes("RGB", (decoded.image.width, rows), strip), (0, top))
            top += rows
    return decoded


def _dimensions(data: bytes, name: str) -> Size | None:
    """Return the size that the header declares, before a decoder allocates memory for it; None if it cannot be located.

    Raises MediaError for data that are not an image and for a size beyond ``LARGEST_IMAGE``.
    """
    if (image_format := file_format(data)) is None:
        raise MediaError(name, refusal(data))
    size = _SIZES[image_format[0]](data) if image_format[0] in _SIZES else None
    if size is not None and size[0] * size[1] > LARGEST_IMAGE:
        raise MediaError(name, TOO_LARGE)
    return size


def _png_size(data: bytes) -> Size | None:
    if data[12:16] != b"IHDR":
        return None
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _gif_size(data: bytes) -> Size:
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _webp_size(data: bytes) -> Size | None:
    if data[12:16] == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if data[12:16] == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def _bmp_size(data: bytes) -> Size | None:
    if data[14:18] != b"\x28\0\0\0":
        return None
    return int.from_bytes(data[18:22], "little"), abs(int.from_bytes(data[22:26], "little", signed=True))


def _jpeg_size(data: bytes) -> Size | None:
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


_SIZES: Mapping[str, Callable[[bytes], Size | None]] = {
    "PNG": _png_size,
    "GIF": _gif_size,
    "WEBP": _webp_size,
    "BMP": _bmp_size,
    "JPEG": _jpeg_size,
}


def _is_plain(data: bytes, size: Size | None) -> bool:
    """Return whether a file is cheap to decode whatever it contains, as nearly all files are.

    Not cheap are TIFF and large files, JPEG files with very many scans, and files with much metadata, which Pillow copies.
    """
    if size is None or len(data) > _PLAIN_BYTES or size[0] * size[1] > PLAIN_PIXELS:
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


def image_size(data: bytes) -> Size | None:
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
