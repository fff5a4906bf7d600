"""The released folder: its files, their rows with images, and options for rows without any."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.mmkc_bench import mmkc_options
from benchmarks.mmkc_bench.mmkc_constants import DATASETS, RELEASED_FILES, ROW_TYPES
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.mmkc_bench.sources.mmkc_released_rows import parse_examples
from benchmarks.rows.files import (
    Loader,
    RawRow,
    SkippedRow,
    image_loader,
    list_files,
    list_folders,
    read_rows,
)
from benchmarks.rows.reader_types import RowProblem

PUBLISHED = "published"
LAYOUT = (
    "a folder with image/ and one or more of ER.json, IS.json, people_knowledge.json and logo_knowledge.json "
    "(`rashomon data get mmkc-bench` fetches it), or one of these files beside image/"
)

NO_DISTRACTOR = "no other row has an answer that could be the unrelated option"
TOO_FEW_IMAGES = "the row names one image, and its folder has no two others"

UNKNOWN_FILE = "a file of another name than the published ones is not read as a further type"

_IMAGES = "image"
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_TYPE_FIELDS = ("instance", "image_path", "mis_description")
"""Fields of a row of ER and VS, by which a file of another name is recognised as one of a further type."""
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


@dataclass(frozen=True, slots=True)
class MMKCSourceRow:
    """An example from a source: ``row`` is its place for a reader, ``images`` load its pictures' bytes."""

    row: str
    example: Example
    images: tuple[Loader, ...]


def read_released(place: str, seed: int) -> Iterator[MMKCSourceRow | SkippedRow]:
    """Yield the examples of a released folder, or of one of its files. Raises SourceError if it is neither."""
    for file in _files(place):
        root = _image_root(file)
        kinds = RELEASED_FILES.get(_stem(file), (_stem(file),))
        if _stem(file) not in RELEASED_FILES and (reason := _why_not_a_type(file)):
            yield SkippedRow(PUBLISHED, file.name, reason)
            continue
        yield from add_options(_file_rows(read_rows(file, file.parent, PUBLISHED, (root,)), kinds), seed)


def add_options(
    source_rows: Iterable[MMKCSourceRow | SkippedRow], seed: int, source: str = PUBLISHED
) -> Iterator[MMKCSourceRow | SkippedRow]:
    """Yield the rows, adding four options to those without any; the distractor is the answer of another row of the sub-type."""
    all_rows = list(source_rows)
    answers: defaultdict[str, list[str]] = defaultdict(list)
    for row in all_rows:
        if isinstance(row, MMKCSourceRow) and row.example.own_answer:
            answers[row.example.kind].append(row.example.own_answer)
    uses: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in all_rows:
        if isinstance(row, SkippedRow) or not row.example.constructed_options:
            yield row
            continue
        kind = row.example.kind
        example = _with_options(row.example, answers[kind], uses[kind], seed)
        yield SkippedRow(source, row.row, NO_DISTRACTOR) if example is None else replace(row, example=example)


def _with_options(example: Example, candidates: list[str], uses: Counter[int], seed: int) -> Example | None:
    taken_answers = (example.own_answer, *example.counter_answers)
    unrelated = mmkc_options.choose_distractor(example.id, taken_answers, candidates, uses, seed, example.open_query)
    if not unrelated:
        return None
    places = mmkc_options.option_order(example.id, seed)
    letters = {place: "ABCD"[at] for at, place in enumerate(places)}
    answers = (*taken_answers, unrelated)
    return replace(
        example,
        mcq_query=mmkc_options.format_query(example.open_query, [answers[place] for place in places]),
        distractor=unrelated,
        own_letter=letters[0],
        counter_letters=(letters[1], letters[2]),
        distractor_letter=letters[3],
    )


def _file_rows(raw_rows: Iterable[RawRow | SkippedRow], kinds: tuple[str, ...]) -> Iterator[MMKCSourceRow | SkippedRow]:
    for row in raw_rows:
        if isinstance(row, SkippedRow):
            yield row
            continue
        yield from read_row(row, kinds)


def read_row(row: RawRow, kinds: tuple[str, ...]) -> Iterator[MMKCSourceRow | SkippedRow]:
    """Yield the examples of one row with the loaders of their images, and the unusable ones as skipped."""
    for example in parse_examples(row.fields, kinds):
        if isinstance(example, RowProblem):
            yield SkippedRow(PUBLISHED, row.where, str(example))
            continue
        try:
            paths = example.paths if len(example.paths) == 3 else _with_neighbours(example.paths[0], row.folders)
            loaders = tuple(image_loader(replace(row, fields={"image": path}), "image") for path in paths)
        except RowProblem as problem:
            yield SkippedRow(PUBLISHED, row.where, str(problem))
            continue
        yield MMKCSourceRow(row.where, example, loaders)


def _with_neighbours(first: str, places: Iterable[Path]) -> tuple[str, ...]:
    """Return an image's path and those of the first two other images in its folder, by name."""
    image_loader(RawRow("", {"image": first}, tuple(places)), "image")
    for place in places:
        others = [file for file in list_files((place / first).parent, *_PICTURES) if file.name != Path(first).name]
        if len(others) >= 2:
            return (first, *(file.relative_to(place).as_posix() for file in others[:2]))
    raise RowProblem(TOO_FEW_IMAGES)


def _files(place: str) -> list[Path]:
    path = Path(place).expanduser()
    try:
        exists, is_file = path.exists(), path.is_file()
    except (OSError, ValueError):
        exists = is_file = False
    if not exists:
        raise SourceError(f"there is no folder {place}; mmkc-bench is read from {LAYOUT}.")
    if is_file:
        paths = [path] if _stem(path) in RELEASED_FILES else []
    else:
        paths = next((present for folder in (path, *list_folders(path)) if (present := _released_files(folder))), [])
    if not paths:
        raise SourceError(f"mmkc-bench cannot be read from {path}; expected {LAYOUT}.")
    return paths


def _released_files(folder: Path) -> list[Path]:
    """Return the files of a folder that has one of the known ones: these, and then those of other names."""
    named = {_stem(file): file for file in reversed(list_files(folder, ".json"))}
    known = [stem for stem in RELEASED_FILES if stem in named]
    return [named[stem] for stem in (*known, *sorted(set(named).difference(known)))] if known else []


def _why_not_a_type(file: Path) -> str:
    """Return why a file of an unknown name is not one of a further type, in the form of ER and VS; "" if it is."""
    stem = _stem(file)
    if not _TYPE_NAME.fullmatch(stem) or stem in (*DATASETS, *ROW_TYPES):
        return f"{UNKNOWN_FILE}: its name cannot be that of a type"
    try:
        first = next(iter(read_rows(file, file.parent, PUBLISHED)), None)
    except SourceError as error:
        return str(error)
    if not isinstance(first, RawRow):
        return f"{UNKNOWN_FILE}: its first row cannot be read"
    lacking = [name for name in _TYPE_FIELDS if name not in first.fields]
    return f"{UNKNOWN_FILE}: its first row has no {' and no '.join(lacking)}" if lacking else ""


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


def _image_root(file: Path) -> Path:
    """Return the folder that a row's ``image/...`` is relative to: the file's own, or the one above."""
    for folder in (file.parent, file.parent.parent):
        if (folder / _IMAGES).is_dir():
            return folder
    raise SourceError(f"there is no folder {_IMAGES} next to {file}; mmkc-bench is read from {LAYOUT}.")
