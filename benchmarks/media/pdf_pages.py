"""Pages of PDF files as PNG images, rendered in the decoder process and cached by content."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from benchmarks.errors import MediaError
from benchmarks.extras import require_extra
from benchmarks.media.decoder_faults import is_decoder_fault
from benchmarks.media.image_files import image_suffix, read_image
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import DOTS_PER_INCH, LARGEST_PAGE
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

NAME = "the PDF"
NO_PDF = "is not a PDF; save it as one"
ENCRYPTED = "is encrypted; save it without a password"
DAMAGED = "is truncated or damaged; replace the file"
NO_PAGE = "has no page of this number; its first page is 1"

_SIGNATURE = b"%PDF-"
_HEADER = 1024
_POINTS = 72
_PASSWORD = 4
"""PDFium's error for a missing or wrong password."""
_LARGEST_PNG = 64 * 1024 * 1024
_MOST_CACHED = 4000
"""The number of cached pages from which the oldest are removed."""

_PLACE = re.compile(r"(?P<file>.+\.pdf)(?:#(?:page=)?(?P<page>[0-9]{1,7})|#page=[^#/]*)?", re.IGNORECASE | re.DOTALL)


def parse_page(text: str) -> tuple[str, int | None] | None:
    """Return the file and the page number of ``report.pdf#page=3``, or None for the name of another kind of file.

    The number is None if the text names no page, or something else in its place.
    """
    match = _PLACE.fullmatch(text)
    if match is None:
        return None
    return match["file"], int(match["page"]) if match["page"] else None


@dataclass(frozen=True, slots=True)
class PdfPage:
    """Loader of a page as PNG; pages are numbered from 1. It raises MediaError."""

    path: Path
    page: int

    def __call__(self) -> bytes:
        require_extra("pdf", "PDF files")
        status = self.path.stat() if self.path.exists() else None
        stamp = (status.st_size, status.st_mtime_ns) if status else (0, 0)
        return render_page(self.path, _file_digest(self.path, stamp), self.page)


def render_page(path: Path, sha256: str, page: int) -> bytes:
    """Return a page of the PDF with this digest as PNG, from the cache if it was rendered before. Raises MediaError."""
    from importlib.metadata import version

    name = f"{sha256}-{page}-{DOTS_PER_INCH}-{version('pypdfium2')}.png"
    folder = _cache_folder()
    try:
        cached = read_bytes(folder, name, limit=_LARGEST_PNG)
        if image_suffix(cached) == ".png":
            return cached
    except (OSError, UnsafeFileError):
        pass  # not rendered yet
    data = _encoded(_rendered(read_image(path, "PDF"), page))
    try:
        make_private(folder.parent)
        make_private(folder)
        _make_room(folder)
        replace_file(folder, name, data)
    except (OSError, UnsafeFileError):
        pass  # a cache that cannot be written costs a second rendering
    return data


@lru_cache(64)
def _file_digest(path: Path, stamp: tuple[int, int]) -> str:
    """Return the digest of a file; ``stamp`` is its size and time, so that a changed file is read again."""
    return hashlib.sha256(read_image(path, "PDF")).hexdigest()


def _rendered(data: bytes, page: int) -> PILImage:
    from PIL import Image

    image: PILImage | None = None
    top = 0
    for fields, payload in run_decoder("pdf", NAME, data, page=page):
        if image is None:
            width, height = map(int, fields["size"])
            image = Image.new("RGB", (width, height))
        if payload:
            rows = len(payload) // (3 * image.width)
            image.paste(Image.frombytes("RGB", (image.width, rows), payload), (0, top))
            top += rows
    if image is None:
        raise MediaError(NAME, DAMAGED)
    return image


def _encoded(image: PILImage) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def decode_page(file: IO[bytes], number: int) -> PILImage:
    """Return a page as an RGB image in this process, without forms, scripts or attachments being opened."""
    import pypdfium2

    data = file.read()
    if _SIGNATURE not in data[:_HEADER]:
        raise MediaError(NAME, NO_PDF)
    try:
        document = pypdfium2.PdfDocument(data)
        if not 1 <= number <= len(document):
            raise MediaError(NAME, NO_PAGE)
        page = document[number - 1]
        width, height = (min(max(side, 1.0), 1e6) for side in page.get_size())
        scale = min(DOTS_PER_INCH / _POINTS, (LARGEST_PAGE / (width * height)) ** 0.5)
        image: PILImage = page.render(scale=scale).to_pil().convert("RGB")
    except (MediaError, MemoryError):
        raise
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == _PASSWORD or "password" in str(error).lower()
        raise MediaError(NAME, ENCRYPTED if is_locked else DAMAGED) from error
    except Exception as error:
        if is_decoder_fault(error):
            raise
        raise MediaError(NAME, DAMAGED) from error
    return image


def _cache_folder() -> Path:
    return cache_folder() / "pdf-pages"


def _make_room(folder: Path) -> None:
    """Remove the oldest half of the cached pages if there are too many."""
    pages = [entry for entry in folder.iterdir() if entry.suffix == ".png"]
    if len(pages) < _MOST_CACHED:
        return
    for page in sorted(pages, key=lambda entry: entry.stat().st_mtime)[: _MOST_CACHED // 2]:
        page.unlink(missing_ok=True)
