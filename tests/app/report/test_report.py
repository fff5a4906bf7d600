"""Tables and hostile text in every format; the display's figures."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from app.commands.terminal.progress_display import progress_table
from app.json_output.json_envelope import plain
from app.json_output.tables_json import table_json
from app.report.progress.remaining_time import Throughput, duration
from app.report.progress.running_accuracy import accuracy
from app.report.tables.latex_tables import to_latex
from app.report.tables.run_labels import model_label
from app.report.tables.run_tables import tables_of
from app.report.tables.table_rendering import cell_text, print_table, to_csv, to_markdown
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress, JudgedCounts
from app.store.workspace import Workspace
from app.text.text_escaping import clean, latex, markdown, spreadsheet_cell
from benchmarks.untrusted.spreadsheet_formula_guard import SIGNS, csv_line, guard_formulas, unguard_formulas
from benchmarks.vocabulary import Estimate, Record, Table
from tests.support.command import ROOT
from tests.support.runs import instances, make_run, says

HOSTILE = st.text(st.characters(), max_size=60) | st.sampled_from(
    [
        "\x1b[2J",
        "\u202eevil",
        "[red]x[/red]",
        "[/nope]",
        "=1+1",
        "+x",
        "-x",
        "@x",
        "a|b",
        "&_%$#{}~^\\",
        "<b>x</b>",
        "\ud800",
    ]
)


@given(HOSTILE)
@example("\x9b31m")
@example("\u2066\u2069\u200b\ufeff")
@example("".join(map(chr, (0x180E, 0xFFF9, 0x1D173, *range(0xE0000, 0xE0200)))))
def test_cleaned_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    cleaned = clean(text)
    assert not [
        c for c in cleaned if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or 0xE0000 <= ord(c) < 0xE1000
    ]
    assert clean(cleaned) == cleaned
    cleaned.encode("utf-8")


@given(HOSTILE)
def test_no_cell_is_a_formula_and_csv_reads_back(text: str) -> None:
    table = Table("t", text, (text or "c",), ((text, (text,)),))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert len(rows) == 2
    for row in rows:
        assert not [cell for cell in row if cell.startswith((*SIGNS, "\t", "\r"))]
    assert rows[1][1] == spreadsheet_cell(text)


@pytest.mark.parametrize("sign", SIGNS)
def test_wide_and_small_signs_begin_no_formula(sign: str) -> None:
    for text in (f"{sign}1*1", f"a;{sign}1", f"a\n{sign}1", f'a|"{sign}1'):
        assert guard_formulas(text) == text.replace(sign, f"'{sign}")
        assert spreadsheet_cell(text) == guard_formulas(text)
        assert unguard_formulas(guard_formulas(text)) == text
    assert csv_line([f"{sign}1", 3, None]) == f"'{sign}1,3,\n"


def test_every_csv_file_is_written_in_one_place() -> None:
    packages = ("app", "benchmarks", "judges", "mlx_backends", "rashomon")
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    writers = {path.name for path in files if re.search(r"csv\.writer|DictWriter", path.read_text("utf-8"))}
    assert writers == {"spreadsheet_formula_guard.py"}


@given(st.text(alphabet="a=+-@;|\t\r\n\"', \u200b\uff1d\uff0b", max_size=30), st.sampled_from(";\t|"))
def test_no_cell_is_a_formula_wherever_a_spreadsheet_divides_the_line(text: str, delimiter: str) -> None:
    written = to_csv(Table("t", text, (text or "c", "d"), ((text, (text, "x")),)))
    for dialect in (delimiter, ","):
        rows = list(csv.reader(io.StringIO(written, newline=""), delimiter=dialect))
        assert not [cell for row in rows for cell in row if cell.startswith((*SIGNS, "\t", "\r"))]


def test_a_guarded_text_is_known_again() -> None:
    for text in ("=1", "a;=1+1", 'a;"=1', "a\n-1|@x", "\n=1", "it's; 'x'", "a;b"):
        assert unguard_formulas(guard_formulas(text)) == text
    assert guard_formulas("2; 3 - 4") == "2; 3 - 4"


@given(HOSTILE)
def test_latex_has_no_live_special_characters(text: str) -> None:
    escaped = latex(text)
    without = re.sub(
        r"\\(?:textbackslash|textasciitilde|textasciicircum|textasciigrave|textless|textgreater|textbar)\{\}|-\{\}(?=-)",
        "",
        escaped,
    )
    without = re.sub(r"\\texttt\{U\+[0-9A-F]{4,6}\}", "", without)
    without = without.replace("{[}", "").replace("{]}", "")
    without = re.sub(r"\\[&%$#_{}]", "", without).replace(r"$\Delta$", "").replace(r"$\pm$", "")
    assert not set(without) & set("\\&%$#_{}~^[]")


@given(HOSTILE)
def test_a_markdown_cell_stays_in_its_cell(text: str) -> None:
    table = Table("t", "title", ("a", "b"), (("row", (text, "x")),))
    line = to_markdown(table).splitlines()[4]
    assert len(re.findall(r"(?<!\\)\|", line)) == 4
    assert not re.search(r"(?<!\\)<(?!br>)", line)


def test_escaping_is_what_it_looks_like() -> None:
    assert latex("50% & a_b") == r"50\% \& a\_b"
    assert markdown("[x](http://e) | <b>") == r"\[x\]\(http\://e\) \| \<b\>"
    assert markdown("www.example.org, @someone: 1:2") == r"www\.example.org, \@someone: 1:2"
    assert latex("[4bit]") == "{[}4bit{]}"
    assert spreadsheet_cell("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert spreadsheet_cell("a;=1+1") == "a;'=1+1"
    assert clean("\x1b[31mred\x07") == r"\x1b[31mred\x07"
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "AB")
    assert clean(f"12{hidden}") == r"12\U000e0041\U000e0042", "tags, which no font draws"
    assert clean("a\u180eb\u3164c\ufe00") == r"a\u180eb\u3164c\ufe00"
    assert clean("❤\ufe0f 中文 é　ไทย") == "❤\ufe0f 中文 é　ไทย", "what is written so stays"


TABLE = Table(
    "main",
    "Main results",
    ("Aligned", "HR", "n"),
    (("model_1 & co", (Estimate(0.9, 0.85, 0.95, 40), Estimate(None, n=0, reason="no conflict answers"), 40)),),
    ("A note.",),
)


def test_an_undefined_figure_is_na_everywhere_and_never_0() -> None:
    (row,) = csv.DictReader(io.StringIO(to_csv(TABLE)))
    assert (row["HR"], row["HR low"], row["HR n"]) == ("", "", "0")
    assert float(row["Aligned"]) == 0.9
    assert plain(table_json(TABLE))["rows"][0]["cells"]["hr"] == {
        "value": None, "low": None, "high": None, "n": 0, "reason": "no conflict answers", "sd": None, "missing": 0,
    }  # fmt: skip
    assert cell_text(TABLE.rows[0][1][1]) == "n/a"
    assert "n/a in HR: no conflict answers" in to_markdown(TABLE)


def test_latex_is_a_booktabs_table() -> None:
    text = to_latex(TABLE)
    assert [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule in text] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]
    assert r"model\_1 \& co & 0.900 {\scriptsize [0.850, 0.950]} & n/a & 40 \\" in text
    assert text.count(r"\begin") == text.count(r"\end")


def test_a_latex_table_can_be_referred_to_and_says_nothing_of_the_command_line_or_the_papers_numbers() -> None:
    notes = (
        "Open questions (3) are matched. `rashomon judge RUN --judge MODEL` does that.",
        "`rashomon show` says which.",
    )
    table = replace(TABLE, title="Main results (Table 3)", notes=notes)
    text = to_latex(table, of="cmc-bench")
    assert r"\caption{Main results}" in text
    assert text.index(r"\caption") < text.index(rf"\label{{tab:cmc-bench-{TABLE.name}}}")
    assert "rashomon" not in text
    assert "Open questions (3) are matched." in text
    assert r"\caption{Our \% of charts}" in to_latex(table, caption="Our % of charts")
    rows = tuple((f"row {i}", cells) for i in range(90) for _, cells in TABLE.rows[:1])
    long = to_latex(replace(table, rows=rows), of="cmc-bench")
    assert long.count(r"\caption{Main results") > 1
    assert long.count(r"\label") == 1


@pytest.mark.parametrize("width", [24, 40, 80, 120])
def test_a_terminal_table_keeps_every_figure_and_label_in_its_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    figures = tuple(Estimate(i / 10, i / 10 - 0.04, i / 10 + 0.05, 9) for i in range(1, 10))
    columns = tuple(f"Col {i}" for i in range(1, 10))
    print_table(Table("t", "Wide", columns, (("first row", figures), ("second row", figures))))
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= width
    for i in range(1, 10):
        assert out.count(f"Col {i}") == 1
        assert out.count(f".{i}00") == 2
        assert f".{i - 1}6~.{i}5" in out
    assert out.count("second row") == out.count("Wide")


def test_nothing_is_truncated_or_folded_in_output_that_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    names = [
        f"a long name of a file in a folder of many, all of them alike but for the end, number {i}.png"
        for i in range(3)
    ]
    columns = tuple(f"Column {i}" for i in range(30))
    print_table(Table("t", "Wide", columns, tuple((name, (name,) * 30) for name in names), ("A note. " * 40,)))
    out = capsys.readouterr().out
    assert "…" not in out
    assert "continued" not in out
    for name in names:
        assert out.count(name) == 31
    assert "A note. " * 39 in out


def test_speed_and_what_is_left_count_this_process_alone() -> None:
    now = [0.0]
    pace = Throughput(lambda: now[0])
    pace.sample(900)  # resumed: none of these were answered now
    assert pace.per_second is None
    assert pace.eta(100) is None
    for _ in range(10):
        now[0] += 1
        pace.sample(900 + round(now[0]) * 2)
    assert pace.per_second == 2
    assert pace.eta(80) == 40
    for _ in range(100):  # slower now: the last minute alone decides
        now[0] += 10
        pace.sample(920 + round((now[0] - 10) / 10))
    assert pace.per_second is not None
    assert 0.09 <= pace.per_second <= 0.11
    assert pace.eta(0) == 0


def test_durations_read_well() -> None:
    assert [duration(s) for s in (None, 0, 59.4, 61, 3599, 3600, 7384)] == [
        "-",
        "0s",
        "59s",
        "1m01s",
        "59m59s",
        "1h00m",
        "2h03m",
    ]


def test_the_accuracy_so_far_has_n_and_no_interval() -> None:
    """The counters do not say which answers share a page."""
    progress = ConditionProgress(
        "aligned", 10, 5, 0, 0, 0, 0.0, 0, {"match@1": JudgedCounts(labelled=4, correct=3, unparsed=1)}
    )
    run = RunSummary("r", "running", {"judge": ["match"]}, (progress,))
    share = accuracy(progress, run)
    assert (share.value, share.n) == (0.75, 4)
    assert (share.low, share.high) == (None, None)
    assert accuracy(ConditionProgress("aligned", 10, 0, 0, 0, 0, 0.0, 0, {}), run).value is None


@pytest.mark.parametrize("width", [80, 120])
def test_the_progress_display_fits_with_every_figure(width: int) -> None:
    judged = {"match@1": JudgedCounts(labelled=1800, correct=1500, unparsed=1)}
    rows = tuple(
        ConditionProgress(c, 1884, 1801, 3, 1700, 50_000, 900.0, 9 * 10**9, judged)
        for c in ("image-correct", "image-only")
    )
    clock = iter((0.0, 20.0))
    pace = Throughput(lambda: next(clock))
    for done in (3580, 3602):
        pace.sample(done)
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(progress_table(RunSummary("a-run\x1b[31m", "running", {"judge": ["match"]}, rows), pace))
    export_text = console.export_text()
    for fact in (
        "1801/1884",
        ".833",
        "1800",
        "1700",
        "1.1 answers/s",
        "56 tokens/s",
        "9.00 GB peak",
        "2m31s left",
    ):
        assert fact in export_text
    assert "\x1b" not in export_text
    assert max(len(line.rstrip()) for line in export_text.splitlines()) <= width


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("mlx-community/Qwen3-VL-4B-Instruct-4bit", "Qwen3-VL-4B-Instruct-4bit"),
        ("cuda:Qwen/Qwen3-VL-4B-Instruct@fp32", "Qwen3-VL-4B-Instruct@fp32 (PyTorch)"),
        ("endpoint:Qwen/Qwen3-VL-32B@http://127.0.0.1:8000/v1", "Qwen3-VL-32B"),
        ("policy:always-text", "policy:always-text"),
    ],
)
def test_a_table_says_who_answered_and_in_what(model: str, label: str) -> None:
    assert model_label(model) == label


def test_runs_over_different_subsets_are_each_said_to_rest_on_their_own_examples(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    small = make_run(workspace, "small", instances(4), says("12"))
    large = make_run(workspace, "large", instances(8), says("12"))
    note = next(note for note in tables_of([small, large], only="main")[0].notes if "(paper)" in note)
    own = [len({record.instance.group for record in records_of(folder)}) for folder in (small, large)]
    assert own[0] < own[1]
    for name, count in zip(("small", "large"), own, strict=True):
        assert f"{name} on {count} examples" in note
    alone = next(note for note in tables_of([small], only="main")[0].notes if "(paper)" in note)
    assert f"the rows above on {own[0]} examples" in alone


def records_of(folder: Path) -> list[Record]:
    with RunStore.read(folder) as store:
        return list(store.records())
