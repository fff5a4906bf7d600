"""Rows in JSON files of every layout that programs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import SourceError
from benchmarks.rows.files import NOT_JSON, RawRow, SkippedRow, read_rows
from benchmarks.rows.json_rows import REPEATED_KEY

ROWS: list[dict[str, Any]] = [
    {"image": "0.png", "question": "How much?", "answer": "7 €"},
    {"image": "1.png", "question": "Which?", "answer": ["Red", "Green"], "note": {"by": "[ann]"}},
]
LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
PRETTY = "\n".join(json.dumps(row, indent=2) for row in ROWS)


def read(folder: Path, content: str | bytes, name: str) -> list[RawRow | SkippedRow]:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_rows(file, folder, "rows"))


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=1),
        LINES,
        "\n" + LINES.replace("\n", "\r\n\r\n") + "\r\n",
        PRETTY,
        PRETTY.replace("\n}\n{", "\n},\n{"),
        "\ufeff" + LINES,
        LINES.encode("cp1252"),
        json.dumps(ROWS, ensure_ascii=False).encode("cp1252"),
        json.dumps(ROWS).encode("utf-16"),
        json.dumps({"version": 2, "tags": ["a"], "questions": ROWS}, indent=2),
        json.dumps({"meta": [{"a": 1}], "data": ROWS}, indent=2),
        json.dumps({"result": {"n": 2, "rows": ROWS}}, indent=2),
        json.dumps({"a1": ROWS[0], "a2": ROWS[1]}, indent=2),
    ],
)
def test_every_layout_holds_the_same_rows(tmp_path: Path, content: str | bytes, name: str) -> None:
    rows = read(tmp_path, content, name)
    assert [row.fields for row in rows if isinstance(row, RawRow)] == ROWS
    assert len(rows) == len(ROWS)


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
@pytest.mark.parametrize("bad", ['{"image": "2.png", "question": "cut', "nothing", '{"a": 1,}', "{" * 100_000])
def test_a_bad_line_is_named_and_left_out(tmp_path: Path, bad: str, name: str) -> None:
    first, left_out, last = read(tmp_path, LINES.replace("\n", f"\n{bad}\n"), name)
    assert isinstance(left_out, SkippedRow)
    assert (left_out.row, left_out.reason) == (f"{name}:2", NOT_JSON)
    assert [row.fields for row in (first, last) if isinstance(row, RawRow)] == ROWS


def test_a_bad_object_of_several_lines_is_left_out_alone(tmp_path: Path) -> None:
    bad = json.dumps(ROWS[0], indent=2).replace('"question"', "question")
    first, left_out, last = read(tmp_path, PRETTY.replace("\n}\n{", "\n}\n" + bad + "\n{"), "rows.json")
    assert isinstance(left_out, SkippedRow)
    assert left_out.row == "rows.json:6"
    assert [row.fields for row in (first, last) if isinstance(row, RawRow)] == ROWS


def test_one_object_is_one_row_even_with_lists_inside(tmp_path: Path) -> None:
    row = {"question": "Which?", "passages": [{"text": "a"}], "images": [{"file": "0.png"}], "answer": "a"}
    (read_row,) = read(tmp_path, json.dumps(row, indent=2), "rows.json")
    assert isinstance(read_row, RawRow)
    assert read_row.fields == row


def test_numbers_that_json_lacks_are_no_reason_to_refuse_a_file(tmp_path: Path) -> None:
    rows = read(tmp_path, LINES.replace('"7 €"', "NaN"), "rows.json")
    assert all(isinstance(row, RawRow) for row in rows)


@pytest.mark.parametrize("content", ["nothing", "", json.dumps({"a": ROWS, "b": ROWS})])
def test_a_file_without_rows_or_with_two_lists_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(SourceError):
        read(tmp_path, content, "rows.json")


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
@pytest.mark.parametrize("layout", ["{0}\n{0}", "[{0}, {0}]", '{{\n"data": [{0}, {0}]}}'])
@pytest.mark.parametrize("again", ['"answer": 8', '"Answer": 8', '" answer ": 8', '"more": {"a": 1, "a": 2}'])
def test_a_row_with_a_key_twice_is_left_out(tmp_path: Path, again: str, layout: str, name: str) -> None:
    row = f'{{"image": "0.png", "question": "How much?", "answer": 7, {again}}}'
    reasons = [row.reason for row in read(tmp_path, layout.format(row), name) if isinstance(row, SkippedRow)]
    assert reasons == [REPEATED_KEY] * 2


def test_a_table_by_its_columns_is_refused_with_the_way_to_write_it(tmp_path: Path) -> None:
    names = list(ROWS[0])
    cells = [[row[name] for name in names] for row in ROWS]
    for value in (
        {name: [row[name] for row in ROWS] for name in names},
        {name: {str(place): row[name] for place, row in enumerate(ROWS)} for name in names},
        {"columns": names, "index": [0, 1], "data": cells},
        {"columns": names, "rows": cells},
        [names, *cells],
    ):
        with pytest.raises(SourceError, match="orient="):
            read(tmp_path, json.dumps(value), "rows.json")


def test_one_object_of_objects_stays_one_row(tmp_path: Path) -> None:
    row = {"inputs": {"question": "How much?", "image": "0.png"}, "outputs": {"answer": "7", "contexts": ["x"]}}
    assert [r.fields for r in read(tmp_path, json.dumps(row), "row.json") if isinstance(r, RawRow)] == [row]
