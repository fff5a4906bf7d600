"""Tables of a user's own rows: files as programs save them, the instances of each row, and their passages."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from app.commands.building.check_rows_command import check_rows as print_check
from app.store.workspace import Workspace
from benchmarks.build import WARNINGS, Build, BuildOptions
from benchmarks.cmc_bench.cmc_check_rows import check_rows
from benchmarks.cmc_bench.cmc_constants import PAPER_CONDITIONS
from benchmarks.cmc_bench.construction.cmc_passages import answer_spans, passage_stating, states
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.errors import SourceError, SpecError
from benchmarks.media import load_image
from benchmarks.registry import get_benchmark
from benchmarks.rows.csv_rows import read_columns, read_csv_rows
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.rows.row_checks import RowCheck
from benchmarks.values import compare
from tests.support.data.small import picture

HEADER = "image,question,answer"


def table(folder: Path, content: str | bytes, name: str = "rows.csv", pictures: int = 6) -> Path:
    """Write a table with ``pictures`` images next to it, ``0.png`` ..."""
    folder.mkdir(exist_ok=True)
    for number in range(pictures):
        (folder / f"{number}.png").write_bytes(picture(number))
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def usable(file: Path) -> list[SourceRow]:
    return [row for row in read_source("rows", str(file)) if isinstance(row, SourceRow)]


def checked(file: Path) -> dict[str, RowCheck]:
    """Return the rows' checks by row number."""
    return {row.where.rpartition(":")[2]: row for row in check_rows(file, BuildOptions()).rows}


# --- what programs save ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('image,question,answer\n0.png,How many?,"1,204"\n', "rows.csv"),
        ('\ufeffimage,question,answer\r\n0.png,How many?,"1,204"\r\n', "rows.csv"),
        ("Image;Question;Answer;\r\n0.png;How many?;1,204;\r\n", "rows.csv"),
        ("sep=;\r\nimage;question;answer\r\n0.png;How many?;1,204\r\n", "rows.csv"),
        ("\n\n ANSWER \timage\tquestion\n\n1,204\t0.png\tHow many?\n", "rows.tsv"),
        ("image\tquestion\tanswer\r0.png\tHow many?\t1,204\r", "rows.TSV"),
        ("image|question|answer\n0.png|How many?|1,204", "rows.csv"),
        ("image;question;answer\n0.png;How many?;1,204\n".encode("utf-16"), "rows.csv"),
        ('{"Image": "0.png", "QUESTION": "How many?", "answer": "1,204"}\n', "rows.jsonl"),
        ('[{"image": "0.png", "question": "How many?", "answer": "1,204"}]', "rows.json"),
    ],
)
def test_tables_are_read_in_every_saved_form(tmp_path: Path, content: str | bytes, name: str) -> None:
    (row,) = usable(table(tmp_path, content, name))
    assert (row.question, row.answer, row.image()) == ("How many?", "1,204", picture(0))


def test_quoted_cells_and_spreadsheet_row_numbers(tmp_path: Path) -> None:
    file = table(tmp_path, f'{HEADER},passage\n0.png,"a, ""b""\nand c?",5,"It is\n5."\n,,,\n1.png,d?,6,\n')
    first, second = usable(file)
    assert first.question == 'a, "b"\nand c?'
    assert first.passage == "It is\n5."
    assert (first.row, second.row) == ("rows.csv:2", "rows.csv:4")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("image,question,anwser\n", "no column answer; .*--map answer=anwser"),
        ("question,answer\n", "no column image"),
        (f"{HEADER},Answer\n", "two columns called 'answer'"),
        (f"{HEADER}\n0.png,a\0b,5\n", "NUL"),
        (b"PK\x03\x04rest", "workbook"),
        (b"\xd0\xcf\x11\xe0rest", "workbook"),
        (",".join(f"c{n}" for n in range(100_000)) + ",C7\n", "two columns called 'c7'"),
    ],
)
def test_unsupported_files_are_refused_with_kind_and_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    file = table(tmp_path, content)
    with pytest.raises(SourceError, match=f"(?s){message}"):
        list(read_source("rows", str(file)))


