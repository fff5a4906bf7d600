"""The plan of a paper's setup: printed from what a machine knows, and carried out by one command against a Hub on loopback."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.new_run.setup_plan import plan_setup
from app.papers.paper_setups import find_setup, setup_names
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import ModelError
from mlx_backends.models.memory_and_cache_sizes import MemoryFit
from mlx_backends.models.model_catalog import catalog_models
from tests.app.commands.terminal.test_confirm_addresses import on_terminal
from tests.benchmarks.test_vqa import okvqa_copy
from tests.support.command import ROOT, Rashomon
from tests.support.demo import write_table
from tests.support.fake_hub import FakeHub, Repo

LLAVA = "mlx-community/llava-1.5-7b-4bit"
DEMO = ROOT / "assets" / "demo" / "model-4bit"
OKVQA = ("--batch", "paper:okvqa", "--max-tokens", "4")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    """A Hub with OK-VQA, six questions of it, and the demo's tiny model in the place of LLaVA."""
    with FakeHub().running() as running:
        running.repos["lmms-lab/OK-VQA"] = Repo("dataset", contents(okvqa_copy(tmp_path / "hub")), "cc-by-4.0")
        running.repos[LLAVA] = Repo("model", contents(DEMO), "llama2")
        yield running


@pytest.fixture
def empty(hub: FakeHub, tmp_path: Path) -> Rashomon:
    """A home without anything, on the network of the Hub."""
    return Rashomon(tmp_path, variables=hub.variables)


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process to come so far."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(rashomon: Rashomon) -> list[Path]:
    return sorted(file.parent for file in (rashomon.workspace / "runs").glob("[!.]*/run.sqlite"))


def answered(rashomon: Rashomon) -> int:
    (run,) = runs(rashomon)
    with RunStore.read(run) as store:
        return sum(record.answer is not None for record in store.records())


@pytest.mark.parametrize("name", setup_names())
def test_an_empty_workspace_gets_the_whole_plan(name: str, tmp_path: Path) -> None:
    home = Rashomon(tmp_path)  # without a network, so that it cannot be carried out
    done = home.run("--batch", f"paper:{name}", "--dry-run", "--display", "plain", "--force", code=3)
    setup, plan = find_setup(name), done.stdout
    assert done.stderr == "rashomon: HF_HUB_OFFLINE is set, so nothing is fetched; unset it and run the same command.\n"
    models = [setup.values["model"]] if isinstance(setup.values["model"], str) else setup.values["model"]
    for model in models:
        assert plan.count(f"  {model}: to fetch") == 1, model
    assert f"rashomon build {name}" in plan
    for condition, count in setup.published.items():
        assert f"{condition} {count:,}" in plan
    for sentence in (*setup.differences, *filter(None, [setup.shipped_data])):
        assert sentence in plan
    for condition, reason in setup.not_published.items():
        assert f"the condition {condition} is left out: {reason}" in plan
    assert "time: not known until a model has run here" in plan
    assert not home.workspace.exists()


def test_rows_of_the_user_are_not_taken_for_the_papers(tmp_path: Path) -> None:
    home = Rashomon(tmp_path)
    home.run("build", "cmc-bench", "--from", write_table(tmp_path / "tables", 2), "--name", "mine")
    plan = ("--batch", "paper:cmc-bench", "--model", "policy:uniform", "--dry-run", "--display", "plain")
    assert "rows of your own table, not the paper's data" in home.run(*plan).stdout
    (version,) = (home.workspace / "sets" / "mine").glob("[0-9]*")
    assert "own table" not in home.run(*plan, "--data", version).stdout


@pytest.mark.slow
def test_the_plan_is_an_event_of_its_own(empty: Rashomon, hub: FakeHub) -> None:
    plan, end = map(json.loads, empty.run(*OKVQA, "--dry-run", "--display", "json").stdout.splitlines())
    assert (plan["event"], plan["data"]["state"], plan["problems"]) == ("plan", "none", [])
    assert plan["runs"][0]["calls"] == {"image": 5046}
    assert plan["runs"][0]["seconds"] is None
    assert (end["exit_code"], end["runs"]) == (0, [])
    assert hub.asked == []


