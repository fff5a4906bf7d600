"""Answers that are the numbers of options, options in columns of their own, and pages that are counted from 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_own_rows import NOT_AN_OPTION
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.errors import UnknownKeysError
from benchmarks.registry import get_benchmark
from benchmarks.retrieval.sources import read_source as read_log
from benchmarks.rows.cell_answers import NO_OPTIONS
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.number_origin import PAGES_FROM_ZERO, UNCLEAR_NUMBER
from tests.support.data.small import picture

EGGS = ["Egg", "Larva", "Adult"]


def keys(folder: Path, *lines: dict[str, Any], mapping: str = "") -> list[str]:
    """Return the answer of each row, or the reason why it is left out."""
    file = folder / "rows.jsonl"
    (folder / "0.png").write_bytes(picture(0))
    file.write_text("\n".join(json.dumps({"image": "0.png", "question": "Which?", **line}) for line in lines))
    rows = list(read_source("rows", str(file), mapping=mapping))
    return [row.answer if isinstance(row, SourceRow) else row.reason for row in rows]


def numbered(options: list[str], *answers: object) -> list[dict[str, Any]]:
    return [{"options": options, "answer": answer} for answer in answers]


@pytest.mark.parametrize("kind", [int, float, str])
def test_numbers_are_the_places_of_options(tmp_path: Path, kind: Any) -> None:
    assert keys(tmp_path, *numbered(EGGS, kind(1), kind(2), kind(3))) == EGGS
    assert keys(tmp_path, *numbered(EGGS, kind(2), kind(1), kind(0))) == ["Adult", "Larva", "Egg"]


def test_a_number_that_is_no_place_throughout_is_left_out(tmp_path: Path) -> None:
    assert keys(tmp_path, *numbered(EGGS, 1, 4)) == [NOT_AN_OPTION] * 2
    assert keys(tmp_path, *numbered(EGGS, 0, 3)) == [NOT_AN_OPTION] * 2
    assert keys(tmp_path, *numbered(EGGS, 2, "B", "Adult")) == [NOT_AN_OPTION, "Larva", "Adult"]


def test_a_number_that_is_also_an_option_is_left_out(tmp_path: Path) -> None:
    for four in (["2", "4", "6", "8"], ["2 %", "4 %", "6 %"], ["$2", "$4"]):
        lines = [*numbered(EGGS, 1, 3), {"options": four, "answer": "2"}]
        assert keys(tmp_path, *lines) == ["Egg", "Adult", UNCLEAR_NUMBER]
    lines = [*numbered(EGGS, 1, 3), *numbered(["1", "2", "3"], 2)]
    assert keys(tmp_path, *lines) == ["Egg", "Adult", "2"]


def test_numbers_that_are_options_throughout_are_their_texts(tmp_path: Path) -> None:
    assert keys(tmp_path, *numbered(["2", "4", "6", "8"], "2", 4, "8")) == ["2", "4", "8"]
    assert keys(tmp_path, *numbered(["10", "20", "30"], 10, "20", 30.0)) == ["10", "20", "30"]


@pytest.mark.parametrize(
    ("header", "mapping"),
    [
        ("option1,option2,option3", ""),
        ("Option A,Option B,Option C", ""),
        ("choice_a,choice_b,choice_c", ""),
        ("Вариант 1,Вариант 2,Вариант 3", ""),
        ("1,2,3", ""),
        ("p1,p2,p3", "options=p1|p2 | p3"),
        ("gut,besser,Am Besten", "options=gut|besser|am besten"),
    ],
)
def test_options_in_columns_of_their_own(tmp_path: Path, header: str, mapping: str) -> None:
    (tmp_path / "0.png").write_bytes(picture(0))
    file = tmp_path / "rows.csv"
    file.write_text(f"image,question,answer,{header}\n0.png,Which?,2,Egg,Larva,Adult\n0.png,Which?,3,Egg,Larva,Adult\n")
    rows = list(read_source("rows", str(file), mapping=mapping))
    assert [row.answer for row in rows if isinstance(row, SourceRow)] == ["Larva", "Adult"]
    assert all(row.options == tuple(EGGS) for row in rows if isinstance(row, SourceRow))
    assert not any(
        "nothing is read" in r
        for r in get_benchmark("cmc-bench").check_rows(file, BuildOptions(mapping=mapping)).remarks
    )


def test_a_column_of_an_option_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownKeysError, match="p9"):
        keys(tmp_path, {"p1": "Egg", "p2": "Larva", "answer": "1"}, mapping="options=p1|p9")


def test_a_gap_between_options_keeps_the_places(tmp_path: Path) -> None:
    gap: dict[str, Any] = {"a": "Egg", "b": None, "c": "Adult", "d": "nan"}
    assert keys(tmp_path, gap | {"answer": "C"}, gap | {"answer": "A"}) == ["Adult", "Egg"]
    left_out = keys(tmp_path, gap | {"answer": "B"}, gap | {"answer": "D"})
    assert not {"", "Egg", "Adult", "nan"} & set(left_out)
    keys(tmp_path, gap | {"answer": "C"})
    (row,) = read_source("rows", str(tmp_path / "rows.jsonl"))
    assert isinstance(row, SourceRow)
    assert row.options == ("Egg", "Adult")


def test_choices_are_options(tmp_path: Path) -> None:
    choices = {"A": "Egg", "B": "Larva"}
    assert keys(tmp_path, {"choices": choices, "answer": "B"}, {"choices": EGGS, "answer": "C"}) == ["Larva", "Adult"]


def test_a_letter_without_options_is_no_answer_where_others_have_them(tmp_path: Path) -> None:
    lines = [*numbered(EGGS, "B"), {"answer": "B"}, {"options": "Egg", "answer": "(a)"}, {"answer": "kale"}]
    assert keys(tmp_path, *lines) == ["Larva", NO_OPTIONS, NO_OPTIONS, "kale"]
    assert keys(tmp_path, {"answer": "B"}) == ["B"]


def test_pages_that_are_counted_from_0_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.4\n")
    pages = [f"report.pdf#page={page}" for page in (3, 0, 1)]
    lines: list[dict[str, Any]] = [{"image": page, "answer": "43"} for page in pages]
    lines.append({"answer": "43"})
    assert keys(tmp_path, *lines) == [*[PAGES_FROM_ZERO] * 3, "43"]
    assert keys(tmp_path, lines[0], lines[2]) == ["43", "43"]
    log = tmp_path / "log.jsonl"
    for start in (0, 1):
        images = [[{"file": "report.pdf", "page": start + page}] for page in (4, 0)]
        log.write_text("\n".join(json.dumps({"question": "?", "passages": ["It."], "images": i}) for i in images))
        left_out = [row.reason for row in read_log("log", str(log)) if isinstance(row, SkippedRow)]
        assert left_out == [PAGES_FROM_ZERO] * 2 * (not start)
