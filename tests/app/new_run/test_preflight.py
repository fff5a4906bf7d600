"""Checks of a spec while it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.engine.run_plan import plan_run
from app.engine.workers.run_worker import Worker
from app.engine.workers.worker_job import Job
from app.new_run.preflight import Preflight, PreflightChecker
from app.new_run.spec_form import check_runs, read_form
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.tui.widgets.estimate_line import form_summary
from tests.support.demo import FOUR_BIT


def look(looker: PreflightChecker, **typed: Any) -> Preflight:
    spec, wrong = read_form({"benchmark": "cmc-bench", "model": ["policy:random"], **typed})
    assert spec is not None, wrong
    return looker.check(spec)


def test_runs_have_the_names_and_instances_that_a_dry_run_finds(workspace: Workspace) -> None:
    typed = {"model": ["policy:random", str(FOUR_BIT)], "prompt_set": ["paper", "conflict-aware"], "limit": "3"}
    result = look(PreflightChecker(workspace), **typed)
    spec, _ = read_form({"benchmark": "cmc-bench", **typed})
    assert spec is not None
    checked = check_runs(workspace, spec)
    assert [run.name for run in result.runs] == [run.folder.name for run in checked]
    assert [list(run.estimate.instances) for run in result.runs] == [list(run.instances) for run in checked]
    assert not result.costs
    assert not result.warnings


def test_runs_that_exist_announce_what_is_left_of_them(workspace: Workspace) -> None:
    spec, _ = read_form({"benchmark": "cmc-bench", "model": ["policy:random"], "limit": "2"})
    assert spec is not None
    (checked,) = check_runs(workspace, spec)
    folder = plan_run(workspace, checked).folder
    assert announced(workspace) == "○ started before, will resume: NAME, 0 of 16 answered"
    assert Worker(Job((folder,), ("match",), data=checked.build.path, model="policy:random")).work() == 0
    (run,) = look(PreflightChecker(workspace), limit="2").runs
    assert (run.finished, run.estimate.seconds) == (True, 0)
    assert announced(workspace) == "✓ finished already, nothing is run: NAME"
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
    (run,) = look(PreflightChecker(workspace), limit="2").runs
    assert (run.finished, run.estimate.left) == (False, 2)
    assert announced(workspace) == "○ started before, will resume: NAME, 14 of 16 answered"


def announced(workspace: Workspace) -> str:
    """Return what the form says of the run that exists, without its name."""
    preflight = look(PreflightChecker(workspace), limit="2")
    *_, line = form_summary({}, {}, preflight, None).plain.splitlines()
    return line.replace(preflight.runs[0].name, "NAME")


def test_what_a_build_holds_is_read_once_until_it_changes(workspace: Workspace, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(workspace.build_folder("cmc-bench").resolve(), copy)
    looker = PreflightChecker(workspace)
    (first,) = look(looker, data=str(copy)).runs
    (second,) = look(looker, data=str(copy), limit="2").runs
    assert second.contents is first.contents
    with (copy / "instances.jsonl").open("a") as rows:
        rows.write("\n")
    message = look(looker, data=str(copy)).problems
    assert message is not None
    assert "was changed after the build" in message["data"]


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({"model": ["org/none"]}, "model", "rashomon models get"),
        ({"judge": ["matsch"]}, "judge", "did you mean 'match'"),
        ({"judge": ["policy:random"]}, "judge", "cannot judge"),
        ({"data": "/nowhere"}, "data", "not a built benchmark"),
        ({"benchmark": "clash"}, "data", "data get clash`, then `"),
        ({"strata": {"type": ["nothing"]}}, "strata", "no type 'nothing'"),
    ],
)
def test_what_is_not_there_is_said_by_field(workspace: Workspace, typed: dict[str, Any], field: str, says: str) -> None:
    wrong = look(PreflightChecker(workspace), **typed).problems
    assert wrong is not None
    assert says in wrong[field]


def test_what_remote_engines_may_cost_and_lack_is_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("mlx_backends.remote.api_keys._keychain", lambda name: None)
    prices = {"input_price": "1", "output_price": "2", "limit": "2"}
    result = look(PreflightChecker(workspace), judge=["match", "openai:gpt-5-mini"], **prices)
    (cost,) = result.costs
    assert cost.startswith("judge openai:gpt-5-mini: ")
    assert f"{len(result.runs[0].estimate.instances)} calls" in cost
    assert "which cost at most about" in cost
    (lacks,) = result.warnings
    assert "there is no key OPENAI_API_KEY" in lacks
    (cost,) = look(PreflightChecker(workspace), model=["openai:gpt-5"], **prices).costs
    assert cost.startswith("openai:gpt-5: ")
    assert "images" in cost


def test_a_model_that_does_not_fit_is_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlx_backends.models.memory_and_cache_sizes._available", lambda device: (0, "memory"))
    (message,) = look(PreflightChecker(workspace), model=[str(FOUR_BIT)]).warnings
    assert "does not fit" in message
