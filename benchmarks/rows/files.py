"""Rows out of files: JSON, JSON lines, parquet, CSV, and the images they name. Everything in them may be hostile."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.media import MISSING, read_image

Fields = Mapping[str, Any]
Loader = Callable[[], bytes]

OUTSIDE = "the image's path leaves the folder"
MISSING_IMAGE = f"the image {MISSING}"
FOLDER = "the image is a folder; name a file in it"
ADDRESS = "the image is an address of the network; save it as a file and name that"
NO_IMAGE = "the row has no image"
NOT_JSON = "the line is not a JSON object"

NOT_UNICODE = "the text is not valid Unicode"

LARGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of JSON, or of a row of a table."""

LONG_LINE = f"the line is longer than {LARGEST_LINE // 1024**2} MiB"

LARGEST_JSON = 96 * 1024 * 1024
"""Bytes of a file that is one JSON list of rows."""

MOST_VALUES = 4_000_000
"""Of such a file, which is in memory as a whole."""


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A source row that was left out: which source, which row as a person would find it, and why.

    ``reason`` is one of a few sentences, so that reasons can be counted; ``place`` is the file or line it is about.
    """

    source: str
    row: str
    reason: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as it stands in a file; ``folders`` are where the images it names may lie, the first that has it wins.

    With ``anywhere`` its images may also lie outside of these: for a file that its own user names.
    """

    where: str
    fields: Fields
    folders: tuple[Path, ...] = ()
    anywhere: bool = False


class RowProblem(Exception):
    """Why a row is left out, and the file or line that this is about; caught where rows are read."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.place = place


def files(folder: Path, *suffixes: str) -> list[Path]:
    """The files in ``folder`` that end in one of ``suffixes``, sorted by name; hidden ones are left out."""
    try:
        found = [
            p for p in folder.iterdir() if p.name.endswith(suffixes) and not p.name.startswith(".") and p.is_file()
        ]
    except OSError:
        return []
    return sorted(found, key=lambda p: p.name)


def folders(folder: Path) -> list[Path]:
    """The folders in ``folder``, sorted by name; hidden ones are left out."""
    try:
        found = [p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]
    except OSError:
        return []
    return sorted(found, key=lambda p: p.name)


def rows(file: Path, root: Path, source: str, places: Sequence[Path] = ()) -> Iterator[RawRow | SkippedRow]:
    """The rows of one .jsonl, .json, .parquet, .csv or .tsv file; ``places`` are where its images lie, else its own folder.

    A line of a .jsonl file that is not a JSON object is skipped. Raises SourceError for a file of another kind that cannot
    be read at all.
    """
    name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
    found = tuple(places) or tuple(dict.fromkeys((file.parent, root)))
    kind = file.suffix.lower()
    if kind == ".parquet":
        from benchmarks.rows.parquet_rows import parquet_rows

        pairs: Iterable[tuple[int, Any]] = parquet_rows(file, name)
    elif kind == ".jsonl":
        pairs = json_lines(file)
    elif kind in (".csv", ".tsv"):
        from benchmarks.rows.csv_rows import delimited_rows

        pairs = delimited_rows(file)
    else:
        pairs = _json(file, name)
    for number, fields in pairs:
        where = f"{name}:{number}"
        if isinstance(fields, dict) and kind in (".json", ".jsonl") and not _is_unicode(fields):
            fields = RowProblem(NOT_UNICODE)
        if isinstance(fields, dict):
            yield RawRow(where, fields, found)
        else:
            problem = fields if isinstance(fields, RowProblem) else RowProblem(NOT_JSON)
            yield SkippedRow(source, where, str(problem), problem.place)


def text(fields: Fields, *names: str) -> str:
    """The first of the fields that holds text or a number, as stripped text; "" where none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            value = str(value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def image_loader(row: RawRow, *names: str) -> Loader:
    """A function that gives the bytes of the image in the first of the fields that holds one.

    Raises RowProblem where there is none or its path leaves the row's folders. The function raises MediaError.
    """
    for name in names:
        value = row.fields.get(name)
        if isinstance(value, dict):
            value = value.get("bytes") or value.get("path")
        if isinstance(value, bytes) and value:
            return partial(bytes, value)
        if isinstance(value, str) and value.strip():
            return (_any_loader if row.anywhere else _file_loader)(value.strip(), row.folders)
    raise RowProblem(NO_IMAGE)


def _file_loader(path: str, places: Iterable[Path]) -> Loader:
    parts = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in parts or PureWindowsPath(path).drive or "\\" in path:
        raise RowProblem(OUTSIDE)
    for place in places:
        file = place / path
        try:
            if not file.resolve().is_relative_to(place.resolve()):
                raise RowProblem(OUTSIDE)
            if file.is_file():
                return partial(read_image, file)
        except (OSError, RuntimeError, ValueError):  # too long a name, links in a circle, a lone surrogate
            continue
    raise RowProblem(MISSING_IMAGE)


def _any_loader(path: str, places: Iterable[Path]) -> Loader:
    if "://" in path:
        raise RowProblem(ADDRESS)
    looked, folder = "", ""
    for spelled in dict.fromkeys((path, path.replace("\\", "/"))):  # as Windows writes them
        for place in places:
            looked = looked or str(place / spelled)
            try:
                file = place / Path(spelled).expanduser()
                if file.is_file():
                    return partial(read_image, file)
                folder = folder or (str(file) if file.is_dir() else "")
            except (OSError, RuntimeError, ValueError):  # too long, no such home, NUL
                continue
    raise RowProblem(FOLDER, folder) if folder else RowProblem(MISSING_IMAGE, looked)


def open_source(file: Path) -> BufferedReader:
    """Open a file that a user or a data set names. Raise SourceError where it is no regular file or cannot be read.

    A pipe or a device is not waited for: sources are read more than once, and end.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name holds what no name may"
        raise SourceError(f"{file} cannot be read ({reason}); check that it is there and may be read.") from error
    raise SourceError(f"{file} is not a regular file; save what it gives in a file and name that.")


def json_lines(file: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a JSON-lines file that are not blank, numbered from 1; None for one that is not JSON, a RowProblem for one
    that is too long to be a row.

    Raises SourceError where the file cannot be read.
    """
    with open_source(file) as lines:
        for number, line in enumerate(iter(lambda: lines.readline(LARGEST_LINE + 1), b""), 1):
            if len(line) > LARGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = lines.readline(LARGEST_LINE)
                yield number, RowProblem(LONG_LINE)
            elif line.strip():
                yield number, _parsed(line.removeprefix(b"\xef\xbb\xbf"))


def _json(file: Path, name: str) -> Iterable[tuple[int, Any]]:
    with open_source(file) as stream:
        data = stream.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON or data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise SourceError(
            f"{name} is larger than {LARGEST_JSON // 1024**2} MiB or holds more than {MOST_VALUES // 10**6} million values; "
            "save it as JSON lines (.jsonl), which are read one by one."
        )
    whole = _parsed(data.removeprefix(b"\xef\xbb\xbf"))
    if isinstance(whole, dict):
        whole = next((whole[key] for key in ("data", "rows", "instances") if isinstance(whole.get(key), list)), None)
    if not isinstance(whole, list):
        raise SourceError(f"{name} is not a JSON list of rows; get the file again or remove it.")
    return enumerate(whole, 1)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _is_unicode(value: Any) -> bool:
    """Return whether a JSON value holds no lone surrogate, which JSON can write and no file can."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