@pytest.mark.slow
def test_from_nothing_to_the_table_by_one_command(empty: Rashomon, hub: FakeHub) -> None:
    refused = empty.run(*OKVQA, "--limit", "3", code=2)
    assert refused.stderr == (
        "rashomon: fetching needs confirmation; check the plan above, then run "
        "`rashomon --batch paper:okvqa --max-tokens 4 --limit 3 --yes`.\n"
    )
    assert "calls: at most 5,046" in refused.stdout
    assert hub.asked == []
    stdout = empty.run(*OKVQA, "--yes").stdout
    assert "the Hub says cc-by-4.0" in stdout
    assert "built " in stdout
    assert "6 of 6 answered" in stdout
    assert "OKVQA" in stdout, "the table"
    assert answered(empty) == 6
    requests = len(hub.asked)
    again = empty.run(*OKVQA).stdout  # nothing is left to ask for
    assert "to fetch" not in again
    assert len(hub.asked) == requests
    dry = empty.run(*OKVQA, "--dry-run").stdout
    assert "data: built" in dry
    assert f"  {LLAVA}: here" in dry
    assert "calls: 0" in dry
    assert "nothing is left to run" in dry
    timed = empty.run(*OKVQA, "--dry-run", "--seed", "7").stdout
    assert "time: about" in timed
    assert "s per answer over 6 of" in timed


def kill_when(rashomon: Rashomon, arguments: Sequence[str], ready: Callable[[], object]) -> None:
    """Start a command, and end it and its workers at once, as a power cut does, when it is ``ready``."""
    process = rashomon.start(*arguments)
    try:
        ready()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)


def finished(rashomon: Rashomon, answers: int, *options: str) -> str:
    """Give the same command again: it ends, and every answer is there once."""
    stdout = rashomon.run(*OKVQA, *options, "--yes").stdout
    assert f"{answers} of {answers} answered" in stdout
    assert answered(rashomon) == answers
    return stdout


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "end"), [("data", "val2014-00001-of-00002.parquet"), ("model", "model.safetensors")])
def test_a_kill_while_fetching_is_continued(phase: str, end: str, empty: Rashomon, hub: FakeHub) -> None:
    hub.faults[end] = ["wait 1500!"]
    kill_when(empty, (*OKVQA, "--yes"), lambda: hub.stalled.acquire(timeout=60))
    hub.faults.clear()
    hub.released.set()
    plan = empty.run(*OKVQA, "--dry-run").stdout
    assert f"data: {'partly fetched' if phase == 'data' else 'fetched'}" in plan
    assert f"{LLAVA}: to fetch" in plan
    finished(empty, 6)


@pytest.mark.slow
def test_a_kill_while_building_is_continued(empty: Rashomon, hub: FakeHub, tmp_path: Path) -> None:
    hub.repos["lmms-lab/OK-VQA"] = Repo("dataset", contents(okvqa_copy(tmp_path / "large", 150)), "cc-by-4.0")
    builds = empty.workspace / "benchmarks"
    kill_when(empty, (*OKVQA, "--limit", "3", "--yes"), lambda: until((builds / ".okvqa.building").exists))
    assert not (builds / "okvqa").exists(), "the build ended before the kill"
    requests = len(hub.asked)
    assert "data: fetched, to build" in empty.run(*OKVQA, "--dry-run").stdout
    assert "to fetch" not in finished(empty, 6, "--limit", "3")
    assert len(hub.asked) == requests
    assert not (builds / ".okvqa.building").exists()


@pytest.mark.slow
def test_a_kill_while_running_is_continued(empty: Rashomon, tmp_path: Path) -> None:
    gate = {"after": 2, "until": str(tmp_path / "never")}
    stopping = replace(empty, orders={"gate": gate})
    kill_when(stopping, (*OKVQA, "--yes"), lambda: until(lambda: bool(runs(empty)) and answered(empty) >= 2))
    plan = empty.run(*OKVQA, "--dry-run").stdout
    assert "instances are answered already" in plan
    assert "calls: 6" not in plan
    assert "to fetch" not in finished(empty, 6)


