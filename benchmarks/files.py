"""Rows out of files: JSON, JSON lines, parquet, CSV, and the images they name. Everything in them may be hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
class Skipped:
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


def rows(file: Path, root: Path, source: str, places: Sequence[Path] = ()) -> Iterator[RawRow | Skipped]:
    """The rows of one .jsonl, .json, .parquet, .csv or .tsv file; ``places`` are where its images lie, else its own folder.

    A line of a .jsonl file that is not a JSON object is skipped. Raises SourceError for a file of another kind that cannot
    be read at all.
    """
    name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
    found = tuple(places) or tuple(dict.fromkeys((file.parent, root)))
    kind = file.suffix.lower()
    if kind == ".parquet":
        pairs: Iterable[tuple[int, Any]] = _parquet(file, name)
    elif kind == ".jsonl":
        pairs = json_lines(file)
    elif kind in (".csv", ".tsv"):
        from benchmarks.delimited import delimited_rows

        pairs = delimited_rows(file)
    else:
        pairs = _json(file, name)
    for number, fields in pairs:
        where = f"{name}:{number}"
        if isinstance(fields, dict):
            yield RawRow(where, fields, found)
        else:
            problem = fields if isinstance(fields, RowProblem) else RowProblem(NOT_JSON)
            yield Skipped(source, where, str(problem), problem.place)


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
        except (OSError, RuntimeError):  # too long a name, or links that lead in a circle
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


def json_lines(file: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a JSON-lines file that are not blank, numbered from 1; None for one that is not JSON.

    Raises SourceError where the file cannot be read.
    """
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _parsed(line.removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise SourceError(
            f"{file} cannot be read ({error.strerror}); check that it is there and may be read."
        ) from error


def _json(file: Path, name: str) -> Iterable[tuple[int, Any]]:
    try:
        whole = _parsed(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise SourceError(
            f"{file} cannot be read ({error.strerror}); check that it is there and may be read."
        ) from error
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


def _parquet(file: Path, name: str) -> Iterator[tuple[int, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        number = 0
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=32):
            for fields in batch.to_pylist():
                number += 1
                yield number, fields
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise SourceError(f"{name} is not a whole parquet file ({error.__class__.__name__}); get it again.") from error
