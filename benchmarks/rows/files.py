"""Readers of rows in JSON, JSON Lines, Parquet and CSV files, and of the images they name. Their contents may be hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from benchmarks.media import MISSING, read_image, shown_image
from benchmarks.media.pdf_pages import PdfPage, parse_page
from benchmarks.rows.json_rows import begins_with_list, read_json_rows
from benchmarks.rows.reader_types import NOT_UNICODE, Fields, RowProblem, is_unicode
from benchmarks.rows.text_lines import is_utf
from benchmarks.rows.workbook_rows import is_workbook, read_workbook_rows, split_sheet, workbook_remarks
from benchmarks.untrusted.finder_files import folder_entries

Loader = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class ImageFile:
    """Loader of an image in a file."""

    path: Path

    def __call__(self) -> bytes:
        return read_image(self.path)


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """Loader of an image that a row embeds."""

    data: bytes

    def __call__(self) -> bytes:
        return self.data


@dataclass(frozen=True, slots=True)
class ShownImage:
    """Loader of an image of a user's own, in the colours that a viewer shows; ``original`` loads the file as it is."""

    original: Loader

    def __call__(self) -> bytes:
        return shown_image(self.original())


def file_name(load: Loader) -> str:
    """Return the name of an image's file, with the page of a PDF; empty for an image inside the table."""
    original = load.original if isinstance(load, ShownImage) else load
    if isinstance(original, PdfPage):
        return f"{original.path.name}#page={original.page}"
    path = getattr(original, "path", None)  # also of a loader that was stored
    return Path(path).name if path else ""


