"""PDF files: one of pictures, and ones that no reader may open or that cost a reader too much."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from PIL import Image


def write_pdf(file: Path, pictures: Sequence[Path]) -> Path:
    """Write a PDF with a picture on each page."""
    first, *others = (Image.open(picture).convert("RGB") for picture in pictures)
    first.save(file, "PDF", save_all=True, append_images=others)
    return file


def picture_pdf(pages: int = 1, size: tuple[int, int] = (72, 36)) -> bytes:
    """Return a PDF of plain pages, each of another colour."""
    first, *others = (Image.new("RGB", size, (40 * page % 256, 10, 200)) for page in range(pages))
    buffer = io.BytesIO()
    first.save(buffer, "PDF", save_all=True, append_images=others)
    return buffer.getvalue()


def raw_pdf(content: bytes, *, box: str = "0 0 100 100", trailer: str = "") -> bytes:
    """Return a PDF of one page with a compressed content stream."""
    stream = zlib.compress(content)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R>>".encode(),
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream),
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj%b endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = f"trailer<</Size 5/Root 1 0 R{trailer}>>\nstartxref\n{len(data)}\n%%EOF".encode()
    return data + b"xref\n0 5\n0000000000 65535 f \n" + table + end


def encrypted_pdf() -> bytes:
    """Return a PDF whose user password is not empty."""
    owner, user = "41" * 32, "42" * 32
    return raw_pdf(
        b"",
        trailer=f"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{owner}>/U<{user}>>>",
    )
