"""Reasons why a file is no image that can be read, named by what it is instead."""

from __future__ import annotations

import re

NO_IMAGE = "is not a PNG, JPEG, GIF, WebP, BMP or TIFF image; convert it to one of them"
EMPTY = "is empty; copy or download it again"
ZEROS = "holds nothing but zeros; copy or download it again"
LFS_POINTER = "is a Git LFS pointer in place of the picture; run `git lfs pull`"
WEB_PAGE = "is a web page, not a picture; download the picture itself"
BASE64 = "is a picture as base64 text; decode it and save that"
TEXT = "is text, not a picture; download or save the picture again"
PDF = "is a PDF; name it as FILE.pdf#page=1, with its suffix"

_READ = 4096
_SIGNATURES = (
    (b"8BPS", "a Photoshop file"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL image"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"II+\x00", "a BigTIFF image"),
    (b"MM\x00+", "a BigTIFF image"),
    (b"II\xbc\x01", "a JPEG XR image"),
    (b"qoif", "a QOI image"),
    (b"%!PS", "a PostScript drawing"),
    (b"\xd7\xcd\xc6\x9a", "a WMF drawing"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x00\x05\x16\x07", "the metadata of a file of a Mac, without the file"),
)
_BASE64 = re.compile(rb"(data:image/[^,]{1,40},)|(iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]{20}")
_PAGE_TAGS = re.compile(rb"<(!doctype html|html|head|body|script)\b", re.IGNORECASE)
_SVG = re.compile(rb"<([a-z]{1,8}:)?svg\b", re.IGNORECASE)


def refusal(data: bytes) -> str:
    """Return why ``data``, which has no signature of an image format that is read, cannot be used, and what to do."""
    if not data:
        return EMPTY
    if not data[:_READ].strip(b"\0") and not data.strip(b"\0"):
        return ZEROS
    if b"%PDF-" in data[:1024]:
        return PDF
    if data[4:8] == b"ftyp":
        return f"is {_container(data)}; save the picture as PNG"
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return f"is {name}; save the picture as PNG"
    return _text_refusal(data[:_READ])


def _container(data: bytes) -> str:
    """Return the kind of an ISO media file by its brands."""
    size = int.from_bytes(data[:4], "big")
    brands = {data[8:12], *(data[at : at + 4] for at in range(16, min(size, 256), 4))}
    if brands & {b"avif", b"avis"}:
        return "an AVIF image"
    if brands & {b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"}:
        return "an HEIC photo"
    return "a video"


def _text_refusal(data: bytes) -> str:
    head = data
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            head = data.decode(encoding, "replace").encode(errors="replace")
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"version https://git-lfs"):
        return LFS_POINTER
    if head.startswith(b"<"):
        page, svg = _PAGE_TAGS.search(head), _SVG.search(head)
        if svg and (page is None or svg.start() < page.start()):
            return "is an SVG drawing; save the picture as PNG"
        if page:
            return WEB_PAGE
    if _BASE64.match(head):
        return BASE64
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return NO_IMAGE if control or _is_binary(head) else TEXT


def _is_binary(head: bytes) -> bool:
    """Return whether ``head`` is not UTF-8, apart from a character that its end cuts."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3
    return not head
