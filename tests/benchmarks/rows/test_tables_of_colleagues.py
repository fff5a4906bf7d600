"""Tables as colleagues hand them over: each row's answer as they would read it, or None where they would ask back."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.rows.files import RawRow, read_rows
from tests.support.data.small import picture
from tests.support.workbooks import Cell, Sheet, ods_cell, write_ods, write_xlsx

H = "image,question,answer"
N = ["image", "question", "answer"]


def ods(*rows: list[str]) -> dict[str, list[list[str]]]:
    return {
        "S": [
            [ods_cell(name) for name in N],
            *([ods_cell(cell) if "<" not in cell else cell for cell in row] for row in rows),
        ]
    }


CSV: dict[str, tuple[str | bytes, list[str | None]]] = {
    "excel-de.csv": (
        "Image;Question;Answer\r\n0.png;Wie hoch?;1.204,5\r\n1.png;Wie viel?;7,4 %\r\n".encode("cp1252"),
        ["1.204,5", "7,4 %"],
    ),
    "mac.csv": (f"{H}\r0.png,a?,5\r1.png,b?,6\r", ["5", "6"]),
    "bom-tabs.csv": ("\ufeffimage\tquestion\tanswer\n0.png\ta, b?\t5\n", ["5"]),
    "utf16.csv": ("image;question;answer\n0.png;für?;5 €\n".encode("utf-16"), ["5 €"]),
    "utf16le.tsv": ("image\tquestion\tanswer\n0.png\tfür?\t5 €\n".encode("utf-16-le"), ["5 €"]),
    "title.csv": (f"Evaluation of March\n\n{H}\n0.png,a?,5\n", ["5"]),
    "two-titles.csv": (f"Team A, Berlin\nMade on,2024-03-09\n{H}\n0.png,a?,5\n", ["5"]),
    "total.csv": (f"{H}\n0.png,a?,5\n,,\nSum,,5\n", ["5", None]),
    "inch.csv": (f'{H}\n0.png,Which 12" disc?,5\n1.png,"The 7"" one?",6\n', ["5", "6"]),
    "stray.csv": (f'{H}\n0.png,"How tall is the 12 inch?,5\n1.png,b?,6\n2.png,c?,7\n', [None, "6", "7"]),
    "mysql.csv": (f'{H}\n"0.png","Who said \\"no\\", then left?","Ann"\n', ["Ann"]),
    "json-cell.csv": (
        f'{H},meta\n0.png,a?,5,"{{""page"": 1, ""doc"": ""x""}}"\n1.png,b?,6,{{"a":1,"b":2}}\n',
        ["5", None],
    ),
    "multi-line.csv": (f'{H}\n0.png,"Which of these:\n- kale\n- rye","kale"\n', ["kale"]),
    "blank-lines.csv": (f"{H}\n\n\n0.png,a?,5\n\n;;\n1.png,b?,6\n", ["5", None, "6"]),
    "ragged.csv": (f"{H},note\n0.png,a?,5\n1.png,b?,6,x,,,\n2.png,c?,7,x,y\n", ["5", "6", None]),
    "bars.csv": ("image|question|answer\n0.png|a, b; c?|5\n", ["5"]),
    "sep.csv": ("sep=;\nimage;question;answer\n0.png;a, b?;5\n", ["5"]),
    "quoted-header.csv": ('"image";"question";"answer"\n"0.png";"a?";"5"\n', ["5"]),
    "mixed-encoding.csv": (f"{H}\n0.png,für?,5\n".encode() + "1.png,für?,6\n".encode("cp1252"), ["5", "6"]),
    "spaces.csv": ('image, question, answer\n0.png, "a, b?", 5\n', ["5"]),
    "lists.csv": (
        f"{H}\n0.png,Which two?,\"['a''s', 'b']\"\n1.png,Which crops?,\"['kale', 'rye', 'oats']\"\n2.png,Which?,[]\n",
        ["a's, b", "kale, rye, oats", ""],
    ),
    "docvqa.csv": (
        "image,question,answers\n0.png,Who?,x\n".replace("answers", "answer")
        + '1.png,Who is it?,"[""ITC Limited"", ""itc limited""]"\n',
        ["x", "ITC Limited"],
    ),
    "numpy.csv": (f"{H}\n0.png,Which two?,['kale' 'rye']\n", ["kale, rye"]),
    "rating.csv": (
        f"{H},options\n0.png,Rating?,4/5,\n1.png,How likely?,medium,low|medium|high\n2.png,Scale?,1-5,\n",
        ["4/5", "medium", "1-5"],
    ),
    "letters.tsv": (
        "index\timage\tquestion\tanswer\tA\tB\tC\tD\n0\t0.png\tWhich?\tC\tEgg\tLarva\tAdult\t\n1\t1.png\tWhich?\tD\tEgg\tLarva\tAdult\t\n",
        ["Adult", None],
    ),
    "letter-text.csv": (
        f'{H},options\n0.png,Which?,(B),"A. Egg\nB. Larva"\n1.png,Which?,"A, B","Egg|Larva"\n',
        ["Larva", None],
    ),
    "errors.csv": (f"{H}\n0.png,a?,#DIV/0!\n1.png,b?,#NV\n2.png,c?,#1\n", [None, None, "#1"]),
    "empty-answers.csv": (f"{H}\n0.png,a?,\n1.png,b?,?\n2.png,c?,0\n", ["", None, "0"]),
    "true.csv": (f"{H}\n0.png,Is it?,TRUE\n1.png,Is it?,no\n", ["TRUE", "no"]),
    "unc.csv": (f"{H}\n.\\0.png,a?,5\n", ["5"]),
}

JSON: dict[str, tuple[str, list[str | None]]] = {
    "records.json": (
        '[{"image": "0.png", "question": "a?", "answer": 43.0}, {"image": "1.png", "question": "b?", "answer": true}]',
        ["43", "Yes"],
    ),
    "wrapped.json": ('{"name": "x", "items": [{"image": "0.png", "question": "a?", "answer": 1e6}]}', ["1000000"]),
    "lines.json": (
        '{"image": "0.png", "question": "a?", "answer": "5"}\n{"image": "1.png", "question": "b?", "answer": "6",}\n{"image": "2.png", "question": "c?", "answer": "7"}\n',
        ["5", None, "7"],
    ),
    "list.jsonl": (
        '[\n{"image": "0.png", "question": "a?", "answer": "5"},\n{"image": "1.png", "question": "b?", "answer": "6"}\n]',
        ["5", "6"],
    ),
    "pretty.jsonl": (
        '{\n "image": "0.png",\n "question": "a?",\n "answer": "5"\n}\n{\n "image": "1.png",\n "question": "b?",\n "answer": "6"\n}\n',
        ["5", "6"],
    ),
    "nan.jsonl": (
        '{"image": "0.png", "question": "a?", "answer": NaN}\n{"image": "1.png", "question": "b?", "answer": 5, "x": NaN}\n',
        ["", "5"],
    ),
    "values.jsonl": (
        '{"image": "0.png", "question": "a?", "answer": {"value": 43, "unit": "km"}}\n{"image": "1.png", "question": "b?", "answer": "43 km"}\n',
        [None, "43 km"],
    ),
    "vqa.json": (
        '{"annotations": [{"image": "0.png", "question": "What is it?", "answer": [{"answer": "net"}, {"answer": "net"}, {"answer": "rope"}]}]}',
        ["net"],
    ),
    "several.jsonl": (
        '{"image": "0.png", "question": "What are the two colours?", "answer": ["Red", "Green"]}\n{"image": "1.png", "question": "How many?", "answer": [3, 4]}\n{"image": "2.png", "question": "How many?", "answer": [3, 3.0]}\n',
        ["Red, Green", None, "3"],
    ),
    "choices.jsonl": (
        '{"image": "0.png", "question": "Which?", "answer": "b", "options": {"A": "Egg", "B": "Larva"}}\n{"image": "1.png", "question": "Which?", "answer": 1, "options": ["Egg", "Larva"]}\n',
        ["Larva", None],
    ),
    "cut.jsonl": (
        '{"image": "0.png", "question": "a?", "answer": "5"}\n{"image": "1.png", "question": "b?", "ans',
        ["5", None],
    ),
}

BOOKS: dict[str, tuple[dict[str, Any], list[str | None]]] = {
    "percent.xlsx": (
        {"S": Sheet([N, ["0.png", "a?", Cell(0.482, "0.0%")], ["1.png", "b?", Cell(0.05, "0%")]])},
        ["48.2%", "5%"],
    ),
    "dates.xlsx": (
        {
            "S": Sheet(
                [
                    N,
                    ["0.png", "a?", Cell(45360.0, "dd/mm/yyyy")],
                    ["1.png", "b?", Cell(45360.0, "yyyy")],
                    ["2.png", "c?", 45360.0],
                ]
            )
        },
        ["2024-03-09", "2024", "45360"],
    ),
    "formulas.xlsx": (
        {
            "S": Sheet(
                [
                    N,
                    ["0.png", "a?", Cell(2.0, formula="1+1")],
                    ["1.png", "b?", Cell(formula="1+1")],
                    ["2.png", "c?", Cell(error="#REF!")],
                ]
            )
        },
        ["2", None, None],
    ),
    "merged.xlsx": (
        {"S": Sheet([["Charts", None, None], N, ["0.png", "a?", 5.0], [None, "b?", 6.0]], merged=["A1:C1", "A3:A4"])},
        ["5", "6"],
    ),
    "sheets.xlsx": (
        {
            "Cover": Sheet([["Our charts"]]),
            "Old": Sheet([N, ["0.png", "a?", 1.0]], state="hidden"),
            "New": Sheet([N, ["0.png", "a?", 5.0]]),
        },
        ["5"],
    ),
    "hidden.xlsx": ({"S": Sheet([N, ["0.png", "a?", 5.0], ["1.png", "b?", 6.0]], hidden=[3])}, ["5", None]),
    "offset.xlsx": ({"S": Sheet([[], [None, *N], [None, "0.png", "a?", 5.0], [], []])}, ["5"]),
    "euro.xlsx": (
        {
            "S": Sheet(
                [
                    N,
                    ["0.png", "a?", Cell(1204.5, '#,##0.00\\ "€"')],
                    ["1.png", "b?", Cell(1.2e6, '0.0,,"M"')],
                    ["2.png", "Is it?", True],
                ]
            )
        },
        ["1204.50 €", "1.2M", "Yes"],
    ),
    "lists.xlsx": (
        {"S": Sheet([N, ["0.png", "Which two?", "oats\nrye"], ["1.png", "Which two?", "['oats', 'rye']"]])},
        ["oats, rye", "oats, rye"],
    ),
    "german.ods": (
        ods(["0.png", "a?", ods_cell("48,2 %", "percentage", office_value="0.482")], ["1.png", "b?", "1.204,5"]),
        ["48,2 %", "1.204,5"],
    ),
    "dates.ods": (
        ods(["0.png", "a?", ods_cell("09.03.24", "date", office_date_value="2024-03-09")], ["1.png", "b?", "#REF!"]),
        ["2024-03-09", None],
    ),
}


@pytest.mark.parametrize("name", [*CSV, *JSON, *BOOKS])
def test_each_row_is_read_or_left_out_as_a_colleague_would(tmp_path: Path, name: str) -> None:
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    file = tmp_path / name
    if name in BOOKS:
        content, expected = BOOKS[name]
        write_ods(file, content) if name.endswith(".ods") else write_xlsx(file, content)
    else:
        text, expected = (CSV | JSON)[name]
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    rows = list(read_source("rows", str(file)))
    assert [row.answer if isinstance(row, SourceRow) else None for row in rows] == expected
    assert all(row.image() for row in rows if isinstance(row, SourceRow))


SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "cases" / "tables"
SHARED_ANSWERS: dict[str, list[str | None]] = {
    "t_hdr.csv": ["2", "3"],
    "t_lists.csv": ["kale, rye", "wheat, corn", "Blue, Gray", "Red, Green", "oats, barley"],
    "t_num.jsonl": ["43", "67.5", "Yes", "", "43", None, "51", "1000000"],
    "t_quotes.csv": ["03/09/2024", None, "03/11/2024"],
    "t_semi_cp1252.csv": ["7,4 €", "1.204,5", "1.300,5"],
    "docs48.csv": [str(100 + 7 * number) for number in range(48)],
}


def with_pictures(name: str, folder: Path) -> list[SourceRow | Any]:
    """Return the rows of a shared table, beside whose copy the pictures that it names are drawn."""
    file = folder / name
    file.write_bytes((SHARED / name).read_bytes())
    drawn = [row.fields["image"] for row in read_rows(file, folder, "rows") if isinstance(row, RawRow)]
    for number, image in enumerate(drawn):
        (folder / image).parent.mkdir(exist_ok=True)
        (folder / image).write_bytes(picture(number))
    return list(read_source("rows", str(file)))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared cases")
@pytest.mark.parametrize("name", SHARED_ANSWERS)
def test_shared_tables_are_read_as_a_colleague_would(tmp_path: Path, name: str) -> None:
    rows = with_pictures(name, tmp_path)
    assert [row.answer if isinstance(row, SourceRow) else None for row in rows] == SHARED_ANSWERS[name]


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared cases")
def test_a_spreadsheet_has_the_rows_of_the_csv_that_was_saved_from_it(tmp_path: Path) -> None:
    saved, book = (with_pictures(name, tmp_path) for name in ("fragen.csv", "fragen.xlsx"))
    assert len(saved) == 33
    for row, other in zip(saved, book, strict=True):
        assert row.content == other.content
        assert row.row.partition(":")[2] == other.row.partition(":")[2]
    assert {"32,1", "5.5", "7.5 %", "48,2 %"} <= {row.answer for row in saved}
