"""Runs, records and tables as a notebook reads and displays them."""

from __future__ import annotations

import enum
import io
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy
import pyarrow
import pytest
from pyarrow import parquet

import rashomon
from app.json_output.json_envelope import plain
from app.json_output.tables_json import table_json
from app.store.workspace import Workspace as Folders
from benchmarks.vocabulary import Estimate, Generation, Instance
from judges.base import FunctionJudge
from tests.support.command import Rashomon
from tests.support.runs import instances, make_run, says

HOSTILE = '</td></table><script>alert(1)</script><img src=x onerror="alert(2)">\x1b[31m\u202e'


def furnish(home: Rashomon) -> Rashomon:
    """Make a run that repeats the text, and one whose model, questions and answers are hostile."""
    folders = Folders(home.workspace)

    def answer(instance: Instance) -> Generation:
        return says(instance.references["text" if "text" in instance.references else "image"][0])(instance)

    make_run(folders, "text", instances(6), answer, model="policy:always-text")
    make_run(folders, "hostile", instances(6, question=HOSTILE), says(HOSTILE), model=f"imported:{HOSTILE}")
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    return furnish(Rashomon(tmp_path_factory.mktemp("home")))


@pytest.fixture
def workspace(home: Rashomon) -> rashomon.Workspace:
    return rashomon.open(home.workspace)


def test_the_runs_of_a_workspace(workspace: rashomon.Workspace) -> None:
    assert [run.name for run in workspace.runs] == ["text", "hostile"]
    run = workspace.run("tex")
    assert (run.done, run.total, run.spec["model"]) == (36, 36, "policy:always-text")
    assert workspace.run(run).name == run.name
    with pytest.raises(rashomon.RashomonError):
        workspace.run("nothing")


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(rashomon.RashomonError):
        rashomon.open(tmp_path / "notes.txt")
    assert Rashomon(tmp_path).run("--workspace", tmp_path / "notes.txt", "runs", code=2).stdout == ""


def test_sources_without_their_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rashomon.RashomonError):
        rashomon.open(tmp_path).build("cmc-bench", cast(Any, "rows.csv"))


