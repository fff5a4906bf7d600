"""Nothing is lost or labelled wrong by somebody who types ahead, marks runs, or does not look."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandList, CommandPalette
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from app.engine.run_control import is_paused
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress, JudgedCounts
from app.store.workspace import Workspace
from app.tui.key_commands import COMMANDS, commands_of
from app.tui.screens.label_screen import LabelScreen
from app.tui.screens.live_lines import judge_lines
from app.tui.screens.live_screen import LiveScreen
from app.tui.screens.new_run_screen import NewRunScreen
from app.tui.screens.runs_screen import RunsScreen
from app.tui.screens.samples_screen import SamplesScreen
from app.tui.screens.tables_screen import TablesScreen
from app.tui.tui_app import RashomonApp
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import Confirm, Dialog, ErrorDialog, StopDialog, TextDialog
from app.tui.widgets.override_dialog import OverrideDialog
from app.tui.widgets.virtual_table import VirtualTable
from app.tui.workspace_watcher import WorkspaceSnapshot, WorkspaceWatcher
from benchmarks.errors import StoreError
from tests.support.runs import instances
from tests.support.tui_burst import burst
from tests.support.tui_stage import Stage, drive, screen_text, until

DOCS = Path(__file__).resolve().parents[2] / "docs"


def title(app: RashomonApp) -> str:
    return screen_text(app).splitlines()[0]


async def painted(pilot: Pilot[Any]) -> None:
    """Wait until the dialog can be read."""
    screen = pilot.app.screen
    assert isinstance(screen, Dialog)
    await until(pilot, lambda: screen.displayed)


# --- typing ahead ------------------------------------------------------------------------------------


def test_keys_after_the_filter_key_go_into_the_filter(stage: Stage) -> None:
    run = stage.run("some-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await burst(pilot, "/dy")
        assert app.screen.query_one("#filter", Input).value == "dy"
        assert isinstance(app.screen, RunsScreen)
        assert run.exists()

    drive(stage.app(), script)


def test_a_question_takes_no_key_from_before_it_was_on_the_screen(stage: Stage) -> None:
    run = stage.run("some-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await burst(pilot, "dyyyy")
        assert isinstance(app.screen, Confirm)
        assert run.exists()
        await painted(pilot)
        await burst(pilot, "y")
        await until(pilot, lambda: not run.exists())
        await until(pilot, lambda: "u Undo delete" in screen_text(app))
        await burst(pilot, "u")
        await until(pilot, lambda: "some-run" in screen_text(app))
        assert run.exists()

    drive(stage.app(), script)


@pytest.mark.parametrize("is_mounted", [False, True])
def test_a_key_that_bubbles_up_when_a_dialog_opens_does_nothing_in_it(stage: Stage, is_mounted: bool) -> None:
    """Textual looks up bindings once the key has bubbled up: those of the dialog that has opened since."""

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        dialog = ChoiceDialog("Which?", ["one", "two"])
        mounted = app.push_screen(dialog)
        if is_mounted:
            await mounted
            dialog.painted.mark_undisplayed()
        for name in ("j", "enter", "escape"):
            key = Key(name, None)
            key._set_forwarded()
            await app.on_event(key)
        await until(pilot, lambda: dialog.displayed)
        assert app.screen is dialog
        assert dialog.query_one(OptionList).highlighted == 0
        await burst(pilot, "j")
        assert dialog.query_one(OptionList).highlighted == 1

    drive(stage.app(), script)


@pytest.mark.slow
def test_what_is_typed_ahead_of_a_dialog_overrides_and_labels_nothing(stage: Stage) -> None:
    run = stage.run("some-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("samples", [run])
        await until(pilot, lambda: "aligned" in screen_text(app))
        await until(pilot, lambda: app.screen.detail is not None)  # type: ignore[attr-defined]
        await burst(pilot, ["o", "1", "enter", "x", "enter", "enter", "enter"])
        assert isinstance(app.screen, OverrideDialog)
        await painted(pilot)
        await burst(pilot, ["escape", "6", "enter", "1", "2", "3", "1"])
        assert isinstance(app.screen, TextDialog)
        await painted(pilot)
        await burst(pilot, ["ctrl+u", *"ann", "enter", "1", "2", "3"])
        await until(pilot, lambda: "0 of" in screen_text(app))
        assert "0 of" in title(app)

    drive(stage.app(), script)
    for name in ("run.sqlite", "run.sqlite-wal"):
        if (run / name).exists():
            assert b"override:" not in (run / name).read_bytes()


# --- the run that is meant ------------------------------------------------------------------------------


def test_what_is_about_one_run_follows_the_cursor_and_names_it(stage: Stage) -> None:
    for name in ("third", "second", "first"):
        stage.run(name)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("space", "j", "space", "j")
        assert app.screen.query_one(VirtualTable).marks == {"first", "second"}
        for key, kind in (("2", LiveScreen), ("3", SamplesScreen), ("6", LabelScreen)):
            await pilot.press(key)
            await until(pilot, lambda kind=kind: any(isinstance(s, kind) for s in app.screen_stack))  # type: ignore[misc]
            await until(pilot, lambda: "third" in title(app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, TablesScreen))
        assert "first" in title(app)
        assert "second" in title(app)
        assert "third" not in title(app)
        await pilot.press("s")  # of which of the two?
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, SamplesScreen))
        assert "first" in title(app)

    drive(stage.app(), script)


# --- labelling ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_digits_label_and_do_nothing_else_while_labelling(stage: Stage) -> None:
    run = stage.run("some-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("label", [run])
        await pilot.pause()
        await pilot.press("ctrl+u", *"ann", "enter")
        screen = app.screen
        assert isinstance(screen, LabelScreen)
        await until(pilot, lambda: screen.session is not None and screen._text.displayed)
        footer = screen_text(app).splitlines()[-1]
        assert " 1 IMAGE  2 TEXT  3 BOTH  4 NEITHER  5 ABSTAIN " in footer
        await pilot.press("question_mark")
        await until(pilot, lambda: "Help: Label" in screen_text(app))
        text = "\n".join(str(static.content) for static in app.screen.query(Static))
        for label in ("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"):
            assert label in text
        assert not re.search(r"Label [1-9]", text)
        keys = re.findall(r"^ (\S+(?: \S+)*) {2,}", text, re.MULTILINE)
        listed_keys = [key for group in keys for key in group.split()]
        assert len(listed_keys) == len(set(listed_keys)), "no key is listed with two meanings"
        await pilot.press("escape", *"67890")
        assert app.screen is screen, "digits without a label do nothing"
        assert screen.session is not None
        assert screen.session.count == 0
        await pilot.press("5")
        await until(pilot, lambda: "1 of 24 labelled" in title(app))

    drive(stage.app(), script)


def test_every_digit_that_opens_a_screen_elsewhere_belongs_to_label() -> None:
    elsewhere = {key for command in commands_of("everywhere") for key in command.keys.split(",") if key.isdigit()}
    keys = {key for command in commands_of("label") for key in command.keys.split(",")}
    assert elsewhere <= keys
    assert not (keys - set("0123456789")) & {k for c in commands_of("everywhere") for k in c.keys.split(",")}


# --- judges without verdicts ----------------------------------------------------------------------------


def test_who_overrides_is_behind_nothing(stage: Stage) -> None:
    from app.report.progress.running_accuracy import judging_progress

    for person in ("override:root@1", "human:ann@1"):
        judged = {person: JudgedCounts(), "match@4": JudgedCounts(labelled=4, correct=4)}
        p = ConditionProgress("aligned", 4, 4, 0, 0, 10, 1.0, 0, judged)
        run = RunSummary("r", "done", {"judge": ["match"]}, (p,))
        assert judging_progress(run) == []
        assert judge_lines(run) == ["match@4: 4 labelled"]


def test_an_undone_override_leaves_no_judge_behind(stage: Stage) -> None:
    run = stage.run("some-run")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("samples", [run])
        await until(pilot, lambda: app.screen.detail is not None)  # type: ignore[attr-defined]
        await pilot.press("o")
        await pilot.press("2", "enter", *"seen", "enter", "ctrl+u", *"ann", "enter")
        await until(pilot, lambda: "TEXT by ann" in screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: "override undone" in screen_text(app))
        app.clear_notifications()
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "match" in screen_text(app))
        assert "override" not in screen_text(app)
        assert "waiting" not in screen_text(app)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert "/24 judged by" not in screen_text(app)
        assert "override:ann@1" not in app.results.judges((run,))

    drive(stage.app(), script)


# --- keys that the documentation promises ---------------------------------------------------------------


def test_p_pauses_and_resumes_a_run(stage: Stage) -> None:
    folder = stage.run("running", state="running", done=3)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen) and "● running" in screen_text(app))
        await pilot.press("p")
        await until(pilot, lambda: is_paused(folder) and "‖ paused" in screen_text(app))
        await pilot.press("p")
        await until(pilot, lambda: not is_paused(folder) and "● running" in screen_text(app))

    drive(stage.app(), script)


def test_a_form_is_not_discarded_without_a_question(stage: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.screen.benchmark is not None)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.screen.benchmark is not None)
        form = app.screen
        await pilot.press("j", "space")
        for key in ("escape", "1", "f2", "ctrl+q"):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is form)
        await pilot.press("escape", "y")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))

    drive(stage.app(), script)


def test_stopping_a_run_of_a_batch_asks_which_is_meant(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.run("running", state="running", done=3)
    stopped: list[str] = []
    monkeypatch.setattr("app.tui.run_actions.batch_pid", lambda folder: os.getpid())
    monkeypatch.setattr("app.tui.tui_processes.stop_run", lambda folder: stopped.append("run"))
    monkeypatch.setattr("app.tui.tui_processes.stop_batch", lambda folder: stopped.append("batch"))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for key, then in (("n", []), ("y", ["run"]), ("b", ["run", "batch"]), ("enter", ["run", "batch"])):
            await pilot.press("x")
            await until(pilot, lambda: isinstance(app.screen, StopDialog))
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))
            assert stopped == then
        monkeypatch.setattr("app.tui.run_actions.batch_pid", lambda folder: None)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        assert stopped[2:] == ["run"]

    drive(stage.app(), script)


def test_every_key_in_the_documentation_works() -> None:
    """The first column of each table of keys, against the registry."""
    known = {key for command in COMMANDS for key in command.keys.split(",")}
    names = {"Enter": "enter", "space": "space", "Esc": "escape", "arrows": "up", "PgUp": "pageup", "PgDn": "pagedown"}
    names |= {
        "Delete": "delete",
        "/": "slash",
        "?": "question_mark",
        ":": "colon",
        "[": "left_square_bracket",
        "F1": "f1",
        "F2": "f2",
    }
    names |= {"]": "right_square_bracket", "+": "plus", "-": "minus", "Tab": "enter"}
    matches = 0
    for page in ("tui.md", "new-run.md", "samples.md"):
        if not (DOCS / page).exists():
            continue
        for table in re.findall(r"\| keys? \|.*?\n\|[-| ]+\n((?:\|.*\n)+)", (DOCS / page).read_text("utf-8")):
            for line in table.splitlines():
                for word in re.split(r"[,\s]+| to ", line.split("|")[1].replace("`", "").strip()):
                    if word in ("", "to", "and"):
                        continue
                    assert names.get(word, word) in known, f"{page}: {word}"
                    matches += 1
    assert matches > 20


# --- what there is to see -------------------------------------------------------------------------------


def test_a_list_still_being_read_is_not_called_empty(stage: Stage) -> None:
    stage.run("some-run")
    app = RashomonApp(stage.workspace, images="half", watch=False)

    async def script(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        assert "no runs yet" not in screen_text(app)
        assert "reading the runs" in screen_text(app)
        whole = WorkspaceWatcher(stage.workspace).read()
        app.post_message(app.WorkspaceChanged(WorkspaceSnapshot(whole.runs, None, False, 5000, stage.path)))
        await until(pilot, lambda: "reading 1 of 5,000" in title(app))
        assert "some-run" in screen_text(app)
        app.post_message(app.WorkspaceChanged(whole))
        await until(pilot, lambda: "reading" not in screen_text(app))

    import asyncio

    async def perform() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await script(pilot)

    asyncio.run(perform())


def test_many_runs_appear_as_they_are_read_the_newest_first(stage: Stage) -> None:
    asked = instances(1)
    for number in range(6):
        folder = stage.run(f"run-{number}", asked=asked)
        for file in folder.glob("run.sqlite*"):
            os.utime(file, (1000 + number, 1000 + number))
    seen = [(len(shot.runs), shot.total, shot.complete) for shot in WorkspaceWatcher(stage.workspace)._read(0.0)]
    assert seen == [*((number, 6, False) for number in range(1, 6)), (6, 6, True)]
    first = next(WorkspaceWatcher(stage.workspace)._read(0.0))
    assert [run.name for run in first.runs] == ["run-5"]


def test_an_empty_workspace_names_the_demos_and_opens_one(stage: Stage) -> None:
    stage.workspace.make()
    demo = Stage(stage.path / "rashomon-demo" / "cmc-bench")
    demo.run("of-the-demo")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "the demo's runs" in screen_text(app))
        await pilot.press("D")
        await until(pilot, lambda: "of-the-demo" in screen_text(app))
        assert "rashomon-demo/cmc-bench" in title(app)
        assert app.workspace.path == demo.path
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("enter")
        await until(pilot, lambda: app.workspace.path == stage.path and "the demo's runs" in screen_text(app))

    drive(stage.app(), script)


# --- what goes wrong is said ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_may_not_be_labelled_is_a_message(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stage.run("received")

    def refuse(*arguments: object, **named: object) -> None:
        raise StoreError("received was made elsewhere; adopt it first.")

    monkeypatch.setattr("app.tui.screens.label_screen.draw_sample", refuse)
    monkeypatch.setattr("app.tui.screens.session_overrides.override", refuse)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        app.open_screen("label", [run])
        await pilot.pause()
        await pilot.press("ctrl+u", *"ann", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "adopt it first" in screen_text(app))
        await pilot.press("escape")
        app.open_screen("samples", [run])
        await until(pilot, lambda: app.screen.detail is not None)  # type: ignore[attr-defined]
        await pilot.press("o")
        await pilot.press("2", "enter", *"seen", "enter", "ctrl+u", *"ann", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and "adopt it first" in screen_text(app))

    drive(stage.app(), script)


def test_what_a_killed_interface_deleted_is_offered_by_the_next(stage: Stage) -> None:
    run = stage.run("some-run")
    killed = stage.app()
    killed.trash.delete(run)
    assert killed.trash._lock is not None
    killed.trash._lock.release()  # as the kernel does

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await until(pilot, lambda: "ended abnormally" in screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: "✓ done" in screen_text(app))
        assert run.exists()

    drive(stage.app(), script)
    assert Workspace(stage.path).run_names() == ["some-run"]


def test_a_key_for_the_palettes_list_before_it_is_laid_out_ends_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("one")

    def too_early(self: CommandList) -> None:
        raise KeyError(0)

    monkeypatch.setattr(CommandList, "action_page_down", too_early)

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press("pagedown", "escape")
        await until(pilot, lambda: not isinstance(app.screen, CommandPalette))

    drive(stage.app(), script, (80, 24))
