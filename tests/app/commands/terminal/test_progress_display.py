"""Displays of a batch, which say of a run what the list of runs says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands.results.runs_command import runs
from app.commands.results.show_command import ShowArguments, show
from app.commands.terminal.progress_display import JsonDisplay, PlainDisplay
from app.json_output.json_events import outcome
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.tui.workspace_watcher import WorkspaceWatcher
from tests.support.json_output import json_result
from tests.support.runs import instances, says
from tests.support.tui_stage import Stage

ACTIVE = ("queued", "loading", "running", "judging")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("state", [*ACTIVE, "interrupted", "stopped", "failed"])
def test_every_display_shows_the_same_state_note_and_counts(
    stage: Stage, capsys: pytest.CaptureFixture[str], state: str, dies: bool
) -> None:
    folder = stage.run("r", state=state, note="of some kind", done=3)
    with RunStore.open(folder) as store:
        store.set_meta("spec", store.meta("spec") | {"judge": ["match", "another"]})
    if dies and state in ACTIVE:
        stage.die(folder)
    runs(stage.workspace, as_json=False)
    listed = capsys.readouterr().out.splitlines()[0]
    runs(stage.workspace, as_json=True)
    (facts,) = json_result(capsys.readouterr().out)
    lines: list[str] = []
    PlainDisplay(lines.append).update([read_summary(folder)])
    JsonDisplay(lines.append).update([read_summary(folder)])
    plain, line = lines[0], json.loads(lines[1])
    (watched,) = WorkspaceWatcher(stage.workspace).read().runs
    keys = ("state", "note", "done", "total", "conditions")
    assert {key: facts[key] for key in keys} == {key: line[key] for key in keys}
    assert (watched.summary.state, watched.summary.note) == (facts["state"], facts["note"])
    for text in (f"{facts['state']} ({facts['note']})", "3/24", "0/24 judged by another"):
        assert text in listed
        assert text in plain


def test_a_note_in_json_names_no_folder_of_this_machine(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stage.run("r", state="failed", note=f"cannot read {stage.workspace.path}/benchmarks/b", done=3)
    outcome.begin(stage.workspace.path)
    lines: list[str] = []
    JsonDisplay(lines.append).update([read_summary(folder)])
    runs(stage.workspace, as_json=True)
    (listed,) = json_result(capsys.readouterr().out)
    show(stage.workspace, ["r"], ShowArguments(as_json=True))
    (shown,) = json_result(capsys.readouterr().out)["runs"]
    assert [run["note"] for run in (json.loads(lines[0]), listed, shown)] == ["cannot read benchmarks/b"] * 3


def test_the_time_of_loading_and_of_checks_slows_no_answers_down(stage: Stage) -> None:
    folder = stage.run("r", state="loading", done=0)
    lines: list[str] = []
    display = JsonDisplay(lines.append)
    display.every_seconds = 0
    for state, done in (("loading", 0), ("running", 0), ("running", 1), ("loading", 1), ("running", 1)):
        stage.answer(folder, instances(4)[:done], says("12"))
        stage.note(folder, state)
        display.update([read_summary(folder)])
    known = [json.loads(line)["answers_per_second"] is not None for line in lines]
    assert known == [False, False, True, False, False]
