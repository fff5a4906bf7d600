"""Folders of trainings that somebody else wrote: no value in them hides another training or reaches the terminal raw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.commands.train import trainings
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
    rows = {row["name"]: (row["step"], row["loss"]) for row in json.loads(capsys.readouterr().out)}
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
    assert [row["name"] for row in json.loads(output.out)] == ["own"]
    assert "received" in output.err


@pytest.mark.parametrize("field", ["state", "note"])
def test_state_reaches_the_terminal_as_text(tmp_path: Path, field: str, capsys: pytest.CaptureFixture[str]) -> None:
    training = staged_training(Workspace(tmp_path), "received", done=1)
    state = {"state": "failed", "note": "", field: "\x1b]0;title\x07\x1b[2J"}
    (training.path / "state.json").write_text(json.dumps(state))
    trainings(Workspace(tmp_path), as_json=False)
    assert "\x1b" not in capsys.readouterr().out
