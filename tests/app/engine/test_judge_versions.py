"""Labels of an earlier version of a judge stay, and its tables and exports with them, until a run is judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.exports.export_formats import export_runs
from app.exports.export_input import ExportOptions
from app.report.tables.judge_selection import present_judges, resolve_judge
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from judges.cmc_rules.cmc_match_judge import Match
from tests.support.command import Rashomon
from tests.support.runs import instances, make_run, says


def exported(workspace: Workspace, run: Path, out: Path) -> dict[str, bytes]:
    export_runs(workspace, [run], formats=("csv", "json", "md"), out=out, options=ExportOptions(canonical=True))
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def test_a_run_judged_by_an_earlier_version_keeps_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(tmp_path / "workspace")
    with monkeypatch.context() as earlier:
        earlier.setattr(Match, "version", "1")
        run = make_run(workspace, "old", instances(4), says("The answer is 12. Sorry, I meant 15."))
        before = exported(workspace, run, tmp_path / "before")
    assert Match.version != "1"
    assert exported(workspace, run, tmp_path / "after") == before
    with RunStore.open(run) as store:
        assert resolve_judge([store], None) == "match@1"

    Rashomon(tmp_path).run("judge", "old", "--judge", "match")
    with RunStore.open(run) as store:
        assert set(present_judges([store])) == {"match@1", f"match@{Match.version}"}
        assert resolve_judge([store], None) == f"match@{Match.version}"
        assert resolve_judge([store], "match@1") == "match@1"
        assert all(len({n.labelled for n in p.judged.values()}) == 1 for p in store.progress())
