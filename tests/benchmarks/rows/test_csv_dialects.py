"""CSV in the dialects and encodings that programs write, and rows that cannot be read."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rows.csv_rows import read_csv_rows
from benchmarks.rows.reader_types import RowProblem

NAMES = ["image", "question", "answer"]
HEADER = ",".join(NAMES)


def read(content: str | bytes) -> tuple[list[list[str]], dict[int, str]]:
    """Return the cells of the rows that are read, and the place of each row that is left out, by its number."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        rows = list(read_csv_rows(file))
    cells = [list(row.values()) for _, row in rows if not isinstance(row, RowProblem)]
    return cells, {number: row.place for number, row in rows if isinstance(row, RowProblem)}


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ('0.png,"a, ""b""?",5', ["0.png", 'a, "b"?', "5"]),
        (r'0.png,"a, \"b\"?",5', ["0.png", 'a, "b"?', "5"]),
        (r"0.png,a\, b?,5", ["0.png", "a, b?", "5"]),
        (r"charts\0.png,a?,5", [r"charts\0.png", "a?", "5"]),
        (r'"C:\charts\0.png","a, b",5', [r"C:\charts\0.png", "a, b", "5"]),
        ('0.png,Who said "no"?,5', ["0.png", 'Who said "no"?', "5"]),
        ('0.png,"No", said who?,5', None),
        ('0.png,"No" said who?,5', ["0.png", '"No" said who?', "5"]),
        ('"0.png","A 12" disc?","5"', ["0.png", 'A 12" disc?', "5"]),
        ('0.png, "a, b?", 5', ["0.png", "a, b?", "5"]),
        ('0.png,{"a":"b"},5', ["0.png", '{"a":"b"}', "5"]),
        ('0.png,"{""a"": ""b"", ""c"": 1}",5', ["0.png", '{"a": "b", "c": 1}', "5"]),
        ("0.png,a?", ["0.png", "a?"]),
        ("0.png,a?,5,,", ["0.png", "a?", "5"]),
        ("0.png,a, b?,5", None),
        ('0.png,"a?,5', None),
        ('0.png,"a" or "b, c"', None),
    ],
)
def test_a_row_is_read_as_it_is_meant_or_left_out_alone(row: str, cells: list[str] | None) -> None:
    rows, left_out = read(f"{HEADER}\n{row}\n1.png,next?,6\n")
    assert rows == [*([cells] if cells else []), ["1.png", "next?", "6"]]
    assert list(left_out) == ([] if cells else [2])
    assert all(place.startswith("line 2") for place in left_out.values())


@pytest.mark.parametrize("closing", ['2.png,c 14",7', '2.png,c,14"', '2.png,"c","14"'])
def test_an_open_quote_does_not_hide_the_rows_below(closing: str) -> None:
    rows, left_out = read(f'{HEADER}\n0.png,"12 inch?,5\n1.png,b?,6\n{closing}\n3.png,d?,8\n')
    assert [row[0] for row in rows if row[0] != "2.png"] == ["1.png", "3.png"]
    assert 2 in left_out


@pytest.mark.parametrize(
    "above",
    ["Charts of March, second draft\n", "\n\nCharts\n\n", "Made;yesterday\n", "sep=,\nCharts, all of them\n", ""],
)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_header_is_found_below_a_title(above: str, separator: str) -> None:
    header, row = separator.join(NAMES), separator.join(["0.png", "a?", "5"])
    rows, left_out = read(f"{above}{header}\n{row}\n")
    assert (rows, left_out) == ([["0.png", "a?", "5"]], {})


TEXT = f"{HEADER}\n0.png,Größe in €?,„Grünkohl“\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(encoding: str, end: str) -> None:
    rows, _ = read(TEXT.replace("\n", end).encode(encoding))
    assert rows == [["0.png", "Größe in €?", "„Grünkohl“"]]


def test_a_damaged_line_is_left_out_and_no_other() -> None:
    lines = [HEADER, "0.png,für?,5", "1.png,für?\udcfc,6", "2.png,Zoë?,7"]
    rows, left_out = read("\n".join(lines).encode(errors="surrogateescape"))
    assert [row[1] for row in rows] == ["für?", "Zoë?"]
    assert left_out == {3: "line 3"}


cells = st.text(st.characters(exclude_characters="\0\r\\", exclude_categories=["Cs"]), max_size=20)
tables = st.lists(st.tuples(cells, cells, cells), max_size=5)
QUOTING = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]


@given(
    tables,
    st.sampled_from(",;\t|"),
    st.sampled_from(QUOTING),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_table_in_any_dialect_is_read_back(
    table: list[tuple[str, str, str]], separator: str, quoting: int, doubled: bool, end: str, encoding: str
) -> None:
    """Line breaks are left out where they may look like rows: in cells with separators, or first and not quoted."""
    table = [(first.lstrip("\n"), second, third) for first, second, third in table]
    rows = [tuple(" ".join(c.split("\n")) if separator in c or end == "\r" else c for c in row) for row in table]
    escape = None if doubled and quoting != csv.QUOTE_NONE else "\\"
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=separator,
        quoting=quoting,  # type: ignore[arg-type]
        doublequote=doubled,
        escapechar=escape,
        lineterminator=end,
    )
    writer.writerows([NAMES, *rows])
    read_back, left_out = read(text.getvalue().encode(encoding))
    stripped = [[cell.strip() for cell in row] for row in rows]
    assert left_out == {}
    assert read_back == [row for row in stripped if any(row)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("\\\n0.png,a?,5\n", [["\\"], ["0.png", "a?", "5"]]),
        ("\\,\\,\\\n0.png,a?,5\n", [["\\", "\\", "\\"], ["0.png", "a?", "5"]]),
        ('"\\",,\n0.png,a?,5\n', [["\\", "", ""], ["0.png", "a?", "5"]]),
    ],
)
def test_a_backslash_does_not_swallow_the_next_row(lines: str, expected: list[list[str]]) -> None:
    assert read(f"{HEADER}\n{lines}") == (expected, {})
