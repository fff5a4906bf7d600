"""Your rows: a table checked, looked at and built from, by keys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from app.tui.screens.own_rows_screen import OwnRowsScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import Confirm, ErrorDialog
from app.tui.widgets.mapping_form import MappingForm
from app.tui.widgets.terminal_picture import Picture
from benchmarks.build import Build
from tests.support.tui_computed import CHARTS, press, until_computed, until_settled
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot

TABLE = """image,question,answer,passage,conflict
0.png,How many kales?,43,,
1.png,How many kales?,68,The kales came to 68 in the end.,92
2.png,How many kales?,57,They came to another number.,
3.png,How many kales?,79,,
gone.png,How many kales?,50,,
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a table in the folder that the interface was opened in, three of its rows usable."""
    folder = tmp_path / "own"
    folder.mkdir()
    for number, chart in enumerate(sorted(CHARTS.glob("**/*.png"))[:4]):
        shutil.copy(chart, folder / f"{number}.png")
    (folder / "rows.csv").write_text(TABLE, "utf-8")
    monkeypatch.chdir(folder)
    return folder / "rows.csv"


async def opened(pilot: Pilot[Any], app: RashomonApp, typed: str) -> OwnRowsScreen:
    """Return the screen, with a table's path typed and read."""
    await pilot.press("f4")
    await pilot.pause()
    screen = app.screen
    assert isinstance(screen, OwnRowsScreen)
    screen.query_one("#input-table", Input).value = typed
    await press(pilot, "enter")
    return screen


@pytest.mark.parametrize("size", BOTH)
def test_a_table_is_checked_looked_at_and_built(
    size: tuple[int, int], stage: Stage, table: Path, snapshot: Snapshot
) -> None:
    built = stage.workspace.build_folder("cmc-bench")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "rows.csv")
        screen.query_one("#input-out", Input).placeholder = "BUILD"
        assert "3 of 5 rows are valid" in screen_text(app)
        assert "How many kales? │ " in screen_text(app)
        await press(pilot, "j", "n")
        await until(pilot, lambda: screen.query_one(Picture).children)
        assert "▸ image-correct" in screen_text(app)
        assert "The kales came to 92" in " ".join(screen_text(app).split())
        right = screen.query_one(Picture).media
        await press(pilot, "n")
        await until(pilot, lambda: screen.query_one(Picture).media != right)
        await press(pilot, "N")
        await until(pilot, lambda: screen.query_one(Picture).media == right)
        await until_settled(pilot)
        await snapshot(app, "rows")
        await press(pilot, "w")
        assert "→ write what it states in its text_answer column" in " ".join(screen_text(app).split())
        assert screen.query_one(Picture).media is None
        await until_settled(pilot)
        await snapshot(app, "rows-wrong")
        await press(pilot, "w")
        assert screen.row is not None
        assert screen.row.where == "rows.csv:6"
        await until(pilot, lambda: "question: How many kales?" in screen_text(app))
        assert "answer: 50" in screen_text(app)
        await pilot.press("b")
        assert isinstance(app.screen, CommandDialog)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))  # which waits for the process
        await until(pilot, lambda: "24 instances" in screen_text(app))
        assert "conflicts as your rows have them" in screen_text(app)
        await pilot.press("n")
        await until(pilot, lambda: "^n runs it" in screen_text(app))
        assert app.screen.query_one(Picture)
        assert Build.open(built).manifest["instances"] == 24
        table.write_text(TABLE.replace("68", "69"), "utf-8")
        await press(pilot, "r", "b")
        assert "into the question set rows" in screen_text(app)
        assert "The folder exists" not in screen_text(app), "the version before stays"
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await until(pilot, lambda: "version 2 of the set rows: 1 row changed" in " ".join(screen_text(app).split()))
        assert "changed: rows.csv:3: answer '68' -> '69'" in screen_text(app)
        await pilot.press("y")
        await until(pilot, lambda: "build folder     rows@2" in screen_text(app) and "24 instances" in screen_text(app))
        assert "rows (versions 1 to 2)" in screen_text(app)

    drive(stage.app(), script, size)
    assert Build.open(built).manifest["instances"] == 24
    assert built.samefile(stage.workspace.question_set("rows").latest.build)
    assert [version.number for version in stage.workspace.question_set("rows").versions] == [1, 2]


@pytest.mark.parametrize(("typed", "target"), [("./built", "built"), ("other", "workspace set")])
def test_the_build_goes_where_the_user_typed(stage: Stage, table: Path, typed: str, target: str) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "rows.csv")
        screen.query_one("#input-out", Input).value = typed
        await press(pilot, "b", "y")
        await until(pilot, lambda: "24 instances" in screen_text(app))

    drive(stage.app(), script)
    assert (table.parent / "built").exists() == (target == "built")
    assert [known.name for known in stage.workspace.question_sets()] == ([] if target == "built" else ["other"])


