"""Folders of trainings: values that somebody else wrote, and states while workers begin and end."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from app.commands.training.train_command import trainings
from app.engine.training.training_folder import Training
from app.engine.training.training_supervisor import TrainingSupervisor
from app.store.workspace import Workspace
from tests.support.trainings import staged_training

LARGE = "1" + "0" * 400


def replace_line(folder: Path, line: str) -> None:
    (folder / "log.jsonl").write_text(line + "\n")


@pytest.mark.parametrize(
    "line",
    [
        f'{{"step": 1, "loss": {LARGE}}}',
        f'{{"step": {LARGE}, "loss": 1}}',
        f'{{"step": "{LARGE}", "loss": 1}}',
        '{"step": -1, "loss": 1}',
        f'{{"step": 1, "loss": "1", "seconds": {LARGE}}}',
        '{"step": [], "loss": {}}',
        "[]",
    ],
)
def test_log_with_a_line_of_no_training_hides_nothing(
    tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path)
    replace_line(staged_training(workspace, "received", done=1).path, line)
    staged_training(workspace, "own", done=3)
    trainings(workspace, as_json=True)
    rows = {row["name"]: (row["step"], row["loss"]) for row in json.loads(capsys.readouterr().out)["result"]}
    assert rows["received"] == (0, None)
    assert rows["own"][0] == 3


@pytest.mark.parametrize("key", ["created", "steps"])
@pytest.mark.parametrize("value", [LARGE, "[]", "null", '"many"'])
def test_a_damaged_training_hides_no_other(
    tmp_path: Path, key: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path)
    file = staged_training(workspace, "received", done=1).path / "training.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: "VALUE"}).replace('"VALUE"', value))
    staged_training(workspace, "own", done=3)
    trainings(workspace, as_json=True)
    output = capsys.readouterr()
    assert [row["name"] for row in json.loads(output.out)["result"]] == ["own"]
    assert "received" in output.err


@pytest.mark.parametrize("field", ["state", "note"])
def test_state_reaches_the_terminal_as_text(tmp_path: Path, field: str, capsys: pytest.CaptureFixture[str]) -> None:
    training = staged_training(Workspace(tmp_path), "received", done=1)
    state = {"state": "failed", "note": "", field: "\x1b]0;title\x07\x1b[2J"}
    (training.path / "state.json").write_text(json.dumps(state))
    trainings(Workspace(tmp_path), as_json=False)
    assert "\x1b" not in capsys.readouterr().out


def test_a_worker_that_ends_while_its_training_is_read_did_not_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = staged_training(Workspace(tmp_path), "t", state="training", done=20)

    def end(training: Training) -> None:
        monkeypatch.undo()
        training.note("failed", "the loss is no number.")

    monkeypatch.setattr(Training, "worker", end)
    assert training.state() == ("failed", "the loss is no number.")


def test_a_training_is_planned_until_its_worker_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = staged_training(Workspace(tmp_path), "t", state="training", done=20)
    states: list[str] = []
    supervisor = TrainingSupervisor(training, lambda state, note, curve: states.append(state), print)
    with subprocess.Popen(["sleep", "60"]) as worker:
        supervisor._worker = worker
        supervisor._show_progress()
        with training.lock() as lock:
            lock.acquire(f"process {worker.pid}")
            supervisor._show_progress()
        worker.kill()
        worker.wait()
        supervisor._show_progress()
    assert states == ["planned", "training", "interrupted"]
