"""MMMU (Yue et al., 2024): validation of six subjects; from a local folder also test, and every subject."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cmc_bench.cmc_constants import SUBJECTS
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow, existing_path, layout_error, requested_hub_id
from benchmarks.cmc_bench.sources.hub_rows import fetch_hub_files, read_hub_rows
from benchmarks.errors import SourceError
from benchmarks.rows.files import (
    RawRow,
    SkippedRow,
    image_loader,
    list_files,
    list_folders,
    read_rows,
    text_field,
)
from benchmarks.rows.reader_types import RowProblem
from benchmarks.values import compare

LAYOUT = (
    "a folder per subject with validation-*.parquet and test-*.parquet, such parquet files themselves, or rows in "
    ".jsonl or .json with options, answer and image_1 beside their images, or one such file"
)
_NAME = "mmmu"
_ID = re.compile(r"(?:dev|validation|test)_(\w+?)_\d+")
_LONGEST_OPTIONS = 100_000

UNKNOWN_ANSWER = "the answer is unknown"
NO_OPTION = "the answer's letter has no option"


def read(place: str) -> Iterator[SourceRow | SkippedRow]:
    """Yield the rows of MMMU in a folder, a file or a Hub data set. Raises SourceError."""
    for raw, subject in _raw_rows(place):
        yield raw if isinstance(raw, SkippedRow) else _row(raw, subject)


def parse_options(value: Any) -> tuple[str, ...]:
    """Return a row's options, given as a list, the text of a Python list, or a mapping from letters."""
    if isinstance(value, str):
        value = _literal(value)
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    if not isinstance(value, list | tuple):
        return ()
    return tuple(text_field({"option": option}, "option") for option in value)


def resolve_gold(answer: str, options: tuple[str, ...]) -> str:
    """Return the gold text: a letter's option, or without options the answer itself, the first of several.

    Raises RowProblem where the answer is unknown or has no option.
    """
    if answer == "?":
        raise RowProblem(UNKNOWN_ANSWER)
    if not options:
        answer_list = _literal(answer) if answer.startswith("[") else None
        return (
            text_field({"answer": answer_list[0]}, "answer")
            if isinstance(answer_list, list) and answer_list
            else answer
        )
    if len(answer) == 1 and "A" <= answer.upper() <= "Z":
        place = ord(answer.upper()) - ord("A")
        if place < len(options):
            return options[place]
        raise RowProblem(NO_OPTION)
    spelled = next((option for option in options if answer and compare(option, answer).verdict == "same"), None)
    if answer and spelled is None:
        raise RowProblem(NO_OPTION)
    return spelled or ""


def _literal(value: str) -> Any:
    if len(value) > _LONGEST_OPTIONS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes Python does not know
            return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _raw_rows(place: str) -> Iterator[tuple[RawRow | SkippedRow, str]]:
    if (data_set := requested_hub_id(_NAME, place)) is not None:
        # Of the test split no answer is public, so it is not downloaded.
        fetched = fetch_hub_files(data_set, [f"{subject}/validation-*" for subject in SUBJECTS], LAYOUT)
        for subject, files in zip(SUBJECTS, fetched, strict=True):
            yield from ((raw, subject) for raw in read_hub_rows(files, f"{subject}/validation", LAYOUT))
        return
    root = existing_path(_NAME, place, LAYOUT)
    local = _files(root)
    if not local:
        raise layout_error(_NAME, root, LAYOUT)
    folder = root.parent if root.is_file() else root
    for file in local:
        subject = "" if file.parent == folder else file.parent.name
        yield from ((raw, subject) for raw in read_rows(file, folder, _NAME))


def _files(root: Path) -> list[Path]:
    if root.is_file():
        if _is_training(root):
            raise SourceError(
                f"{root} is training data or MMMU's dev, which are never read; give a file of validation or test."
            )
        return [root]
    by_subject = [file for folder in list_folders(root) for file in list_files(folder, ".parquet")]
    for layout in (by_subject, list_files(root, ".parquet"), list_files(root, ".jsonl"), list_files(root, ".json")):
        evaluation = [file for file in layout if not _is_training(file)]
        if evaluation:
            return evaluation
    return []


def _is_training(file: Path) -> bool:
    return re.match(r"(?:dev|train)(?:\b|_)", file.name) is not None


def _row(raw: RawRow, subject: str) -> SourceRow | SkippedRow:
    options = parse_options(raw.fields.get("options"))
    named = _ID.fullmatch(text_field(raw.fields, "id"))
    try:
        answer = resolve_gold(text_field(raw.fields, "answer"), options)
        image = image_loader(raw, "image_1", "image")
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem))
    return SourceRow(
        source=_NAME,
        row=raw.where,
        family="mmmu",
        question=text_field(raw.fields, "question"),
        answer=answer,
        image=image,
        options=options,
        subject=text_field(raw.fields, "subject") or (named[1] if named else "") or subject,
        subfield=text_field(raw.fields, "subfield"),
    )
