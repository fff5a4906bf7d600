"""Retrieval logs as tables of other programs: workbooks, configurations of promptfoo, and answers that are lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.retrieval.retrieval_log_row import LogRow
from benchmarks.retrieval.sources import read_source
from benchmarks.rows.cell_answers import FORMULA_ERROR, OBJECT
from benchmarks.rows.files import SkippedRow
from tests.support.data.small import picture
from tests.support.workbooks import Sheet, write_xlsx

NAMES = ["question", "passages", "images", "answer"]


def rows(place: Path | str) -> list[LogRow | SkippedRow]:
    return list(read_source("log", str(place)))


def log(folder: Path, **fields: Any) -> LogRow | SkippedRow:
    (folder / "0.png").write_bytes(picture(0))
    file = folder / "log.jsonl"
    line = {"question": "Which two crops tie?", "passages": ["Kale and rye tie."], "images": ["0.png"], **fields}
    file.write_text(json.dumps(line))
    (row,) = rows(file)
    return row


@pytest.mark.parametrize("name", ["answer", "image_answer", "text_answer"])
@pytest.mark.parametrize(
    ("value", "text"),
    [(["kale", "rye"], "kale, rye"), ("['kale', 'rye']", "kale, rye"), (43.0, "43"), (True, "Yes"), (None, "")],
)
def test_answers_are_read_as_those_of_tables(tmp_path: Path, name: str, value: object, text: str) -> None:
    row = log(tmp_path, **{name: value})
    assert isinstance(row, LogRow)
    assert getattr(row, name) == text


def test_an_answer_without_a_single_meaning_is_left_out(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [({"answer": {"a": 1}}, OBJECT), ({"passages": "#VALUE!"}, FORMULA_ERROR)]
    for fields, reason in cases:
        row = log(tmp_path, **fields)
        assert isinstance(row, SkippedRow)
        assert row.reason == reason


def test_a_workbook_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(picture(0))
    line = ["How much?", "It is 44.", "0.png", 43.0]
    book = {"First": Sheet([NAMES, line]), "Second": Sheet([NAMES, [*line[:3], 44.0]])}
    file = write_xlsx(tmp_path / "log.xlsx", book)
    for place, answer in ((file, "43"), (f"{file}#sheet=Second", "44")):
        (row,) = rows(place)
        assert isinstance(row, LogRow)
        assert (row.answer, row.passages) == (answer, ("It is 44.",))
    checked = get_benchmark("retrieval").check_rows(file, BuildOptions())
    assert checked.usable == 1
    assert any("Second" in remark for remark in checked.remarks)


def test_a_promptfoo_configuration_has_other_lists_too(tmp_path: Path) -> None:
    (tmp_path / "0.png").write_bytes(picture(0))
    test = {
        "vars": {"question": "How much?", "context": "It is 44.", "image": "0.png"},
        "assert": [{"type": "equals", "value": "43"}],
    }
    config = {"prompts": [{"raw": "{{question}}"}], "providers": [{"id": "openai:x"}], "tests": [test]}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    (row,) = rows(file)
    assert isinstance(row, LogRow)
    assert (row.question, row.answer) == ("How much?", "43")


def test_keys_that_are_not_read_are_named(tmp_path: Path) -> None:
    log(tmp_path, score=1, note="x")
    (remark,) = [
        r for r in get_benchmark("retrieval").check_rows(tmp_path / "log.jsonl", BuildOptions()).remarks if "score" in r
    ]
    assert "note" in remark


def test_passages_that_were_written_as_text_twice_are_a_list(tmp_path: Path) -> None:
    for passages in ("['a b', 'c d']", str([str(["a b", "c d"])]), ["a b", "c d"]):
        row = log(tmp_path, passages=passages)
        assert isinstance(row, LogRow)
        assert row.passages == ("a b", "c d")
