"""Pictures as cells and keys hold them: files, pages of PDFs, base64, ``data:`` addresses, and the index of another row."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from urllib.parse import unquote

from benchmarks.media.pdf_pages import parse_page
from benchmarks.rows.files import NO_IMAGE, ImageBytes, Loader, RawRow, SkippedRow, image_loader
from benchmarks.rows.nested_keys import plain_names
from benchmarks.rows.reader_types import RowProblem, shortened
from benchmarks.rows.record_file import RecordFile

NOT_BASE64 = "the image is damaged base64; encode the file again, or save it and name that"
DATA_ADDRESS = "the image is a data: address without base64; save it as a file and name that"
SEVERAL_FILES = "several files have the image's name; write the name with its ending"
MANY_IMAGES = "the row has several images; write a row for each, or join them into one"

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")
_FOLDER_OF_NAMES = "images"
"""The folder beside a table where a picture that is named without its ending may be, as well as beside the table."""

_LONGEST_INDEX = 64
"""VLMEvalKit takes cells of at most as many characters for the index of another row, and longer ones for base64."""
_LONGEST_NAME = 255
_LONGEST_PLACE = 4_096
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_DATA = re.compile(r"data:[\w.+/-]*(?:;[\w=.+-]+)*?;base64,", re.IGNORECASE)
_DATA_ADDRESS = re.compile(r"data:[\w.+-]*[/;,]", re.IGNORECASE)
_LIST = re.compile(r"""\[\s*+(?:(?:'[^']*+'|"[^"]*+")\s*+,?+\s*+)++\]""")
_ITEM = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_FILE_KEYS = ("bytes", "path", "file", "image", "image_url", "url", "src")
_FILE_ADDRESS = re.compile(r"file://(?:localhost)?(?=/)", re.IGNORECASE)


def image_values(value: object) -> list[object]:
    """Return the images of a cell or key: the items of a list, also of one that is written as text, or the one that is there."""
    if isinstance(value, str) and value[:1] == "[" and _LIST.fullmatch(value.strip()):
        return [first or second for first, second in _ITEM.findall(value)]
    if isinstance(value, list | tuple):
        return [item for item in value if item not in (None, "")]
    return [] if value is None or value == "" else [value]


def one_image(row: RawRow, value: object) -> Loader:
    """Return the loader of the only image of a cell. Raises RowProblem for none or several, and as :func:`cell_image`."""
    values = image_values(value)
    if len(values) != 1:
        raise RowProblem(MANY_IMAGES if values else NO_IMAGE)
    return cell_image(row, values[0])


def cell_image(row: RawRow, value: object) -> Loader:
    """Return the loader of an image that ``row`` may name in every way that this module knows.

    Raises RowProblem if it is at none of these places, or base64 that cannot be decoded. The loader raises MediaError.
    """
    value = _content(value)
    if isinstance(value, str):
        text = value.strip()
        if address := _FILE_ADDRESS.match(text):
            text = unquote(text[address.end() :])
        name = _with_ending(text, row.folders)
        if name is None and (data := _embedded(text)) is not None:
            return ImageBytes(data)
        if name is None and _DATA_ADDRESS.match(text):
            raise RowProblem(DATA_ADDRESS)
        value = name or text
    try:
        return image_loader(RawRow(row.where, {"image": value}, row.folders, row.anywhere), "image")
    except RowProblem as problem:
        raise RowProblem(str(problem), shortened(problem.place, 300)) from None


def is_image(row: RawRow, value: object) -> bool:
    """Return whether a value is one or several images that are there."""
    try:
        return bool([cell_image(row, item) for item in image_values(value)])
    except RowProblem:
        return False


def page_number(value: object) -> int | None:
    """Return the number of the page of a PDF that an image is; None for other images."""
    value = _content(value)
    page = parse_page(value.strip()) if isinstance(value, str) and len(value) <= _LONGEST_PLACE else None
    return page[1] if page is not None else None


def _content(value: object) -> object:
    """Return the file or bytes of an image that is an object, with the page of a PDF behind the file."""
    page = None
    while isinstance(value, dict):
        inner = next((value[key] for key in _FILE_KEYS if value.get(key)), None)
        page, value = value.get("page", page), inner
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    is_page = isinstance(page, int) and not isinstance(page, bool) and isinstance(value, str)
    return f"{value}#page={page}" if is_page else value


def _embedded(text: str) -> bytes | None:
    """Return the bytes of base64, with or without ``data:`` before it; None for other texts. Raises RowProblem if damaged."""
    header = _DATA.match(text, 0, 200)
    encoded = text[header.end() :] if header else text
    if not header and (len(text) <= _LONGEST_INDEX or " " in text or not _BASE64.fullmatch(text)):
        return None
    encoded = "".join(encoded.split()).translate({ord("-"): "+", ord("_"): "/"})
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RowProblem(NOT_BASE64) from None


def _with_ending(name: str, folders: Iterable[Path]) -> str | None:
    """Return the name of the picture that ``name`` means, with its folder and its ending; None if there is none.

    Raises RowProblem for several that differ in their ending.
    """
    if not name or len(name) > _LONGEST_NAME or "://" in name or name.lower().endswith((*_SUFFIXES, ".pdf")):
        return None
    for folder, beside in product(folders, ("", _FOLDER_OF_NAMES)):
        try:
            if not beside and os.path.isfile(os.path.join(folder, name)):
                return name
            place = Path(beside) / name
            names = [f"{place}{ending}" for suffix in _SUFFIXES for ending in (suffix, suffix.upper())]
            files = {(folder / other).stat().st_ino: other for other in names if (folder / other).is_file()}
        except (OSError, RuntimeError, ValueError):  # a name that is too long, circular links, NUL
            continue
        if len(files) > 1:
            raise RowProblem(SEVERAL_FILES)
        if files:
            return next(iter(files.values()))
    return None


class ImageReferences:
    """The pictures of a file by the index of their row, in a temporary file; read when the first row refers to another."""

    def __init__(self, rows: Callable[[], Iterable[RawRow | SkippedRow]]) -> None:
        self._rows = rows
        self._stored = RecordFile()
        self._places: dict[str, tuple[int, int]] | None = None

    def resolved(self, value: object) -> object:
        """Return the picture of the row that a short ``value`` names by its index; another value as it is."""
        text = str(value).strip()
        if isinstance(value, list | dict) or len(text) > _LONGEST_INDEX:
            return value
        if self._places is None:
            self._places = dict(self._pictures())
        place = self._places.get(text)
        return self._stored.read_bytes(*place).decode() if place is not None else value

    def _pictures(self) -> Iterable[tuple[str, tuple[int, int]]]:
        for row in self._rows():
            if not isinstance(row, RawRow):
                continue
            fields = plain_names(row.fields)
            image = fields.get("image")
            if isinstance(image, str) and len(image.strip()) > _LONGEST_INDEX:
                yield str(fields.get("index")).strip(), self._stored.add_bytes(image.encode("utf-8", "replace"))
