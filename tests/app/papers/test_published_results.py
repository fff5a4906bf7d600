"""The papers' results: what each file holds, what a file may not hold, and how they are shown."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.commands.results.published_command import published
from app.papers.published_results import published_cells, published_names, read_cells
from benchmarks.errors import SourceError
from benchmarks.registry import benchmark_names
from tests.support.command import Rashomon
from tests.support.json_output import json_result

COUNTS: dict[str, dict[str, int]] = {
    "clash": {
        "Section 3.1": 2,
        "Appendix C.1": 4,
        "Table 1": 80,
        "Table 2": 26,
        "Table 3": 24,
        "Table 4": 16,
        "Table 5": 40,
        "Table 6": 42,
        "Table 7": 15,
        "Table 8": 72,
        "Table 9": 72,
        "Table 10": 32,
        "Table 11": 64,
        "Table 12": 48,
        "Table 13": 48,
        "Table 16": 12,
    },
    "cmc-bench": {
        "Table 1": 14,
        "Table 2": 8,
        "Table 3": 44,
        "Table 4": 4,
        "Section 5.3": 9,
        "Section 5.2, RQ3": 4,
        "Section 5.2, RQ4": 3,
    },
    "contra4": {
        "Abstract": 3,
        "Section 4": 2,
        "Section 6": 2,
        "Table 1": 35,
        "Table 2": 53,
        "Project page": 9,
        "Table 3": 105,
        "Table 4": 25,
        "Table 5": 85,
        "Table 6": 4,
        "Table 7": 180,
    },
    "crosscheck-bench": {
        "Figure 4": 16,
        "Table 1": 224,
        "Table 2": 78,
        "Table 3": 18,
        "Table 4": 12,
        "Table 5": 8,
        "Table 6": 10,
        "Table 7": 21,
        "Appendix E": 2,
        "Data Collection": 5,
        "Quality Verification": 4,
    },
    "mmkc-bench": {
        "Table 1": 9,
        "Table 2": 72,
        "Table 3": 72,
        "Table 4": 39,
        "Table 5": 108,
        "Table 6": 108,
        "Table 2 (AAAI 2026)": 24,
        "Table 3 (AAAI 2026)": 24,
        "Table 4 (AAAI 2026)": 36,
        "Table 5 (AAAI 2026)": 13,
    },
    "pope": {"Table 14": 12},
    "okvqa": {"Table 15": 4},
    "gqa": {"Table 15": 4},
    "chart-conflicts": {"Released outputs": 27},
    "words-or-vision": {"Table 2, VQAv2": 40},
    "math-conflicts": {"Released outputs": 42},
}
CELL = {"paper": "P", "table": "Table 1", "row": "m", "column": "Acc", "value": 0.5}


def test_every_table_of_the_papers_is_there() -> None:
    assert {
        name: dict(Counter(cell["table"] for cell in published_cells(name))) for name in published_names()
    } == COUNTS
    assert {"clash", "cmc-bench", "contra4", "crosscheck-bench", "mmkc-bench", "pope"} <= set(published_names())
    assert set(published_names()) <= set(benchmark_names())
    assert published_cells("../published/pope") == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_a_papers_tables_are_shown_and_given_as_json(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = printed(capsys, name)
    assert [table["name"] for table in result] == list(COUNTS[name])
    cells = [cell for table in result for row in table["rows"] for cell in row["cells"].values() if cell is not None]
    assert len(cells) == sum(COUNTS[name].values())
    assert printed(capsys, name, result[0]["name"].lower()) == result[:1]
    shown = "".join(Rashomon(tmp_path).run("published", name).stdout.split())
    paper = published_cells(name)[0]["paper"]
    for table in result:
        assert "".join(f"{table['name']} of {paper}".split()) in shown


def printed(capsys: pytest.CaptureFixture[str], name: str | None, table: str | None = None) -> Any:
    published(name, table=table, as_json=True)
    return json_result(capsys.readouterr().out)["tables"]


def test_without_a_name_it_says_which_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = printed(capsys, None)
    assert {row["label"]: row["cells"]["cells"] for row in message["rows"]} == {
        name: sum(counts.values()) for name, counts in COUNTS.items()
    }
    assert "Table 7 (180)" in " ".join(Rashomon(tmp_path).run("published").stdout.split())


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("contra4", "1", ("83.30", "515000")),
        ("cmc-bench", "1", ("10.700", "±5.6", "3768")),
        ("cmc-bench", "3", (".898", ".549")),
        ("cmc-bench", "2", ("4B", "Alibaba")),
        ("contra4", "4", ("Clotho", "ODC-By 1.0")),
        ("clash", "10", ("81.21", "±1.08")),
        ("mmkc-bench", "2", (".810",)),
    ],
)
def test_figures_are_shown_as_the_paper_prints_them(
    name: str, table: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    published(name, table=table, as_json=False)
    shown = capsys.readouterr().out
    for word in words:
        assert word in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("contra",), "did you mean 'contra4'?"),
        (("../../assets/published/pope",), "there are no published results"),
        (("contra4", "--table", "8"), "no published table '8'"),
        (("--table", "1"), "needs a benchmark"),
    ],
)
def test_what_is_not_there_is_said(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in Rashomon(tmp_path).run("published", *words, code=2).stderr


WRONG: list[tuple[Any, str]] = [
    ({}, "are not a list"),
    ([], "are not a list"),
    (["x"], "cell 1 .* is not an object"),
    ([CELL, {**CELL, "value": 0.6}], "cell 2 .* is repeated"),
    ([{**CELL, "value": float("nan")}], "not a finite number"),
    ([{**CELL, "value": float("inf")}], "not a finite number"),
    ([{**CELL, "value": True}], "not a finite number"),
    ([{**CELL, "value": None}], "not a finite number"),
    ([{**CELL, "value": [0.5]}], "not a finite number"),
    ([{**CELL, "value": " "}], "an empty value"),
    ([{**CELL, "value": "4B", "sd": 0.1}], "the keys of a number"),
    ([{key: CELL[key] for key in CELL if key != "value"}], "has no value"),
    ([{key: CELL[key] for key in CELL if key != "row"}], "has no row"),
    ([{**CELL, "row": ""}], "row that is not a line of text"),
    ([{**CELL, "row": 3}], "row that is not a line of text"),
    ([{**CELL, "column": "a\u001b[31mb"}], "column that is not a line of text"),
    ([{**CELL, "note": "two\nlines"}], "note that is not a line of text"),
    ([{**CELL, "row": "\ud800"}], "row that is not a line of text"),
    ([{**CELL, "value ": 0.5}], "unknown key, 'value '"),
    ([{**CELL, "sd": 0}], "deviation"),
    ([{**CELL, "sd": float("nan")}], "deviation"),
    ([{**CELL, "value": 3, "sd": 0.5}], "deviation"),
    ([{**CELL, "n": 0}], "an n that"),
    ([{**CELL, "n": 9.5}], "an n that"),
    ([{**CELL, "percent": False}], "in percent but not a fraction"),
    ([{**CELL, "value": 3, "percent": True}], "in percent but not a fraction"),
    ([CELL, {**CELL, "row": "n", "percent": True}], "in percent and other values of its table are not"),
]


@pytest.mark.parametrize(("cells", "message"), WRONG)
def test_a_file_with_a_wrong_cell_is_refused_with_the_cell_and_the_reason(
    cells: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(cells), "utf-8")
    with pytest.raises(SourceError, match=message):
        read_cells(path)


@pytest.mark.parametrize("broken", [b"", b"[", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_json_is_refused(broken: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(broken)
    with pytest.raises(SourceError, match=r"p\.json cannot be read"):
        read_cells(path)
