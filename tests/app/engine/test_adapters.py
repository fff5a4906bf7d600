"""A run with an adapter: named on the command line or in a file, part of its identity, and displayed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from app.engine.run_plan import check_spec, plan_resume, plan_run
from app.new_run.run_choices import model_choice
from app.new_run.spec_form import command_line, read_form, to_toml
from app.report.runs.short_names import short_model
from app.report.tables.run_labels import model_label
from app.run_spec import RunSpec, load_spec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import ModelError, SpecError
from tests.support.adapters import edit_config, make_adapter
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT, HeldOutSet


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_adapter(FOUR_BIT, tmp_path_factory.mktemp("adapters") / "names-conflicts", strength=3)


def spec_of(model: str, **more: Any) -> RunSpec:
    (spec,) = load_spec(None, {"benchmark": "cmc-bench", "model": model, "limit": 1, **more}).runs()
    return spec


def test_the_option_and_the_name_are_one_spec(adapter: Path) -> None:
    named = spec_of(f"{FOUR_BIT}+{adapter}")
    assert spec_of(str(FOUR_BIT), adapter=str(adapter)) == named
    plain = spec_of(str(FOUR_BIT))
    assert "adapter" not in plain.model_dump(mode="json")
    assert "names-conflicts" in named.run_name("d")
    assert named.run_name("d") != plain.run_name("d")
    assert spec_of("cuda:org/model@fp32", adapter=str(adapter)).model == f"cuda:org/model+{adapter}@fp32"
    assert model_label(named.model) == "model-4bit+names-conflicts"


def test_a_matrix_in_a_file_names_folders_relative_to_it(adapter: Path, tmp_path: Path) -> None:
    shutil.copytree(adapter, tmp_path / "adapters" / "a")
    path = tmp_path / "spec.toml"
    path.write_text('benchmark = "cmc-bench"\nmodel = ["org/model", "org/model+adapters/a"]\n')
    assert [run.model for run in load_spec(path, {}).runs()] == ["org/model", f"org/model+{tmp_path / 'adapters/a'}"]
    path.write_text('benchmark = "cmc-bench"\nmodel = ["one", "two"]\nadapter = "adapters/a"\n')
    folder = tmp_path / "adapters" / "a"
    assert [run.model for run in load_spec(path, {}).runs()] == [f"one+{folder}", f"two+{folder}"]


@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "policy:random", f"{FOUR_BIT}+elsewhere"])
def test_models_that_take_no_further_adapter_are_refused(adapter: Path, model: str) -> None:
    with pytest.raises(SpecError):
        spec_of(model, adapter=str(adapter))


def test_the_form_and_its_command_line_keep_it(workspace: Workspace, adapter: Path) -> None:
    spec, errors = read_form({"benchmark": "cmc-bench", "model": [f"{FOUR_BIT}+{adapter}"]})
    assert spec is not None, errors
    assert f"--model {FOUR_BIT}+{adapter}" in command_line(workspace, spec)
    assert f'"{FOUR_BIT}+{adapter}"' in to_toml(spec)
    choice = model_choice(f"{FOUR_BIT}+{adapter}")
    assert (choice.name, choice.problem) == ("model-4bit+names-conflicts", "")
    assert model_choice(f"{FOUR_BIT}+{adapter.parent}").problem


def test_a_run_is_not_resumed_with_another_adapter(workspace: Workspace, adapter: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(adapter, tmp_path / "mine"))
    spec = spec_of(f"{FOUR_BIT}+{folder}", name="run")
    run = plan_run(workspace, check_spec(workspace, spec))
    with RunStore.read(run.folder) as store:
        assert len(store.meta("identity")["adapter digest"]) == 64
    assert plan_resume(workspace, run.folder).existing
    edit_config(folder, scale=1.0)
    with pytest.raises(SpecError, match="adapter digest"):
        plan_resume(workspace, run.folder)
    with pytest.raises(SpecError, match="adapter digest"):
        check_spec(workspace, spec_of(str(FOUR_BIT), name="run"))
    shutil.rmtree(folder)
    with pytest.raises(ModelError):
        plan_resume(workspace, run.folder)


def test_lists_show_the_adapter(workspace: Workspace, adapter: Path) -> None:
    for model in (str(FOUR_BIT), f"{FOUR_BIT}+{adapter}"):
        plan_run(workspace, check_spec(workspace, spec_of(model)))
    summaries = workspace.summaries()
    assert sorted(short_model(run.spec["model"], run.quantisation) for run in summaries) == [
        "model",
        "model+names-conflicts",
    ]
    assert sum("names-conflicts" in run.name for run in summaries) == 1


@pytest.mark.slow
def test_a_run_answers_with_the_adapter(charts: HeldOutSet, adapter: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    arguments = ("--benchmark", "cmc-bench", "--data", charts.build.path, "--limit", "4", "--display", "none")
    texts = {}
    for name, more in (("base", ()), ("tuned", ("--adapter", adapter)), ("exact", ("--adapter", adapter, "--exact"))):
        rashomon.run("--batch", *arguments, "--model", FOUR_BIT, "--name", name, *more)
        with RunStore.read(rashomon.workspace / "runs" / name) as store:
            texts[name] = {record.instance.id: record.answer and record.answer.text for record in store.records()}
    assert texts["base"] != texts["tuned"]
    assert texts["tuned"] == texts["exact"]
    assert "adapter digest" in rashomon.run("show", "tuned", "--spec").stdout