def test_another_kind_of_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"rows\.docx is no table; give one that ends in \.csv"):
        usable(table(tmp_path, b"PK\x03\x04", "rows.docx"))
    with pytest.raises(SourceError, match=r"rows\.xls .*\.xlsx"):
        usable(table(tmp_path, b"\xd0\xcf\x11\xe0", "rows.xls"))


cells = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(cells, cells, cells), max_size=5), st.sampled_from(",;\t|"))
@example([("", "", "\\")], ",")
@example([("a", "b", "\\"), ("c", "d", "e")], ",")
def test_written_csv_is_read_back(rows: list[tuple[str, str, str]], separator: str) -> None:
    import tempfile

    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator)
    writer.writerows([("image", "question", "answer"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_text(text.getvalue(), "utf-8", newline="")
        read = [tuple(row.values()) for _, row in read_csv_rows(file) if not isinstance(row, RowProblem)]
        assert read_columns(file) == ["image", "question", "answer"]
    stripped = [tuple(cell.strip() for cell in row) for row in rows]
    assert read == [row for row in stripped if any(row)]


@given(st.binary(max_size=300))
@example(b";")
def test_any_bytes_are_a_table_or_an_error(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_bytes(data)
        try:
            for _, fields in read_csv_rows(file):
                assert isinstance(fields, RowProblem) or all(isinstance(cell, str) for cell in fields.values())
        except SourceError:
            return


def problems(file: Path) -> dict[int, tuple[str, str]]:
    """Return the message and the line of each row with too many cells, by row number."""
    return {number: (str(row), row.place) for number, row in read_csv_rows(file) if isinstance(row, RowProblem)}


def test_unquoted_commas_are_reported_with_the_line_and_the_fix(tmp_path: Path) -> None:
    file = table(tmp_path, f'sep=,\n{HEADER}\n0.png,"a,\nb?",5\n\n1.png,which, of these, is it?,6\n2.png,c?,7,,\n,,,\n')
    message = "the row has more cells than the header; put text with commas in it in double quotes"
    assert problems(file) == {4: (message, "line 6 has 5 cells, the header 3")}
    assert [row.answer for row in usable(file)] == ["5", "7"], "empty cells at a row's end do no harm"
    row = checked(file)["4"]
    assert row.fix == "put text with commas in it in double quotes: line 6 has 5 cells, the header 3"
    semicolons = table(tmp_path, "image;question;answer;;\n0.png;a;b;c;d;e;;\n")
    message = message.replace("commas", "semicolons")
    assert problems(semicolons) == {2: (message, "line 2 has 6 cells, the header 3")}


@given(
    st.lists(st.lists(st.sampled_from(["", " ", "a", "b c", "é"]), min_size=1, max_size=6), max_size=6),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_row_is_refused_only_for_cells_beyond_the_header(rows: list[list[str]], separator: str, end: str) -> None:
    import tempfile

    lines = [separator.join(cells) for cells in (["image", "question", "answer"], *rows)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_text(end.join(lines) + end, "utf-8", newline="")
        by_row = problems(file)
    wrong = {number for number, cells in enumerate(rows, 2) if any(cell.strip() for cell in cells[3:])}
    assert set(by_row) == wrong
    for number in wrong:
        filled = len(separator.join(rows[number - 2]).rstrip(separator + " ").split(separator))
        assert by_row[number][1] == f"line {number} has {filled} cells, the header 3"


# --- where images lie --------------------------------------------------------------------------------


def test_images_are_found_by_relative_home_and_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    table(tmp_path / "home", "")
    (tmp_path / "tables" / "charts").mkdir(parents=True)
    (tmp_path / "tables" / "charts" / "c.png").write_bytes(picture(9))
    paths = ["charts/c.png", r"charts\c.png", "~/1.png", str(tmp_path / "home" / "2.png"), "../home/3.png"]
    file = table(tmp_path / "tables", "\n".join([HEADER, *(f"{path},{path}?,5" for path in paths)]), pictures=0)
    assert [row.image() for row in usable(file)] == [picture(n) for n in (9, 9, 1, 2, 3)]


def test_missing_images_are_reported_by_row(tmp_path: Path) -> None:
    paths = ["gone.png", "https://example.org/a.png", "~nobody-of-that-name/a.png", "", "x" * 5000, ".", "/dev/null"]
    file = table(tmp_path, "\n".join([HEADER, *(f"{path},{n}?,{n}" for n, path in enumerate(paths, 1))]))
    checks = list(checked(file).values())
    assert [row.usable for row in checks] == [False] * len(paths)
    assert "address" in checks[1].message
    assert "save it as a file" in checks[1].fix
    assert checks[3].message == "the row has no image"
    assert all(row.fix for row in checks)


# --- what a row becomes --------------------------------------------------------------------------------

ROWS = [
    ("0.png", "When?", "2008", "Sales doubled in 2008, from 3 to 6.", ""),
    ("1.png", "When?", "2011", "", ""),
    ("2.png", "When?", "2015", "", ""),
    ("3.png", "How many?", "1,204", "In all 1204 were sold; 1204.5 was hoped for.", "999"),
    ("4.png", "How many?", "7", "", ""),
    ("5.png", "How many?", "64 %", "", ""),
    ("4.png", "Where?", "North", "It was the north, not Northgate.", "South"),
    ("5.png", "Where?", "8", "Nothing of it here, 18 and 8.5 and -8 are others.", ""),
    ("0.png", "Which?", "12", "", "12.0"),
    ("1.png", "Which?", "13", "13, not 14", "14"),
    ("1.png", "When?", "2011", "", ""),
    ("1.png", "", "3", "", ""),
    ("2.png", "Why?", "", "", ""),
    ("2.png", "Why?", "yes", "", ""),
    ("gone.png", "Why?", "5", "", ""),
    ("0.png", "who", "East", "", ""),
]


def own(folder: Path) -> Path:
    content = io.StringIO(newline="")
    csv.writer(content).writerows([("image", "question", "answer", "passage", "conflict"), *ROWS])
    return table(folder, content.getvalue())


def test_each_row_reports_its_result_or_its_fix(tmp_path: Path) -> None:
    checks = checked(own(tmp_path))
    assert len(checks) == len(ROWS)
    messages = {where: row.message for where, row in checks.items() if not row.usable}
    assert messages == {
        "9": "the passage does not state the answer, but several other values: '18', '8.5', '-8'",
        "10": "the conflicting value is the answer",
        "11": "the passage states the conflicting value as well, or may do so",
        "12": "repeated: rows.csv:3 is the same row",
        "13": "the row has no question",
        "14": "the row has no answer",
        "16": "the image is missing",
    }
    assert all(checks[where].fix for where in messages)
    assert checks["2"].message.startswith("right: 2008; wrong: 20")
    assert checks["15"].message.startswith("right: yes; wrong: no")
    assert checks["5"].message.startswith("right: 1,204; wrong: 999")
    assert all(row.usable == bool(row.preview().instances) for row in checks.values())


@pytest.mark.parametrize(
    ("question", "answer", "conflict", "problem"),
    [
        ("How long?", "90 minutes", "1 h 30 min", "the conflicting value is the answer"),
        ("How far?", "43", "43 km", "only one of them names a unit"),
        ("How many km?", "43", "43 km", "the conflicting value is the answer"),
        ("How far?", "43 miles", "43 km", ""),
        ("Price?", "$43", "€43", ""),
        ("How many?", "12 500", "12,500", "the conflicting value is the answer"),
    ],
)
def test_a_conflicting_value_differs_from_the_answer_for_certain(
    tmp_path: Path, question: str, answer: str, conflict: str, problem: str
) -> None:
    content = io.StringIO(newline="")
    rows = [("0.png", question, answer, conflict), ("1.png", "Else?", "7,000 kg", "")]
    csv.writer(content).writerows([("image", "question", "answer", "conflict"), *rows])
    row = checked(table(tmp_path, content.getvalue()))["2"]
    assert row.usable == (not problem)
    assert problem in row.message
    assert row.usable or row.fix


def test_a_passage_that_may_state_the_conflicting_value_is_named(tmp_path: Path) -> None:
    rows = [
        HEADER + ",passage,conflict",
        "0.png,How far?,90 km,90 km by road and 43.0 by rail,43 km",
        "1.png,Else?,7 kg,,",
    ]
    row = checked(table(tmp_path, "\n".join(rows)))["2"]
    assert not row.usable
    assert row.message == "the passage states the conflicting value as well, or may do so"
    assert row.fix


def test_rows_of_one_picture_question_and_value_are_repeated(tmp_path: Path) -> None:
    answers = ["12 500", "12,500", "twelve thousand five hundred", "12501", "$12,500"]
    rows = [f'{0}.png,How many?,"{answer}"' for answer in answers] + ['1.png,How many?,"12,500"']
    checks = checked(table(tmp_path, "\n".join([HEADER, *rows])))
    repeated = {where for where, row in checks.items() if row.message.startswith("repeated")}
    assert repeated == {"3", "4"}


def test_build_matches_the_check(tmp_path: Path) -> None:
    file = own(tmp_path)
    new_build = get_benchmark("cmc-bench").build([("rows", str(file))], tmp_path / "built", BuildOptions())
    checks = {row.where: row for row in check_rows(file, BuildOptions()).rows}
    conditions = new_build.manifest["conditions"]
    assert sum(conditions[c] for c in PAPER_CONDITIONS) == sum(len(row.preview().instances) for row in checks.values())
    lines = [json.loads(line) for line in (new_build.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    left_out = [line for line in lines if "condition" not in line]
    assert {line["row"] for line in left_out} == {where for where, row in checks.items() if not row.usable}
    built = {instance.id: instance for instance in get_benchmark("cmc-bench").instances(new_build, "paper")}
    for row in checks.values():
        for instance in row.preview().instances:
            assert built[instance.id] == replace(instance, strata=built[instance.id].strata)
    assert new_build.manifest["contradicting_values"]["the row's own"] == 2


def rows_of(new_build: Build, question: str) -> dict[str, str]:
    """Return the passages of the examples with a question, by condition."""
    return {row["id"].partition("/")[2]: row["passage"] for row in new_build.rows() if row["question"] == question}


def test_own_passage_changes_only_in_the_value(tmp_path: Path) -> None:
    new_build = get_benchmark("cmc-bench").build([("rows", str(own(tmp_path)))], tmp_path / "built", BuildOptions())
    who = rows_of(new_build, "Where?")
    assert who["aligned"] == who["text-only/right"] == "It was the north, not Northgate."
    assert who["image-correct"] == who["text-only/wrong"] == "It was the South, not Northgate."
    sold = [row for row in new_build.rows() if row["references"].get("text") == "999"]
    assert {row["passage"] for row in sold} == {"In all 999 were sold; 1204.5 was hoped for."}
    years = [row for row in new_build.rows() if row["references"].get("image") == "2008" and row["passage"]]
    assert years
    assert all((row["references"]["text"] == "2008") == ("in 2008," in row["passage"]) for row in years)


def test_values_are_taken_out_of_the_same_group_first(tmp_path: Path) -> None:
    numbers = (23, 223, 31, 311, 41, 411)
    lines = [f"{n}.png,How many?,{number},{'odd' if n % 2 else 'even'}" for n, number in enumerate(numbers)]
    file = table(tmp_path, "\n".join([f"{HEADER},Group", *lines]))
    new_build = get_benchmark("cmc-bench").build([("rows", str(file))], tmp_path / "built", BuildOptions())
    for row in new_build.rows():
        large = row["strata"]["subject"] == "odd"
        assert all((float(answer) > 100) == large for answer in row["references"].values())
        assert row["id"].startswith(row["group"])


def test_a_table_without_passages_builds_as_the_same_json_lines_do(tmp_path: Path) -> None:
    answers = ["5", "6", "7", "8"]
    as_csv = table(tmp_path / "a", "\n".join([HEADER, *(f"{n}.png,{n}?,{a}" for n, a in enumerate(answers))]))
    as_lines = "\n".join(
        json.dumps({"image": f"{n}.png", "question": f"{n}?", "answer": a}) for n, a in enumerate(answers)
    )
    table(tmp_path / "b", as_lines, "rows.jsonl")
    benchmark = get_benchmark("cmc-bench")
    from_csv = benchmark.build([("rows", str(as_csv))], tmp_path / "1", BuildOptions())
    other = benchmark.build([("rows", str(tmp_path / "b"))], tmp_path / "2", BuildOptions())
    assert from_csv.digest == other.digest


def test_unused_columns_are_reported(tmp_path: Path) -> None:
    file = table(tmp_path, f"{HEADER},Pasage,notes\n0.png,a?,5,,\n")
    assert "nothing is read from the columns pasage, notes" in check_rows(file, BuildOptions()).remarks


def test_options_may_be_separated_by_bars(tmp_path: Path) -> None:
    file = table(
        tmp_path, f"{HEADER},options\n0.png,Which?,C,Egg|Larva | Adult\n1.png,Which?,Egg,Egg|Larva\n2.png,W?,9,\n"
    )
    first, second, third = usable(file)
    assert (first.options, first.answer) == (("Egg", "Larva", "Adult"), "Adult")
    assert (second.answer, third.options) == ("Egg", ())


def test_cell_containing_the_separator_is_reported(tmp_path: Path) -> None:
    (left_out,) = read_source("rows", str(table(tmp_path, f"{HEADER}\n0.png,a, b?,5\n")))
    assert isinstance(left_out, SkippedRow)
    assert "double quotes" in left_out.reason


def test_a_benchmark_that_takes_no_table_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="clash is not built from a table of rows"):
        get_benchmark("clash").check_rows(tmp_path, BuildOptions())


# --- passages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer", "stated"),
    [
        ("In 2008 it rose.", "2008", ["2008"]),
        ("from 2005-2008, then", "2008", ["2008"]),
        ("It is 12.5, or 512, or -12, or 1,200 12.", "12", ["12"]),
        ("-12", "12", []),
        ("North  Wind, north\nwind", "north wind", ["North  Wind", "north\nwind"]),
        ("Northern", "North", []),
        ("a rise of 64 % in all", "64%", ["64 %"]),
        ("$1,204.00 were paid", "1204", ["1,204.00"]),
        ("$1,204.00 were paid", "$1204", ["$1,204.00"]),
        ("€1,204.00 were paid", "$1204", []),
        ("43 kilometres away, 43 miles by road", "43 km", ["43 kilometres"]),
        ("43 miles away", "43 km", []),
        ("-43.0 or 43.0", "43", ["43.0"]),
        ("43.0km", "43", []),
        ("1,204.0 people came", "1204 people", ["1,204.0 people"]),
        ("12 came", "twelve", ["12"]),
        ("costs (US) 5.", "5", ["5"]),
        ("C++ and C", "C++", ["C++"]),
        ("nothing", "5", []),
    ],
)
def test_where_a_text_states_an_answer(text: str, answer: str, stated: list[str]) -> None:
    assert [text[start:end] for start, end in answer_spans(text, answer)] == stated


short = st.text(st.characters(categories=["L", "Nd", "P", "Zs"]), min_size=1, max_size=12).filter(str.strip)


@given(short, short, short, short)
def test_changed_passage_states_the_new_value_only(before: str, after: str, gold: str, value: str) -> None:
    text = f"{before} {gold.strip()} {after}"
    row = SourceRow("rows", "1", "chartqa", "?", gold.strip(), bytes, passage=text)
    assert passage_stating(row, gold) == text
    if states(text, gold.strip()) and compare(gold, value).verdict != "same":
        changed = passage_stating(row, value)
        assert " ".join(value.split()) in changed
        assert changed != text or " ".join(value.split()).casefold() == " ".join(gold.split()).casefold()


# --- pictures ------------------------------------------------------------------------------------------


def png(image: Image.Image, **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG", **options)
    return data.getvalue()


PICTURES = {
    "blank.png": png(Image.new("RGB", (64, 48), "red")),
    "page.html.png": b"<!doctype html><html>404</html>",
    "pointer.png": b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1234\n",
    "empty.png": b"",
}


def test_check_warns_of_pictures_that_show_nothing_and_tells_what_others_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(
        f"{name},What is shown?,{40 + number}\n"
        for number, name in enumerate([*PICTURES, *map("{}.png".format, range(3))])
    )
    file = table(tmp_path, f"{HEADER}\n{rows}", pictures=3)
    for name, data in PICTURES.items():
        (tmp_path / name).write_bytes(data)
    rows_of = checked(file)
    assert rows_of["2"].usable
    assert "one colour" in rows_of["2"].warning
    assert not any(rows_of[number].warning for number in ("6", "7", "8"))
    fixes = [rows_of[number].fix for number in ("3", "4", "5")]
    assert [("download" in fix, "git lfs pull" in fix) for fix in fixes] == [
        (True, False),
        (False, True),
        (True, False),
    ]

    options = BuildOptions()
    assert print_check(Workspace(tmp_path), get_benchmark("cmc-bench"), file, options, as_json=False) == 0
    shown = capsys.readouterr().out
    assert "! rows.csv:2" in shown
    assert "✓ rows.csv:2" not in shown
    assert shown.count("✓ rows.csv:") == 3
    assert print_check(Workspace(tmp_path), get_benchmark("cmc-bench"), file, options, as_json=True) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["row"] for row in listed["result"]["rows"] if row["warning"]] == ["rows.csv:2"]

    built = get_benchmark("cmc-bench").build([("rows", str(file))], tmp_path / "built", options)
    (warning,) = (built.path / WARNINGS).read_text("utf-8").splitlines()
    assert json.loads(warning)["row"] == "rows.csv:2"


def test_own_picture_with_a_colour_profile_is_built_as_it_is_seen(tmp_path: Path) -> None:
    """The profile's first primary is green: what the file calls red is seen as green."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, green = profile.index(b"rXYZ"), profile.index(b"gXYZ")
    profile[red : red + 4], profile[green : green + 4] = b"gXYZ", b"rXYZ"
    drawn = Image.new("RGB", (64, 48), "white")
    drawn.paste((255, 0, 0), (8, 8, 40, 40))
    file = table(tmp_path, f"{HEADER}\n0.png,How many?,5\n1.png,How many?,6\nwide.png,How many?,7\n")
    (tmp_path / "wide.png").write_bytes(png(drawn, icc_profile=bytes(profile)))
    built = get_benchmark("cmc-bench").build([("rows", str(file))], tmp_path / "built", BuildOptions())
    pictures = [load_image(path) for path in (built.path / "media").iterdir()]
    (seen,) = (np.asarray(picture)[20, 20].tolist() for picture in pictures if picture.size == (64, 48))
    assert seen[1] > 200 > 60 > seen[0]
    assert (tmp_path / "0.png").read_bytes() in [path.read_bytes() for path in (built.path / "media").iterdir()]


def test_rows_beyond_the_quota_are_of_no_use_where_nothing_can_be_built(tmp_path: Path) -> None:
    lines = [f"{n}.png,Why {n}?,{answer}" for n, answer in enumerate(("rust", "the storm", "a strike", "old age"))]
    file = table(tmp_path, "\n".join([HEADER, *lines]))
    checks = get_benchmark("cmc-bench").check_rows(file, BuildOptions(per_stratum=2)).rows
    assert not any(row.usable for row in checks)
