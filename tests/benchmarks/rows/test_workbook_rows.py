"""Tables in .xlsx and .ods workbooks: cells as their owner sees them, sheets, and files that are refused."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.new_run.custom_rows import table_path
from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.sources import read_source
from benchmarks.errors import SourceError
from benchmarks.registry import get_benchmark
from benchmarks.rows.cell_answers import FORMULA_ERROR, NOT_CALCULATED
from benchmarks.rows.files import RawRow, SkippedRow, read_rows
from benchmarks.rows.workbook_rows import HIDDEN, workbook_remarks
from tests.support.data.small import picture
from tests.support.workbooks import Cell, Sheet, ods_cell, write_ods, write_xlsx

NAMES = ["image", "question", "answer"]


def read(file: Path) -> list[RawRow | SkippedRow]:
    return list(read_rows(file, file.parent, "rows"))


def answers(file: Path) -> list[Any]:
    return [row.fields.get("answer") if isinstance(row, RawRow) else row.reason for row in read(file)]


def reasons(file: Path) -> list[str]:
    """Return why rows are left out, apart from their pictures."""
    for number in range(4):
        (file.parent / f"{number}.png").write_bytes(picture(number))
    return [row.reason for row in read_source("rows", str(file)) if isinstance(row, SkippedRow)]


def book(folder: Path, *rows: Any, **options: Any) -> Path:
    return write_xlsx(folder / "rows.xlsx", {"Tabelle1": Sheet([NAMES, *rows], **options)})


@pytest.mark.parametrize("shared", [True, False])
def test_a_sheet_is_read_with_the_numbers_of_its_rows(tmp_path: Path, shared: bool) -> None:
    sheet = Sheet(
        [["Charts of March"], [], [" Image ", "QUESTION", "Answer"], ["0.png", "a <b>?", "7,4 €"], [], ["1.png", "c?"]]
    )
    first, second = read(write_xlsx(tmp_path / "rows.xlsx", {"S": sheet}, shared=shared))
    assert isinstance(first, RawRow)
    assert (first.where, first.fields) == ("rows.xlsx:4", {"image": "0.png", "question": "a <b>?", "answer": "7,4 €"})
    assert isinstance(second, RawRow)
    assert (second.where, second.fields["answer"]) == ("rows.xlsx:6", "")


@pytest.mark.parametrize(
    ("cell", "seen"),
    [
        (Cell(0.482, "0.0%"), "48.2%"),
        (Cell(0.482, "0.0\\ %"), "48.2 %"),
        (Cell(0.48, "0%"), "48%"),
        (Cell(7.4, '#,##0.00\\ "€"'), "7.40 €"),
        (Cell(7.4, "#,##0.00\\ [$€-407]"), "7.40 €"),
        (Cell(51.0, "[$-407]#,##0.0"), "51,0"),
        (Cell(51.0, "[$-1010407]0.0%"), "5100,0%"),
        (Cell(51.0, '[$-de-DE]#,##0.0" t"'), "51,0 t"),
        (Cell(51.0, "[$-409]#,##0.0"), "51.0"),
        (Cell(51.0, "[$-F400]0.0"), "51.0"),
        (Cell(-3.5, "0.0;[Red]-0.0"), "-3.5"),
        (Cell(5.5, '0.0" Mio. EUR"'), "5.5 Mio. EUR"),
        (Cell(12.0, "00000"), "00012"),
        (Cell(1200000.0, '0.0,,"M"'), "1.2M"),
        (Cell(0.5, "# ?/?"), "0.5"),
        (43.0, "43"),
        (48.2, "48.2"),
        (0.1 + 0.2, "0.3"),
        (1e6, "1000000"),
        ("43", "43"),
        ("4/5", "4/5"),
        (True, True),
        (Cell(45360.0, "dd.mm.yyyy"), "2024-03-09"),
        (Cell(45360.0, "yyyy"), "2024"),
        (Cell(45360.0, "mmm yy"), "March 2024"),
        (Cell(45360.0, "d-mmm"), "March 9"),
        (Cell(45360.604166667, "dd.mm.yyyy hh:mm"), "2024-03-09 14:30"),
        (Cell(0.604166667, "hh:mm"), "14:30"),
        (Cell(2.0, formula="1+1"), "2"),
        (Cell("kale", formula="B1"), "kale"),
        (Cell("", formula="B1"), ""),
    ],
)
def test_a_cell_is_what_its_owner_sees(tmp_path: Path, cell: Any, seen: Any) -> None:
    assert answers(book(tmp_path, ["0.png", "a?", cell])) == [seen]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (Cell(error="#REF!"), FORMULA_ERROR),
        (Cell(error="#N/A", formula="B9"), FORMULA_ERROR),
        (Cell(formula="1+1"), NOT_CALCULATED),
    ],
)
def test_errors_and_formulas_without_a_value_are_left_out_with_their_reason(
    tmp_path: Path, cell: Any, reason: str
) -> None:
    file = book(tmp_path, ["0.png", "a?", cell], ["0.png", cell, "5"])
    assert reasons(file) == [reason] * 2


def test_a_formula_that_a_program_wrote_has_an_empty_value(tmp_path: Path) -> None:
    file = book(tmp_path, ["0.png", "a?", Cell(43.0, formula="40+3")], ["0.png", "b?", Cell("", formula="B1")])
    copy = tmp_path / "copy.xlsx"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v>43.0</v>", b"<v></v>"))
    assert (reasons(file), reasons(copy)) == ([], [NOT_CALCULATED])


@pytest.mark.parametrize(
    "cell", [Cell(45360.0, "dd.mm.yyyy"), Cell(45360.0, "d-mmm"), "9. Mär", "12.05.2026", "12-Mar"]
)
def test_a_number_that_a_spreadsheet_made_a_date_is_named(tmp_path: Path, cell: Any) -> None:
    for question in ("How many crops?", "Wie hoch ist der Anteil?"):
        (reason,) = reasons(book(tmp_path, ["0.png", question, cell]))
        assert "date" in reason
    for passage, left_out in (("Date is at 20.", 1), ("It came to 12.03.2024.", 0), ("", 0)):
        lines = [[*NAMES, "passage"], ["0.png", "What is the value of date?", cell, passage]]
        assert len(reasons(write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(lines)}))) == left_out
    for question in ("When was it?", "What is the date of the count?", "On which day?"):
        assert reasons(book(tmp_path, ["0.png", question, cell])) == []


@pytest.mark.parametrize(
    "note", [["Source: Annual report"], [None, None, None, "Quelle: Statistik"], [None, None, 133.0]]
)
def test_a_note_below_the_table_is_no_row(tmp_path: Path, note: list[Any]) -> None:
    names = [*NAMES, "passage"]
    lines: list[list[Any]] = [
        names,
        ["0.png", "a?", 5.0],
        ["1.png"],
        note,
        [],
        ["2.png", "b?", 6.0],
        ["3.png"],
        note,
        note,
    ]
    file = write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(lines)})
    assert [row.row for row in read_source("rows", str(file))] == [f"rows.xlsx:{n}" for n in (2, 3, 4, 6, 7)]


def test_an_error_beside_the_table_is_no_matter(tmp_path: Path) -> None:
    file = write_xlsx(
        tmp_path / "rows.xlsx", {"S": Sheet([[*NAMES, "note"], ["0.png", "a?", "5", Cell(error="#REF!")]])}
    )
    assert answers(file) == ["5"]


def test_a_merged_cell_belongs_to_all_of_its_rows(tmp_path: Path) -> None:
    rows: list[Any] = [[*NAMES, "document"], *([f"{n}.png", f"{n}?", n, "Q1" if n == 0 else None] for n in range(4))]
    file = write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(rows, merged=["D2:D4", "A7:B7"])})
    assert [row.fields.get("document") for row in read(file) if isinstance(row, RawRow)] == ["Q1", "Q1", "Q1", ""]


def test_hidden_rows_are_left_out_and_named(tmp_path: Path) -> None:
    file = book(tmp_path, ["0.png", "a?", 1.0], ["1.png", "b?", 2.0], ["2.png", "c?", 3.0], hidden=[3])
    assert answers(file) == ["1", HIDDEN, "3"]


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_hidden_columns_are_not_read_and_are_named(tmp_path: Path, kind: str) -> None:
    rows = [["image", "question", "answer", "label"], ["0.png", "a?", "43", "60"], ["1.png", "b?", "44", "61"]]
    if kind == "xlsx":
        file = write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(rows, hidden_columns=[3])})
    else:
        columns = (
            '<table:table-column table:number-columns-repeated="2"/><table:table-column table:visibility="collapse"/>'
        )
        file = write_ods(tmp_path / "rows.ods", {"S": [columns, *([ods_cell(cell) for cell in row] for row in rows)]})
    assert [sorted(row.fields) for row in read(file) if isinstance(row, RawRow)] == [["image", "label", "question"]] * 2
    for path in (file, Path(f"{file}#sheet=S")):
        (remark,) = workbook_remarks(path)
        assert "hidden columns are not read: answer" in remark


def test_rows_in_a_folded_group_of_an_ods_file_are_hidden(tmp_path: Path) -> None:
    header, first, last = (
        [ods_cell(cell) for cell in row] for row in (NAMES, ["0.png", "a?", "43"], ["1.png", "b?", "44"])
    )
    group = ('<table:table-row-group table:display="false">', "</table:table-row-group>")
    file = write_ods(tmp_path / "rows.ods", {"S": [header, group[0], first, group[1], last]})
    assert answers(file) == [HIDDEN, "44"]


def test_a_format_that_displays_something_else_leaves_the_row_out_where_it_is_read(tmp_path: Path) -> None:
    from benchmarks.cmc_bench.sources import read_source
    from benchmarks.rows.cell_answers import NUMBER_FORMAT

    odd = Cell(0.3421, "# ?/?")
    rows: list[list[Any]] = [[*NAMES, "note"], ["0.png", "a?", odd], ["0.png", "b?", 1.0, odd]]
    left_out = list(read_source("rows", str(write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(rows)}))))
    assert [isinstance(row, SkippedRow) and row.reason == NUMBER_FORMAT for row in left_out] == [True, False]


def test_a_sheet_that_is_a_table_is_proposed_before_one_that_is_none(tmp_path: Path) -> None:
    tables = {"Q1": Sheet([NAMES, ["0.png", "a?", 1.0]]), "Q2": Sheet([NAMES, ["0.png", "a?", 2.0]])}
    file = write_xlsx(tmp_path / "rows.xlsx", {"Read me": Sheet([["The answers of March"]]), **tables})
    assert "#sheet=Q2" in workbook_remarks(file)[0]


def test_a_password_and_a_file_of_another_kind_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("image,question,answer\n")
    with pytest.raises(SourceError, match="is no workbook"):
        read(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", b"\x8f" * 99)
        archive.writestr("META-INF/manifest.xml", "<manifest><file-entry><encryption-data/></file-entry></manifest>")
    with pytest.raises(SourceError, match="password"):
        read(tmp_path / "a.ods")


def test_the_first_visible_table_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    one, two, old = (
        Sheet([NAMES, ["0.png", "a?", n]], state=s) for n, s in ((1.0, "visible"), (2.0, "visible"), (3.0, "hidden"))
    )
    note = Sheet([["Read me"], ["These are the charts", "of March"]])
    file = write_xlsx(tmp_path / "rows.xlsx", {"Old": old, "Note": note, "Q1 & Q2": one, "Q3": two, "Empty": Sheet([])})
    assert answers(file) == ["1"]
    for name, answer in (("Q3", "2"), ("Old", "3"), ("Q1 & Q2", "1")):
        assert answers(Path(f"{file}#sheet={name}")) == [answer]
    (remark,) = workbook_remarks(file)
    assert "Q1 & Q2" in remark
    assert "Q3" in remark
    assert "Old" not in remark
    assert "Empty" not in remark
    assert workbook_remarks(Path(f"{file}#sheet=Q3")) == workbook_remarks(book(tmp_path, ["0.png", "a?", 1.0])) == []
    with pytest.raises(SourceError, match="Q1 & Q2"):
        read(Path(f"{write_xlsx(file, {'Q1 & Q2': one})}#sheet=Q4"))


def test_ods_cells_are_what_their_owner_sees(tmp_path: Path) -> None:
    def row(question: str, answer: str) -> list[str]:
        return [ods_cell("0.png"), ods_cell(question), answer]

    merged = '<table:table-row><table:table-cell office:value-type="string" table:number-rows-spanned="2"><text:p>0.png</text:p>'
    merged += f"</table:table-cell>{ods_cell('i?')}{ods_cell('8')}</table:table-row>"
    covered = f"<table:table-row><table:covered-table-cell/>{ods_cell('j?')}{ods_cell('9')}</table:table-row>"
    empty = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16000"/>'
    hidden = f'<table:table-row table:visibility="filter">{"".join(row("k?", ods_cell("10")))}</table:table-row>'
    annotation = "<office:annotation><text:p>really?</text:p></office:annotation>"
    rows: list[Any] = [
        [ods_cell(name) for name in NAMES],
        row("a?", ods_cell("48,2 %", "percentage", office_value="0.482")),
        row("b?", ods_cell("7,40 €", "currency", office_value="7.4")),
        row("c?", ods_cell("09.03.24", "date", office_date_value="2024-03-09")),
        row("d?", ods_cell("März 2024", "date", office_date_value="2024-03-01")),
        row("e?", ods_cell("WAHR", "boolean", office_boolean_value="true")),
        row("f?", ods_cell("#REF!")),
        row("g?", ods_cell("43", "float", office_value="43").replace("<text:p>", annotation + "<text:p>", 1)),
        row("h?", ods_cell("kale\nrye")),
        merged,
        covered,
        hidden,
        f"{empty}</table:table-row>",
    ]
    file = write_ods(tmp_path / "rows.ods", {"Old": rows[:2], "S": rows}, hidden=["Old"])
    seen = ["48,2 %", "7,40 €", "2024-03-09", "März 2024", True, "#REF!", "43", "kale\nrye", "8", "9", HIDDEN]
    assert answers(file) == seen
    assert [row.fields["image"] for row in read(file) if isinstance(row, RawRow)] == ["0.png"] * 10


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "rows.xlsx"),
        (b"image,question,answer\n", "rows.xlsx"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "rows.xlsx"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "rows.xlsx"),
        (b"PK\x03\x04" + b"\0" * 600, "rows.ods"),
    ],
)
def test_files_that_are_no_workbook_are_refused(tmp_path: Path, content: bytes, name: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=name) as refusal:
        read(tmp_path / name)
    assert ("password" in str(refusal.value)) == (b"E\0n\0c" in content)


def test_a_row_that_an_ods_file_repeats_without_end_is_refused(tmp_path: Path) -> None:
    header = [ods_cell(name) for name in NAMES]
    endless = f'<table:table-row table:number-rows-repeated="9999999">{"".join(header)}</table:table-row>'
    empty = '<table:table-row table:number-rows-repeated="9999999"/>'
    for rows in ([header, endless], [header, empty, endless]):
        with pytest.raises(SourceError, match=r"rows\.ods has row [\d,]+ 9,999,999 times"):
            read(write_ods(tmp_path / "rows.ods", {"S": rows}))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="'answer'"):
        read(write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet([[*NAMES, " ANSWER"], ["0.png", "a?", 1.0, 2.0]])}))


@pytest.mark.slow
def test_a_bomb_and_a_distant_cell_end_the_child_and_no_more(tmp_path: Path) -> None:
    file = book(tmp_path, ["0.png", "a?", 1.0])
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    texts = b"<si><t>" + b"x" * 1_000_000 + b"</t></si>"
    for name, old, new in (
        ("xl/worksheets/sheet1.xml", b"A1", b"XFD1048576"),
        ("xl/sharedStrings.xml", b"</sst>", texts * 1200 + b"</sst>"),
    ):
        with zipfile.ZipFile(tmp_path / "bad.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            for part, content in parts.items():
                archive.writestr(part, content.replace(old, new, 1) if part == name else content)
        with pytest.raises(SourceError, match=r"bad\.xlsx"):
            read(tmp_path / "bad.xlsx")
        assert answers(file) == ["1"]


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_no_memory_here(tmp_path: Path) -> None:
    rows = [
        [f"charts/{n}.png", f"What is the value of item {n}?", float(n), f"The value is {n}."] for n in range(100_000)
    ]
    file = write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet([[*NAMES, "passage"], *rows])})
    script = (
        "import resource, sys\nfrom pathlib import Path\nfrom benchmarks.rows.files import read_rows\n"
        "file = Path(sys.argv[1])\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert sum(1 for _ in read_rows(file, file.parent, 'x')) == 100_000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True)
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 20 * 10**6


def test_a_sheet_is_checked_and_built_by_its_name(tmp_path: Path) -> None:
    sheets = {
        name: Sheet([NAMES, *([f"{n}.png", f"{n}?", n + 10.0 * len(name)] for n in range(4))]) for name in ("Q1", "Q33")
    }
    file = write_xlsx(tmp_path / "rows.xlsx", sheets)
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    sheet = table_path(f" {file}#sheet=Q33 ")
    check = get_benchmark("cmc-bench").check_rows(sheet, BuildOptions())
    assert [row.usable for row in check.rows] == [True] * 4
    assert [row.where for row in check.rows] == [f"rows.xlsx#sheet=Q33:{number}" for number in range(2, 6)]
    build = get_benchmark("cmc-bench").build([("rows", str(sheet))], tmp_path / "built", BuildOptions())
    values = {row["references"]["image"] for row in build.rows() if row["condition"] == "aligned"}
    assert values == {"30", "31", "32", "33"}
    (remark,) = (
        remark for remark in get_benchmark("cmc-bench").check_rows(file, BuildOptions()).remarks if "Q33" in remark
    )
    assert "rows.xlsx#sheet=Q33" in remark
    for missing in (tmp_path / "none.xlsx#sheet=Q1", tmp_path / "rows.csv#sheet=Q1"):
        with pytest.raises(SourceError):
            table_path(missing)


def test_an_error_in_an_option_leaves_the_row_out(tmp_path: Path) -> None:
    lines: list[list[Any]] = [[*NAMES, "a", "b", "c"], ["0.png", "Which?", "A", Cell(error="#REF!"), "cats", "dogs"]]
    assert reasons(write_xlsx(tmp_path / "rows.xlsx", {"S": Sheet(lines)})) == [FORMULA_ERROR]


def test_one_huge_number_leaves_out_its_row_alone(tmp_path: Path) -> None:
    file = book(tmp_path, ["0.png", "a?", Cell(1e27, "0.00")], ["1.png", "b?", 5.0])
    assert len(reasons(file)) == 1
    assert answers(file)[1:] == ["5"]