def test_a_corrected_table_is_read_again(stage: Stage, table: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "~/nowhere.csv")
        assert isinstance(app.screen, ErrorDialog)
        assert "there is no file" in app.screen.message
        await pilot.press("escape")
        screen.query_one("#input-table", Input).value = str(table.parent)
        await press(pilot, "enter")
        assert "is a folder" in screen_text(app)
        await pilot.press("escape")
        screen.query_one("#input-table", Input).value = str(table)
        await press(pilot, "enter")
        await press(pilot, "G")
        assert "is missing" in screen_text(app)
        shutil.copy(sorted(CHARTS.glob("**/*.png"))[4], table.parent / "gone.png")
        await press(pilot, "r")
        assert "4 of 5 rows are valid" in screen_text(app)
        table.write_text("image,question\n")
        await press(pilot, "r")
        assert screen.query_one(MappingForm).display
        assert "no column answer" in screen_text(app)

    drive(stage.app(), script)


@pytest.mark.parametrize("size", BOTH)
def test_a_retrieval_log_is_checked_and_built(
    size: tuple[int, int], stage: Stage, table: Path, snapshot: Snapshot
) -> None:
    line = {"question": "How many kales?", "passages": ["It was 12.", "Rye: 3"], "images": ["0.png"]}
    known = {"image_answer": "43", "text_answer": "12", "answer": "43"}
    lines = (line | known, line, line | {"images": ["gone.png"]})
    (table.parent / "log.jsonl").write_text("".join(json.dumps(fields) + "\n" for fields in lines), "utf-8")
    built = stage.workspace.build_folder("retrieval")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "log.jsonl")
        await until(pilot, lambda: screen.query_one(Picture).children)
        assert "2 of 3 rows are valid" in screen_text(app)
        assert screen.query_one("#field-reader").display
        screen.query_one("#input-out", Input).placeholder = "BUILD"
        await until_settled(pilot)
        await snapshot(app, "rows-log")
        await pilot.press("b", "y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        screen.query_one("#input-table", Input).value = "rows.csv"
        await press(pilot, "r")
        assert not screen.query_one("#field-reader").display

    drive(stage.app(), script, size)
    assert Build.open(built).manifest["instances"] == 3


def test_nothing_is_built_where_no_row_can_be_used(stage: Stage, table: Path) -> None:
    table.write_text("image,question,answer\ngone.png,one?,5\n")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await opened(pilot, app, "rows.csv")
        await pilot.press("b")
        await until_computed(pilot)
        assert not isinstance(app.screen, CommandDialog)
        assert "0 of 1 rows are valid" in screen_text(app)
        assert not stage.workspace.build_folder("cmc-bench").exists()

    drive(stage.app(), script)


FOREIGN = """Seite,Frage,Antwort,[b]x[/b]\x1b[31m
0.png,How many kales?,43,
1.png,How many [red]kales[/]?,68,
2.png,What of kales?,57,
"""


@pytest.mark.parametrize("size", BOTH)
def test_unknown_keys_are_asked_for_and_go_into_the_build(
    size: tuple[int, int], stage: Stage, table: Path, snapshot: Snapshot
) -> None:
    table.write_text(FOREIGN, "utf-8")
    built = stage.workspace.build_folder("cmc-bench")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "rows.csv")
        form = screen.query_one(MappingForm)
        assert form.mapping == "question=frage,image=seite,answer=antwort"
        assert "--map" not in screen_text(app)
        assert len(screen.query("#input-map-text_answer, #input-map-image_answer, #input-map-trust")) == 3
        await pilot.press("down", "down")
        assert app.focused is screen.query_one("#input-map-answer")
        await pilot.press("up")
        assert app.focused is screen.query_one("#input-map-image")
        await until(pilot, lambda: "How many [red]kales[/]? │ 68 │ 1.png" in screen_text(app))
        screen.query_one("#input-out", Input).placeholder = "BUILD"
        await until_settled(pilot)
        await snapshot(app, "rows-mapping")
        screen.query_one("#input-map-answer", Input).value = "frag"
        await until(pilot, lambda: "no column frag" in screen_text(app))
        await pilot.press("enter")
        await until_computed(pilot)
        assert form.display
        assert form.mapping == "question=frage,image=seite,answer=frag"
        screen.query_one("#input-map-answer", Input).value = "antwort"
        await press(pilot, "enter")
        assert not form.display
        assert "3 of 3 rows are valid" in screen_text(app)
        await press(pilot, "r")
        assert "3 of 3 rows are valid" in screen_text(app)
        await pilot.press("b")
        assert isinstance(app.screen, CommandDialog)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")

    drive(stage.app(), script, size)
    assert Build.open(built).manifest["instances"] == 15  # each without another picture that answers it


def test_a_log_of_another_tool_is_asked_for_its_images(stage: Stage, table: Path) -> None:
    line = {"user_input": "How many kales?", "retrieved_contexts": ["It was 12."], "response": "12", "page_": "0.png"}
    (table.parent / "log.jsonl").write_text(json.dumps(line) + "\n", "utf-8")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        screen = await opened(pilot, app, "log.jsonl")
        form = screen.query_one(MappingForm)
        assert form.mapping == "image=page_"
        await press(pilot, "enter")
        assert not form.display
        assert screen.benchmark.name == "retrieval"
        assert "1 of 1 rows are valid" in screen_text(app)
        assert "read as a ragas log" in screen_text(app)
        screen.query_one("#input-table", Input).value = "rows.csv"
        screen.set_focus(screen.query_one("#input-table"))
        await press(pilot, "enter")
        assert screen.mapping == ""
        assert "3 of 5 rows are valid" in screen_text(app)

    drive(stage.app(), script)