def test_a_printed_table_is_what_the_command_prints(
    workspace: rashomon.Workspace, home: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = str(workspace.run("text").tables(published=True)["labels"]).replace("─", "").split()
    printed = home.run("show", "text", "--table", "labels").stdout.replace("─", "").split()
    assert table
    assert table == printed[-len(table) :]


def test_a_record_by_its_number(workspace: rashomon.Workspace) -> None:
    records = workspace.run("text").records()
    everyone = [record.instance.id for record in records]
    assert [records[number].instance.id for number in (0, 7, -1)] == [everyone[0], everyone[7], everyone[-1]]
    with pytest.raises(IndexError):
        records[len(everyone)]


def test_tables_are_those_of_the_command(workspace: rashomon.Workspace, home: Rashomon) -> None:
    printed = home.json("show", "text", "hostile")["tables"]
    tables = workspace.tables("text", "hostile", published=True)
    assert [plain(table_json(table.table)) for table in tables.values()] == printed
    own = workspace.run("text").table()
    assert own.rows == ("policy:always-text",)
    cell = own.cell("policy:always-text", "Txt-Cor")
    assert isinstance(cell, Estimate)
    assert cell.value == 1
    with pytest.raises(KeyError):
        tables["nothing"]
    with pytest.raises(rashomon.RashomonError):
        own.cell("policy:always-text", "nothing")
    with pytest.raises(rashomon.RashomonError):
        workspace.run("text").tables("nobody")


def test_records_are_those_of_the_parquet_export(workspace: rashomon.Workspace, home: Rashomon, tmp_path: Path) -> None:
    home.run("export", "hostile", "--format", "parquet", "--out", tmp_path)
    records = workspace.run("hostile").records()
    assert records.arrow().equals(parquet.read_table(tmp_path / "samples.parquet").replace_schema_metadata(None))
    assert [record.instance.id for record in records] == records.arrow()["id"].to_pylist()
    cells = workspace.run("hostile").tables().arrow()
    exported = parquet.read_table(tmp_path / "tables.parquet").to_pylist()
    assert [row for row in exported if row["row"] in cells["row"].to_pylist()] == cells.to_pylist()


def test_other_libraries_share_the_memory_of_arrow(workspace: rashomon.Workspace) -> None:
    records = workspace.run("text").records()
    address = places(records.arrow()["answer"])
    assert places(pyarrow.table(records)["answer"]) == address
    assert places(pyarrow.chunked_array(records.pandas()["answer"].array.__arrow_array__())) == address
    table = workspace.run("text").table()
    assert places(pyarrow.chunked_array(table.pandas()["value"].array.__arrow_array__())) == places(
        table.arrow()["value"]
    )


def test_polars_shares_the_memory_of_numbers(workspace: rashomon.Workspace) -> None:
    polars = pytest.importorskip("polars")
    table = workspace.run("text").table()
    for column in ("value", "low", "n"):
        (values,) = table.arrow()[column].chunks
        assert table.polars()[column].to_arrow().buffers()[1].address == values.buffers()[1].address
    records = workspace.run("text").records()
    assert polars.DataFrame(records)["answer"].to_list() == records.arrow()["answer"].to_pylist()


def places(column: pyarrow.ChunkedArray) -> list[int]:
    """Return the addresses of a column's memory."""
    return [buffer.address for chunk in column.chunks for buffer in chunk.buffers() if buffer is not None]


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = io.StringIO()
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.write(data)


def test_what_a_notebook_displays_is_escaped(workspace: rashomon.Workspace) -> None:
    run = workspace.run("hostile")
    displayed: list[Any] = [
        workspace,
        workspace.runs,
        run,
        run.records(),
        run.tables(),
        run.table(),
        workspace.runs.tables()["labels"],
    ]
    hostile = 0
    for item in displayed:
        tags = Tags(item._repr_html_())
        assert tags.names <= {"table", "thead", "tbody", "tr", "th", "td", "p", "b", "div", "ul", "li", "small"}
        assert "\x1b" not in tags.text.getvalue()
        assert "\u202e" not in tags.text.getvalue()
        assert "\x1b" not in repr(item)
        hostile += "alert(1)" in tags.text.getvalue()
    assert hostile >= 5


def test_a_figure_has_axes_and_is_saved(workspace: rashomon.Workspace, tmp_path: Path) -> None:
    plot = workspace.tables("text", "hostile")["labels"].plot()
    (axes,) = plot.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert "policy:always-text" in names
    axes.set_title("Mine")
    plot.save(tmp_path / "labels.svg")
    assert "Mine" in (tmp_path / "labels.svg").read_text("utf-8")
    assert plot._repr_png_().startswith(b"\x89PNG")
    for wrong in ("labels.exe", "none/labels.png"):
        with pytest.raises(rashomon.RashomonError):
            plot.save(tmp_path / wrong)
    with pytest.raises(rashomon.RashomonError):
        workspace.run("text").table("failures").plot()


def test_a_damaged_run_is_listed_with_its_problem(home: Rashomon, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "broken"
    folder.mkdir(parents=True)
    (folder / "run.sqlite").write_bytes(numpy.random.default_rng(0).bytes(4096))
    (run,) = rashomon.open(tmp_path).runs
    assert "broken" in run._repr_html_()
    for read in (lambda: run.state, run.records, run.tables):
        with pytest.raises(rashomon.RashomonError):
            read()


class EndsInDigit:
    """Whether an answer ends in a digit."""

    name = "digits"
    version = "1"
    benchmarks = ("cmc-bench",)

    def label(self, record: rashomon.Record) -> str | None:
        text = record.answer.text if record.answer else ""
        return None if "script" in text else "TEXT" if text[-1:].isdigit() else "NEITHER"


def test_a_judge_of_a_notebook_labels_in_its_process(tmp_path: Path) -> None:
    workspace = rashomon.open(furnish(Rashomon(tmp_path)).workspace)
    run = workspace.run("text")
    assert run.judge(EndsInDigit()) == 36
    assert run.judge(EndsInDigit()) == 0
    labels = set(run.records("digits").arrow()["label"].to_pylist())
    assert labels == {"TEXT"}
    hostile = workspace.run("hostile")
    hostile.judge(EndsInDigit())
    assert set(hostile.records("digits").arrow()["status"].to_pylist()) == {"unparsed"}
    assert {note for note in run.table(judge="digits").notes if "digits@1" in note}

    class Elsewhere(EndsInDigit):
        benchmarks = ("clash",)

    with pytest.raises(rashomon.RashomonError):
        run.judge(Elsewhere())


def test_a_judge_that_failed_judges_again_once_it_is_corrected(tmp_path: Path) -> None:
    run = rashomon.open(furnish(Rashomon(tmp_path)).workspace).run("text")

    class Misspelt(EndsInDigit):
        def label(self, record: rashomon.Record) -> str | None:
            return "TXET"

    with pytest.raises(rashomon.RashomonError):
        run.judge(Misspelt())
    assert run.judge(EndsInDigit()) == 36
    assert set(run.records("digits").arrow()["label"].to_pylist()) == {"TEXT"}


class Named(EndsInDigit):
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("name", ["match", "human:anna", "override:anna", "openai:gpt-5", "digits@2", "", cast(Any, 3)])
def test_a_judge_cannot_have_the_name_of_another_or_of_a_person(home: Rashomon, name: str) -> None:
    run = rashomon.open(home.workspace).run("text")
    before = run.records()[0].verdicts.keys()
    with pytest.raises(rashomon.RashomonError):
        run.judge(Named(name))
    assert run.records()[0].verdicts.keys() == before


@pytest.mark.parametrize("judge", ["strict", EndsInDigit, len, object(), None])
def test_what_is_no_judge_is_refused(workspace: rashomon.Workspace, judge: object) -> None:
    with pytest.raises(rashomon.RashomonError):
        workspace.run("text").judge(cast(Any, judge))


class SaysNothing(Exception):
    def __str__(self) -> str:
        raise ValueError


class Kind(enum.StrEnum):
    TEXT = "TEXT"


def raising() -> NoReturn:
    raise SaysNothing


class Wrong(FunctionJudge):
    """A judge whose author got the verdict wrong."""

    name = "wrong"
    description = "What is given."
    benchmarks = ("cmc-bench",)

    def __init__(self, version: int, answer: Callable[[], Any]) -> None:
        self.version, self.answer = str(version), answer

    def judge(self, record: rashomon.Record) -> rashomon.Verdict:
        verdict: rashomon.Verdict = self.answer()
        return verdict


WRONG: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: "TEXT",
    lambda: rashomon.Verdict("match@4", "labelled", "TEXT"),
    lambda: rashomon.Verdict("wrong@3", "labelled", None),
    lambda: rashomon.Verdict("wrong@4", cast(Any, "sure"), "TEXT"),
    lambda: rashomon.Verdict("wrong@5", "unparsed", "TEXT"),
    lambda: rashomon.Verdict("wrong@6", "unparsed", reason=cast(Any, None)),
    lambda: rashomon.Verdict("wrong@7", "labelled", "TEXT", raw=cast(Any, b"x")),
    lambda: rashomon.Verdict("wrong@8", "labelled", "TEXT", flags=cast(Any, [1])),
    lambda: rashomon.Verdict("wrong@9", "labelled", "TEXT", calls=-1),
    raising,
)


def test_what_is_no_verdict_is_a_failure_of_the_judge_and_damages_nothing(tmp_path: Path) -> None:
    workspace = rashomon.open(furnish(Rashomon(tmp_path)).workspace)
    run = workspace.run("text")
    before = run.records("match").arrow()["label"].to_pylist()
    for version, answer in enumerate(WRONG):
        with pytest.raises(rashomon.RashomonError):
            run.judge(Wrong(version, answer))
        assert set(run.records(f"wrong@{version}").arrow()["status"].to_pylist()) == {"judge-failed"}, version
    assert run.records("match").arrow()["label"].to_pylist() == before
    right = len(WRONG)
    run.judge(Wrong(right, lambda: rashomon.Verdict(f"wrong@{right}", "labelled", Kind.TEXT)))
    assert set(run.records(f"wrong@{right}").arrow()["label"].to_pylist()) == {"TEXT"}
    run.judge(Wrong(right + 1, lambda: rashomon.Verdict(f"wrong@{right + 1}", "undecided")))
    assert set(run.records(f"wrong@{right + 1}").arrow()["status"].to_pylist()) == {"undecided"}
