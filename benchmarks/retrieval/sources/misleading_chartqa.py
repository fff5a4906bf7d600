"""Misleading ChartQA: charts that mislead, each with an explanation that says what its data show.

Nothing is constructed: the image is the chart, whose careless reading is the published wrong answer, and the passage is the
published explanation, which is taken to give the published right answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.retrieval.retrieval_log_row import LogRow
from benchmarks.rows.files import RawRow, SkippedRow, image_loader, list_files, read_rows, text_field
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.sources import existing_path, layout_error

LAYOUT = "a folder with rows in .jsonl (question, options, correctAnswer, wrongDueToMisleaderAnswer, explanation) and the images"
NO_OPTION = "an answer is none of the options"
NO_EXPLANATION = "the row has no explanation"

_NAME = "misleading-chartqa"


def read(place: str) -> Iterator[LogRow | SkippedRow]:
    """Yield the rows of the set in a folder or a file. Raises SourceError."""
    root = existing_path(_NAME, place, LAYOUT)
    folder = root.parent if root.is_file() else root
    files = [root] if root.is_file() else list_files(root, ".jsonl")
    if not files:
        raise layout_error(_NAME, root, LAYOUT)
    for file in files:
        for raw in read_rows(file, folder, _NAME):
            yield raw if isinstance(raw, SkippedRow) else _row(raw)


def _row(raw: RawRow) -> LogRow | SkippedRow:
    try:
        options = _options(raw)
        right = options.get(text_field(raw.fields, "correctAnswer").upper())
        wrong = options.get(text_field(raw.fields, "wrongDueToMisleaderAnswer").upper())
        if right is None or wrong is None or right == wrong:
            raise RowProblem(NO_OPTION)
        explanation = text_field(raw.fields, "explanation")
        if not explanation:
            raise RowProblem(NO_EXPLANATION)
        image = image_loader(raw, "image")
    except RowProblem as problem:
        return SkippedRow(_NAME, raw.where, str(problem), problem.place)
    question = text_field(raw.fields, "question")
    printed = "\n".join(f"{letter}. {text}" for letter, text in options.items())
    return LogRow(
        _NAME,
        raw.where,
        f"{question}\n{printed}\n" if question else "",
        (explanation,),
        (image,),
        answer=right,
        group=text_field(raw.fields, "misleader"),
        image_answer=wrong,
        text_answer=right,
    )


def _options(raw: RawRow) -> dict[str, str]:
    options = raw.fields.get("options")
    if not isinstance(options, dict):
        raise RowProblem(NO_OPTION)
    return {str(letter).strip().upper(): str(text).strip() for letter, text in options.items()}
