"""The published folder: which files it has, their rows with their images, and options for rows that have none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import SourceError
from benchmarks.mmkc_bench import options
from benchmarks.mmkc_bench.constants import FILES
from benchmarks.mmkc_bench.example import Example
from benchmarks.mmkc_bench.sources.released_rows import examples
from benchmarks.rows.files import Loader, RawRow, RowProblem, SkippedRow, files, folders, image_loader, rows

PUBLISHED = "published"
LAYOUT = (
    "a folder with image/ and one or more of ER.json, IS.json, people_knowledge.json and logo_knowledge.json "
    "(`rashomon data get mmkc-bench` fetches it), or one of these files beside image/"
)

NO_DISTRACTOR = "no other row has an answer that could be the unrelated option"
TOO_FEW_IMAGES = "the row names one image, and its folder has no two others"

_IMAGES = "image"
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


@dataclass(frozen=True, slots=True)
class MMKCSourceRow:
    """An example as a source has it: ``row`` is where a person finds it, ``images`` give its pictures' bytes."""

    row: str
    example: Example
    images: tuple[Loader, ...]


def read(place: str, seed: int) -> Iterator[MMKCSourceRow | SkippedRow]:
    """The examples of a published folder, or of one of its files. Raises SourceError where it is neither."""
    for file in _files(place):
        root = _image_root(file)
        kinds = FILES[_stem(file)]
        yield from complete(_of_file(rows(file, file.parent, PUBLISHED, (root,)), kinds), seed)


def complete(
    found: Iterable[MMKCSourceRow | SkippedRow], seed: int, source: str = PUBLISHED
) -> Iterator[MMKCSourceRow | SkippedRow]:
    """The same, with four options for each row that has none: the unrelated one is true of another row of its sub-type."""
    every = list(found)
    answers: defaultdict[str, list[str]] = defaultdict(list)
    for each in every:
        if isinstance(each, MMKCSourceRow) and each.example.own_answer:
            answers[each.example.kind].append(each.example.own_answer)
    for each in every:
        if isinstance(each, SkippedRow) or not each.example.constructed_options:
            yield each
            continue
        made = _with_options(each.example, answers[each.example.kind], seed)
        yield SkippedRow(source, each.row, NO_DISTRACTOR) if made is None else replace(each, example=made)


def _with_options(example: Example, candidates: list[str], seed: int) -> Example | None:
    taken = (example.own_answer, *example.counter_answers)
    unrelated = options.distractor(example.id, taken, candidates, seed)
    if not unrelated:
        return None
    places = options.order(example.id, seed)
    letters = {place: "ABCD"[at] for at, place in enumerate(places)}
    answers = (*taken, unrelated)
    return replace(
        example,
        mcq_query=options.query(example.open_query, [answers[place] for place in places]),
        distractor=unrelated,
        own_letter=letters[0],
        counter_letters=(letters[1], letters[2]),
        distractor_letter=letters[3],
    )


def _of_file(found: Iterable[RawRow | SkippedRow], kinds: tuple[str, ...]) -> Iterator[MMKCSourceRow | SkippedRow]:
    for row in found:
        if isinstance(row, SkippedRow):
            yield row
            continue
        yield from of_row(row, kinds)


def of_row(row: RawRow, kinds: tuple[str, ...]) -> Iterator[MMKCSourceRow | SkippedRow]:
    """The examples of one row with the loaders of their images, and what of it cannot be used."""
    for made in examples(row.fields, kinds):
        if isinstance(made, RowProblem):
            yield SkippedRow(PUBLISHED, row.where, str(made))
            continue
        try:
            paths = made.paths if len(made.paths) == 3 else _with_neighbours(made.paths[0], row.folders)
            loaders = tuple(image_loader(replace(row, fields={"image": path}), "image") for path in paths)
        except RowProblem as problem:
            yield SkippedRow(PUBLISHED, row.where, str(problem))
            continue
        yield MMKCSourceRow(row.where, made, loaders)


def _with_neighbours(first: str, places: Iterable[Path]) -> tuple[str, ...]:
    """An image's path and those of the first two others in its folder, by name."""
    image_loader(RawRow("", {"image": first}, tuple(places)), "image")
    for place in places:
        others = [each for each in files((place / first).parent, *_PICTURES) if each.name != Path(first).name]
        if len(others) >= 2:
            return (first, *(each.relative_to(place).as_posix() for each in others[:2]))
    raise RowProblem(TOO_FEW_IMAGES)


def _files(place: str) -> list[Path]:
    path = Path(place).expanduser()
    try:
        there, is_file = path.exists(), path.is_file()
    except (OSError, ValueError):
        there = is_file = False
    if not there:
        raise SourceError(f"there is no folder {place}; mmkc-bench is read from {LAYOUT}.")
    if is_file:
        found = [path] if _stem(path) in FILES else []
    else:
        found = next((known for folder in (path, *folders(path)) if (known := _known(folder))), [])
    if not found:
        raise SourceError(f"{path} is nothing that mmkc-bench can be read from; expected {LAYOUT}.")
    return found


def _known(folder: Path) -> list[Path]:
    named = {_stem(file): file for file in reversed(files(folder, ".json"))}
    return [named[stem] for stem in FILES if stem in named]


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


def _image_root(file: Path) -> Path:
    """The folder that a row's ``image/...`` is looked for in: the file's, or the one above."""
    for folder in (file.parent, file.parent.parent):
        if (folder / _IMAGES).is_dir():
            return folder
    raise SourceError(f"there is no folder {_IMAGES} beside {file}; mmkc-bench is read from {LAYOUT}.")
