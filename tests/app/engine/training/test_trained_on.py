"""A model that was trained on its test data: said before a run, with its tables, and in a comparison."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app.compare.runs.view_reader import load_views
from app.engine.run_plan import check_spec, plan_run
from app.engine.training.workspace_test_data import find_test_builds
from app.new_run.preflight import PreflightChecker
from app.new_run.spec_form import read_form
from app.run_spec import RunSpec, load_spec
from app.store.run_facts import TrainedExamples
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.training.trained_on import TrainingRecord
from benchmarks.training.training_set import TrainingSet
from mlx_backends.engine_registry import training_records
from tests.support.adapters import make_adapter
from tests.support.command import Rashomon
from tests.support.data.small import own_rows
from tests.support.demo import FOUR_BIT


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace whose own build is the default data of `training` and of a run."""
    folder = tmp_path_factory.mktemp("home")
    rashomon = Rashomon(folder)
    own_rows(folder / "source", [str(100 + 7 * n) for n in range(8)])
    rashomon.run("build", "cmc-bench", "--source", f"rows={folder / 'source'}")
    rashomon.run("training", "cmc-bench", "--limit", "6", "--out", folder / "set")
    return rashomon


@pytest.fixture(scope="module")
def adapter(home: Rashomon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter with the record that a training on the workspace's build would leave."""
    record = TrainingRecord.of(TrainingSet.open(home.workspace.parent / "set")).to_json()
    return make_adapter(FOUR_BIT, tmp_path_factory.mktemp("adapters") / "quick", base=record)


def spec_of(model: str) -> RunSpec:
    (spec,) = load_spec(None, {"benchmark": "cmc-bench", "model": model}).runs()
    return spec


def test_it_is_said_before_the_run_and_stored_with_it(home: Rashomon, adapter: Path) -> None:
    workspace = Workspace(home.workspace)
    checked = check_spec(workspace, spec_of(f"{FOUR_BIT}+{adapter}"))
    assert checked.trained == TrainedExamples(8, 8, "model-4bit+quick")
    assert check_spec(workspace, spec_of(str(FOUR_BIT))).trained.examples == 0
    spec, _ = read_form({"benchmark": "cmc-bench", "model": [str(FOUR_BIT), f"{FOUR_BIT}+{adapter}"]})
    assert spec is not None
    checker = PreflightChecker(workspace)
    for _ in range(2):
        assert checker.check(spec).warnings == (checked.trained.sentence,)
    dry = home.run(
        "--batch", "--benchmark", "cmc-bench", "--model", FOUR_BIT, "--model", f"{FOUR_BIT}+{adapter}", "--dry-run"
    )
    assert dry.stdout.count(checked.trained.sentence) == 1

    run = plan_run(workspace, checked).folder
    with RunStore.read(run) as store:
        assert TrainedExamples.load(store) == checked.trained
    assert check_spec(workspace, checked.spec).trained == checked.trained
    assert checked.trained.sentence in " ".join(home.run("show", run.name).stdout.split())
    (view,) = load_views([run], judge="match").runs
    assert (view.trained, view.remarks) == (checked.trained, (checked.trained.sentence,))


def test_what_was_fused_is_remembered(home: Rashomon, adapter: Path, tmp_path: Path) -> None:
    home.run("models", "fuse", FOUR_BIT, "--adapter", adapter, "--to", tmp_path / "fused")
    record = TrainingRecord.read(training_records(str(tmp_path / "fused")))
    assert record == TrainingRecord.read(training_records(f"{FOUR_BIT}+{adapter}"))
    assert record.builds
    assert check_spec(Workspace(home.workspace), spec_of(str(tmp_path / "fused"))).trained.examples == 8
    # An adapter on the fused model has seen what both have.
    shutil.copytree(adapter, tmp_path / "more")
    (tmp_path / "more" / "training.json").write_text(json.dumps({"builds": ["other"]}))
    joined = TrainingRecord.read(training_records(f"{tmp_path / 'fused'}+{tmp_path / 'more'}"))
    assert joined.builds == {*record.builds, "other"}
    assert joined.hashes == record.hashes


def test_test_data_that_cannot_be_read_is_named(home: Rashomon, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    shutil.copytree(home.workspace / "benchmarks", tmp_path / "builds")
    build = tmp_path / "builds" / "cmc-bench"
    run = ("--batch", "--benchmark", "cmc-bench", "--data", build, "--model")
    rashomon.run(*run, "policy:always-text", "--limit", "1")
    rashomon.run(*run, "policy:always-image", "--limit", "1")
    workspace, digest = Workspace(rashomon.workspace), Build.open(build).digest
    assert find_test_builds(workspace, (), ()).unread == []
    build.rename(tmp_path / "moved")
    (unread,) = find_test_builds(workspace, (), ()).unread
    assert "and another run" in unread
    assert "build of the rows" in find_test_builds(workspace, (), {digest}).unread[0]
    assert find_test_builds(workspace, [tmp_path / "moved"], ()).unread == []
    name = workspace.run_names()[0]
    (workspace.runs_folder / name / "run.sqlite").write_bytes(b"damaged")
    assert any(name in sentence for sentence in find_test_builds(workspace, [tmp_path / "moved"], ()).unread)
    shutil.copytree(tmp_path / "moved", workspace.path / "benchmarks" / "old")
    (workspace.path / "benchmarks" / "old" / "instances.jsonl").write_text("{}\n")
    warned = rashomon.run("training", "cmc-bench", "--data", tmp_path / "moved", "--out", tmp_path / "set").stderr
    assert warned.count("warning: ") == 3
