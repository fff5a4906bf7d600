"""The demo run again: what the earlier one holds stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.system import demo_command as module
from app.store.workspace import DEMOS_FOLDER, Workspace


@pytest.mark.parametrize("benchmark", [*module.DEMOS])
def test_what_should_win_is_asked_only_where_a_scorecard_reads_it(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "execute_runs", lambda *arguments, **options: 0)
    module.demo(Workspace(tmp_path), benchmark, display="plain")
    assert ("--trust" in capsys.readouterr().out) == (benchmark == "cmc-bench")


def test_a_demo_run_again_moves_the_earlier_one_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "execute_runs", lambda *arguments, **options: 0)
    home = tmp_path / DEMOS_FOLDER / "clash"
    for number in range(3):
        assert module.demo(Workspace(tmp_path), "clash", display="plain") == 0
        (home / "a label").write_text(str(number))
    kept = {folder.name: (folder / "a label").read_text() for folder in home.parent.iterdir() if folder.is_dir()}
    assert kept == {"clash": "2", "clash-1": "0", "clash-2": "1"}