@pytest.mark.slow
def test_the_question_names_everything_and_no_is_no(empty: Rashomon, hub: FakeHub) -> None:
    shown, code = on_terminal(empty, [*OKVQA, "--display", "plain"], "n\n", "[Y/n]")
    asked = " ".join(shown.split())
    assert "Fetch the data of okvqa from the Hub and 1 model from the Hub (about 5.2 GB) to " in asked
    assert f"{empty.workspace / 'sources' / 'okvqa'} and {empty.home / 'cache' / 'huggingface' / 'hub'}" in asked
    assert ", build, and run 5,046 calls (time not known until a model has run here)? [Y/n]" in asked
    assert "nothing was fetched, built or run." in asked
    assert code == 0
    assert hub.asked == []
    assert not empty.workspace.exists()


@pytest.mark.slow
def test_a_gated_model_is_told_before_anything_is_downloaded(empty: Rashomon, hub: FakeHub) -> None:
    hub.repos[LLAVA].shut = "gated"
    stderr = empty.run(*OKVQA, "--yes", code=3).stderr
    assert f"{LLAVA} is gated: accept its terms at {hub.url}/{LLAVA} in a browser" in stderr
    assert "name the other models with --model" in stderr
    assert stderr.count("\n") == 1
    assert hub.gets(".parquet") == []
    assert not (empty.workspace / "sources").exists()


@pytest.mark.slow
def test_no_network_and_offline_mode_end_in_a_sentence(empty: Rashomon) -> None:
    gone = replace(empty, variables={**empty.variables, "HF_ENDPOINT": "http://127.0.0.1:9"})
    stderr = gone.run(*OKVQA, "--yes", code=3).stderr
    assert "the Hub cannot be reached" in stderr
    assert stderr.count("\n") == 1
    offline = replace(empty, variables={**empty.variables, "HF_HUB_OFFLINE": "1"})
    for option in ("--dry-run", "--yes"):
        done = offline.run(*OKVQA, option, code=3)
        assert done.stderr.startswith("rashomon: HF_HUB_OFFLINE is set")
        assert "licence llama2" in done.stdout, "the plan, all the same"


def test_a_disk_too_small_for_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and model would each fit; both go to one disk."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("app.fetch.fetch_plan.free_space", lambda folder: 5_000_000_000)
    plan = plan_setup(Workspace(tmp_path / "workspace"), find_setup("okvqa"), {})
    assert plan.known_bytes == 800_000_000 + catalog_size(LLAVA)
    (problem,) = plan.problems
    assert "has 5.0 GB free, but paper:okvqa needs 5.2 GB; free" in problem
    monkeypatch.setattr("app.fetch.fetch_plan.free_space", lambda folder: 6_000_000_000)
    assert plan_setup(Workspace(tmp_path / "workspace"), find_setup("okvqa"), {}).problems == ()


def test_models_that_do_not_fit_are_left_out_unless_the_user_names_or_forces_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("app.fetch.fetch_plan.free_space", lambda folder: 10**12)
    for module in ("setup_spec", "setup_plan"):
        monkeypatch.setattr(f"app.new_run.{module}.memory_fit", lambda weights: fit(weights, 4_000_000_000))
    workspace, setup = Workspace(tmp_path / "workspace"), find_setup("clash")
    plan = plan_setup(workspace, setup, {})
    assert [model.name for model in plan.models] == ["mlx-community/Phi-3-vision-128k-instruct-4bit"]
    assert [run.model for run in plan.runs] == [model.name for model in plan.models]
    assert dict(plan.models_left_out).keys() == {*setup.values["model"]} - {plan.models[0].name}
    assert plan.problems == ()
    assert len(plan_setup(workspace, setup, {}, force=True).models) == 7
    named = plan_setup(workspace, setup, {"model": [LLAVA]})
    assert named.problems[0].startswith(f"{LLAVA}: ")
    with pytest.raises(ModelError, match="no model of paper:okvqa fits"):
        plan_setup(workspace, find_setup("okvqa"), {})


def catalog_size(name: str) -> int:
    return next(model.weights_bytes for model in catalog_models() if model.id == name)


def fit(weights: int, available: int) -> MemoryFit:
    return MemoryFit(weights, available, "memory", weights <= available, f"it needs {weights} bytes")
