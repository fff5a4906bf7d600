"""Choices of a new run, as the command line and the interface list them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.new_run.run_choices import (
    benchmark_choices,
    cached_choices,
    judge_choices,
    key_state,
    model_choice,
    nearby_choices,
    policy_choices,
)
from app.store.workspace import Workspace
from benchmarks.registry import benchmark_names, get_benchmark
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT, HeldOutSet


def test_a_benchmark_says_what_it_needs_and_whether_its_build_is_whole(charts: HeldOutSet, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    workspace = Workspace(rashomon.workspace)
    shutil.copytree(charts.build.path, workspace.build_folder("cmc-bench"))
    values = {choice.name: choice for choice in benchmark_choices(workspace)}
    assert tuple(values) == benchmark_names()
    assert values["cmc-bench"].build is not None
    assert values["cmc-bench"].state.startswith("built: ")
    assert values["clash"].build is None
    assert any(line.startswith("published: ") for line in values["clash"].needs())
    command = f"rashomon --workspace {rashomon.workspace}"
    assert values["clash"].command(workspace) == f"{command} data get clash && {command} build clash"
    assert values["clash"].state == "not built yet: rashomon data get clash && rashomon build clash"
    assert values["crosscheck-bench"].command(workspace) == f"{command} build crosscheck-bench --source products=FOLDER"
    with (workspace.build_folder("cmc-bench") / "instances.jsonl").open("a") as rows:
        rows.write("\n")
    damaged = benchmark_choices(workspace)[0]
    assert damaged.build is None
    assert "was changed after the build" in damaged.state
    parsed = rashomon.json("benchmarks")
    for item, choice in zip(parsed, benchmark_choices(workspace), strict=True):
        assert item["state"] == choice.state.replace(f"{workspace.path}/", "")


def test_models_come_from_the_cache_and_from_folders_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshot = tmp_path / "hub" / "models--org--small" / "snapshots" / ("a" * 40)
    snapshot.parent.mkdir(parents=True)
    shutil.copytree(FOUR_BIT, snapshot)
    (tmp_path / "hub" / "models--org--small" / "refs").mkdir()
    (tmp_path / "hub" / "models--org--small" / "refs" / "main").write_text("a" * 40)
    (tmp_path / "hub" / "models--org--broken" / "snapshots").mkdir(parents=True)
    hostile = "[x]\x1b]0;t\x07 'model'"
    shutil.copytree(FOUR_BIT, tmp_path / "models" / hostile)
    (tmp_path / "models" / "not a model").mkdir()

    broken, small = cached_choices()
    assert (small.spec_name, small.quantisation, small.fits) == ("org/small", "4-bit g64", True)
    assert small.weights_bytes == sum(file.stat().st_size for file in FOUR_BIT.glob("*.safetensors"))
    assert "fits" in small.note
    assert broken.fits is None
    assert broken.problem
    near = nearby_choices(Workspace(tmp_path / "workspace"))
    assert [choice.name for choice in near] == [hostile, "model-4bit", "model-bf16"]
    assert near[0].spec_name == str(tmp_path / "models" / hostile)
    assert model_choice(near[0].spec_name) == near[0]
    assert model_choice("org/small").spec_name == "org/small"


@pytest.mark.parametrize(
    "word", ["org/none", "x\0y", "~nobody-at-all/m", "policy:fair", "openai:", "a" * 5000, "\udcff"]
)
def test_a_typed_model_that_is_none_says_why(word: str) -> None:
    result = model_choice(word)
    assert result.problem
    assert not result.fits


def test_policies_are_models_too() -> None:
    assert all(model_choice(choice.spec_name) == choice for choice in policy_choices())


def test_judges_are_those_of_the_benchmark_and_say_whether_a_key_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-never-shown-1234567890"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    for name in ("ANTHROPIC_API_KEY", "RASHOMON_ENDPOINT_KEY"):
        monkeypatch.delenv(name, raising=False)
    demo = model_choice(str(FOUR_BIT))
    values = {
        choice.spec_name: choice for choice in judge_choices(get_benchmark("cmc-bench"), [demo, *policy_choices()])
    }
    assert next(iter(values)) == "match"
    assert values[str(FOUR_BIT)].kind == "model"
    assert not any(word.startswith("policy:") for word in values)
    assert values["openai:"].description == "key OPENAI_API_KEY is in the environment"
    assert values["openai:"].ready
    assert not values["anthropic:"].ready
    assert values["endpoint:"].ready
    assert secret not in repr(values)
    assert key_state("anthropic:claude") == "no key ANTHROPIC_API_KEY in the environment"
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        words = [choice.spec_name for choice in judge_choices(benchmark, [demo])]
        assert words[: len(benchmark.judges)] == list(benchmark.judges)
        assert ("openai:" in words) == (benchmark.rubric is not None)
