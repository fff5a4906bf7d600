"""Cells without a value that hold a placeholder, and answers that say that there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.retrieval.sources import read_source as read_log
from benchmarks.rows.cell_answers import PLACEHOLDER, UNANSWERABLE
from benchmarks.rows.files import NO_IMAGE, SkippedRow
from tests.support.data.small import picture

PLACEHOLDERS = [
    "n/a",
    "N.A.",
    "NA",
    "-",
    "–",
    "—",
    "TBD",
    "null",
    "NaN",
    "k. A.",
    "keine Angabe",
    "unknown",
    "...",
    "?",
]


def row(folder: Path, **fields: Any) -> SourceRow | SkippedRow:
    (folder / "0.png").write_bytes(picture(0))
    file = folder / "rows.jsonl"
    file.write_text(json.dumps({"image": "0.png", "question": "How much?", "answer": "43", **fields}))
    (read,) = read_source("rows", str(file))
    return read


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_placeholder_is_an_empty_cell_and_no_answer(tmp_path: Path, text: str) -> None:
    read = row(tmp_path, passage=text, conflict=text, document=text, group=text)
    assert isinstance(read, SourceRow)
    assert (read.passage, read.conflict, read.document, read.subject) == ("", "", "", "")
    left_out = row(tmp_path, answer=text)
    assert isinstance(left_out, SkippedRow)
    assert left_out.reason == PLACEHOLDER
    left_out = row(tmp_path, image=text)
    assert isinstance(left_out, SkippedRow)
    assert left_out.reason == NO_IMAGE


def test_an_option_is_no_placeholder(tmp_path: Path) -> None:
    for answer in ("N/A", "n/a", "C"):
        read = row(tmp_path, answer=answer, options=["43", "44", "N/A"])
        assert isinstance(read, SourceRow)
        assert read.answer == "N/A"


@pytest.mark.parametrize("answer", ["None", "Na", "Nan Goldin", "-5", "+", "Unknown Pleasures", "No", "Kappa", "0"])
def test_words_that_resemble_placeholders_are_answers(tmp_path: Path, answer: str) -> None:
    read = row(tmp_path, answer=answer)
    assert isinstance(read, SourceRow)
    assert read.answer == answer


@pytest.mark.parametrize(
    "answer", ["Not answerable", "['Not answerable']", "Not answerable or 0 or none", "Unanswerable"]
)
def test_an_answer_that_says_there_is_none_is_left_out(tmp_path: Path, answer: str) -> None:
    left_out = row(tmp_path, answer=answer)
    assert isinstance(left_out, SkippedRow)
    assert left_out.reason == UNANSWERABLE


def test_a_log_without_the_right_answer_may_say_so(tmp_path: Path) -> None:
    row(tmp_path)
    file = tmp_path / "log.jsonl"
    fields = {"images": ["0.png"], "passages": ["It is 44.", "-"], "question": "How much?", "answer": "n/a"}
    file.write_text(json.dumps(fields))
    (read,) = read_log("log", str(file))
    assert not isinstance(read, SkippedRow)
    assert (read.answer, read.passages) == ("", ("It is 44.",))