OUTSIDE = "the image's path leaves the folder"
MISSING_IMAGE = f"the image {MISSING}"
FOLDER = "the image is a folder; name a file in it"
ADDRESS = "the image is an address of the network; save it as a file and name that"
NO_IMAGE = "the row has no image"
NO_PAGE_NAMED = "the PDF's page is missing; write it behind the file, as in report.pdf#page=3"
NOT_JSON = "the line is not a JSON object"


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A source row that was left out: its source, its location for a person to find it, and the reason.

    ``reason`` is one of a few fixed sentences, so that reasons can be counted; ``place`` is the file or line it refers to.
    """

    source: str
    row: str
    reason: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class RawRow:
    """An unprocessed row of a file. ``folders`` are searched in order for the images that it names.

    With ``anywhere``, images may also be outside these folders, which is for files that the user wrote.
    """

    where: str
    fields: Fields
    folders: tuple[Path, ...] = ()
    anywhere: bool = False


def list_files(folder: Path, *suffixes: str) -> list[Path]:
    """Return the files in ``folder`` that end in one of ``suffixes``, sorted by name, without hidden files."""
    try:
        files = [
            p
            for p in folder_entries(folder)
            if p.name.endswith(suffixes) and not p.name.startswith(".") and p.is_file()
        ]
    except OSError:
        return []
    return sorted(files, key=lambda p: p.name)


def list_folders(folder: Path) -> list[Path]:
    """Return the folders in ``folder``, sorted by name, without hidden folders."""
    try:
        folders = [p for p in folder_entries(folder) if p.is_dir() and not p.name.startswith(".")]
    except OSError:
        return []
    return sorted(folders, key=lambda p: p.name)


def read_rows(
    file: Path, root: Path, source: str, places: Sequence[Path] = (), *, anywhere: bool = False
) -> Iterator[RawRow | SkippedRow]:
    """Yield the rows of a .jsonl, .json, .yaml, .parquet, .csv or .tsv file, or of a workbook (.xlsx, .ods) or one sheet of it.

    A sheet is named as ``FILE.xlsx#sheet=NAME``. ``places`` are the folders of the images, by default the file's own folder and
    ``root``; with ``anywhere`` they may also be outside. Errors and rows name the file relative to ``root``. An unusable row is
    a SkippedRow. Raises SourceError if the file cannot be read at all.
    """
    name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
    image_folders = tuple(places) or tuple(dict.fromkeys((file.parent, root)))
    kind = file.suffix.lower()
    if kind == ".parquet":
        from benchmarks.rows.parquet_rows import parquet_rows

        pairs: Iterable[tuple[int, Any]] = parquet_rows(file, name)
    elif is_workbook(file):
        pairs = read_workbook_rows(*split_sheet(file), name)
    elif kind in (".csv", ".tsv"):
        from benchmarks.rows.csv_rows import read_csv_rows

        pairs = read_csv_rows(file)
    elif kind in (".yaml", ".yml"):
        from benchmarks.rows.yaml_rows import yaml_rows

        pairs = yaml_rows(file, name)
    else:
        pairs = read_json_rows(file, name)
    for number, fields in pairs:
        where = f"{name}:{number}"
        if (
            isinstance(fields, dict)
            and kind in (".json", ".jsonl", ".yaml", ".yml")
            and not is_unicode(json.dumps(fields, ensure_ascii=False))
        ):
            fields = RowProblem(NOT_UNICODE)
        if isinstance(fields, dict):
            yield RawRow(where, fields, image_folders, anywhere)
        else:
            problem = fields if isinstance(fields, RowProblem) else RowProblem(NOT_JSON)
            yield SkippedRow(source, where, str(problem), problem.place)


def file_remarks(file: Path) -> list[str]:
    """Return remarks on what of a table is read, and how: other sheets of a workbook, another encoding. Raises SourceError."""
    if file.suffix.lower() in (".csv", ".tsv") and not is_utf(file):
        return ["letters that are not UTF-8 are read as Windows-1252; save the table as CSV UTF-8 if some look wrong"]
    is_list = file.suffix.lower() in (".json", ".jsonl") and begins_with_list(file)
    if is_list or file.suffix.lower() in (".yaml", ".yml"):
        return ["the rows of a list are numbered by their places in it, not by their lines"]
    return workbook_remarks(file)


def text_field(fields: Fields, *names: str) -> str:
    """Return the first of the named fields that contains text or a number, as stripped text; "" if none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            value = str(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def image_loader(row: RawRow, *names: str) -> Loader:
    """Return a loader of the bytes of the image in the first of the named fields that has one.

    Raises RowProblem if none has one or its path leaves the row's folders. The loader raises MediaError.
    """
    for name in names:
        value = row.fields.get(name)
        if isinstance(value, dict):
            value = value.get("bytes") or value.get("path")
        if isinstance(value, bytes) and value:
            return ImageBytes(value)
        if isinstance(value, str) and value.strip():
            return (_any_loader if row.anywhere else _file_loader)(value.strip(), row.folders)
    raise RowProblem(NO_IMAGE)


def _file_loader(path: str, places: Iterable[Path]) -> Loader:
    """Return the loader of an image that must be inside one of ``places``."""
    if "://" in path:
        raise RowProblem(ADDRESS)
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or PureWindowsPath(path).drive or "\\" in path:
        raise RowProblem(OUTSIDE)
    for place in places:
        file = place / path
        try:
            if not file.resolve().is_relative_to(place.resolve()):
                raise RowProblem(OUTSIDE)
            if (page := _page_in(place, path)) is not None:
                if not page.path.resolve().is_relative_to(place.resolve()):
                    raise RowProblem(OUTSIDE)
                return page
            if file.is_file():
                return ImageFile(file)
        except (OSError, RuntimeError, ValueError):  # a name that is too long, circular links, a lone surrogate
            continue
    raise RowProblem(MISSING_IMAGE)


def _any_loader(path: str, places: Iterable[Path]) -> Loader:
    """Return the loader of an image with any path; relative paths start at ``places``."""
    if "://" in path:
        raise RowProblem(ADDRESS)
    first, folder = "", ""
    for spelling in dict.fromkeys((path, path.replace("\\", "/"))):  # Windows paths have backslashes
        for place in places:
            first = first or str(place / spelling)
            try:
                file = place / Path(spelling).expanduser()
                if (page := _page_in(place, spelling)) is not None:
                    return page
                if file.is_file():
                    return ImageFile(file)
                folder = folder or (str(file) if file.is_dir() else "")
            except (OSError, RuntimeError, ValueError):  # a name that is too long, an unknown home folder, NUL
                continue
    raise RowProblem(FOLDER, folder) if folder else RowProblem(MISSING_IMAGE, first)


def _page_in(folder: Path, text: str) -> PdfPage | None:
    """Return the loader of the page of an existing PDF file that ``text`` names; None for other files.

    Raises RowProblem for an existing PDF without a page number.
    """
    named = parse_page(text)
    if named is None:
        return None
    file = folder / Path(named[0]).expanduser()
    if not file.is_file():
        return None
    if named[1] is None:
        raise RowProblem(NO_PAGE_NAMED, text)
    return PdfPage(file, named[1])
