"""Retrieval logs: JSON lines of a question, the passages and page images retrieved for it, and optionally the right answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.errors import SourceError, did_you_mean
from benchmarks.retrieval.constants import COLUMN_NAMES, LONGEST_PASSAGE, LONGEST_PASSAGES, MOST_IMAGES, MOST_PASSAGES
from benchmarks.retrieval.log_row import LogRow
from benchmarks.rows.base import Fields, RowProblem, check_cluster, trust_field
from benchmarks.rows.files import Loader, RawRow, ShownImage, SkippedRow, image_loader, read_rows, text_field
from benchmarks.rows.sources import existing_path, layout_error

LAYOUT = (
    'a .jsonl file, one {"question": ..., "passages": [...], "images": ["page.png", "report.pdf#page=3"], "answer": ...} '
    "a line"
)
NO_PASSAGES = "the row has no passages"
NO_IMAGES = "the row has no images"
NOT_A_LIST = "passages and images are lists of texts"
LONG_PASSAGE = f"a passage is longer than {LONGEST_PASSAGE:,} characters, or all are longer than {LONGEST_PASSAGES:,}"
MANY = f"the row has more than {MOST_PASSAGES} passages or {MOST_IMAGES} images"

_NAME = "log"
_KINDS = (".jsonl", ".json", ".parquet")
_TEXT_KEYS = ("text", "passage", "content")
_IMAGE_KEYS = ("image", "file", "path")


def read(place: str, cluster: str = "") -> Iterator[LogRow | SkippedRow]:
    """Yield the rows of a log, whose documents the key ``cluster`` names if it is none of the known ones.

    Raises SourceError for a file that is no log, or in which every line has other keys.
    """
    file = existing_path(_NAME, place, LAYOUT)
    if not file.is_file() or not file.name.lower().endswith(_KINDS):
        raise layout_error(_NAME, file, LAYOUT)
    rows, named = 0, ""
    for raw in read_rows(file, file.parent, _NAME):
        rows += 1
        if isinstance(raw, SkippedRow):
            yield raw
            continue
        fields = {str(name).strip().lower(): value for name, value in raw.fields.items()}
        if rows == 1:
            _check_keys(file, fields)
            named = check_cluster(cluster, fields, file)
        yield _row(replace(raw, fields=fields, anywhere=True), named)
    if not rows:
        raise SourceError(f"there are no rows in {file.name}; write one line for each question.")


def _check_keys(file: Path, fields: Fields) -> None:
    """Raise SourceError if a log's first line lacks a required key."""
    known = {name for names in COLUMN_NAMES.values() for name in names}
    unknown = set(fields) - known
    for needed in ("question", "passages", "images"):
        if not set(COLUMN_NAMES[needed]) & set(fields):
            raise SourceError(
                f"the first line of {file.name} has no key {needed!r}, but {', '.join(map(repr, list(fields)[:12])) or 'none'}; "
                f"{did_you_mean(needed, sorted(unknown)) if unknown else 'write it.'} Expected {LAYOUT}."
            )


def _row(raw: RawRow, cluster: str) -> LogRow | SkippedRow:
    fields = raw.fields
    try:
        passages = _passages(fields)
        images = _images(raw)
        trust = trust_field(fields)
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    return LogRow(
        _NAME,
        raw.where,
        text_field(fields, *COLUMN_NAMES["question"]),
        passages,
        images,
        answer=_answer(fields, "answer"),
        group=text_field(fields, *COLUMN_NAMES["group"]),
        image_answer=_answer(fields, "image_answer"),
        text_answer=_answer(fields, "text_answer"),
        document=text_field(fields, *([cluster] if cluster else COLUMN_NAMES["document"])),
        trust=trust,
    )


def _values(fields: Fields, name: str) -> Sequence[object]:
    """Return the values of a list, or the one that stands there without brackets."""
    value = next((fields[key] for key in COLUMN_NAMES[name] if fields.get(key)), None)
    if value is None:
        return ()
    return value if isinstance(value, list) else [value]


def _passages(fields: Fields) -> tuple[str, ...]:
    texts = []
    for value in _values(fields, "passages"):
        text = next((value[key] for key in _TEXT_KEYS if key in value), None) if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise RowProblem(NOT_A_LIST)
        if text.strip():
            texts.append(text)
    if not texts:
        raise RowProblem(NO_PASSAGES)
    if max(map(len, texts)) > LONGEST_PASSAGE or sum(map(len, texts)) > LONGEST_PASSAGES:
        raise RowProblem(LONG_PASSAGE)
    if len(texts) > MOST_PASSAGES:
        raise RowProblem(MANY)
    return tuple(texts)


def _images(raw: RawRow) -> tuple[Loader, ...]:
    values = _values(raw.fields, "images")
    if not values:
        raise RowProblem(NO_IMAGES)
    if len(values) > MOST_IMAGES:
        raise RowProblem(MANY)
    loaders = (image_loader(replace(raw, fields={"image": _image_name(value)}), "image") for value in values)
    return tuple(map(ShownImage, loaders))


def _image_name(value: object) -> object:
    """Return an image as :func:`image_loader` takes it: a name, with the page of a PDF behind it, or bytes."""
    if not isinstance(value, dict) or isinstance(value.get("bytes"), bytes):
        return value
    name = next((value[key] for key in _IMAGE_KEYS if isinstance(value.get(key), str)), None)
    page = value.get("page")
    return f"{name}#page={page}" if name and isinstance(page, int) and not isinstance(page, bool) else name


def _answer(fields: Fields, name: str) -> str:
    names = COLUMN_NAMES[name]
    yes_no = {True: "Yes", False: "No"}
    values = {key: fields.get(key) for key in names}
    return text_field({key: yes_no[v] if isinstance(v, bool) else v for key, v in values.items()}, *names)
