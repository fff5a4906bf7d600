"""``kv_bits`` is part of a run's identity, and specs without it stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.compare.runs.spec_diff import compared_facet, difference_warnings
from app.engine.run_plan import check_spec, plan_resume, plan_run
from app.new_run.preflight import PreflightChecker
from app.new_run.spec_form import command_line, read_form, to_toml
from app.run_spec import RunSpec, load_spec, parse
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import ModelError, RashomonError, SpecError
from mlx_backends.mlx.mlx_engine import MLXEngine
from tests.support.compared_runs import side
from tests.support.demo import FOUR_BIT

VALUES: dict[str, Any] = {"benchmark": "cmc-bench", "model": str(FOUR_BIT), "limit": 2}
"""A run of the demo's model, whose heads have 32 numbers."""


def spec_with(kv_bits: int | None, **more: Any) -> RunSpec:
    (spec,) = load_spec(None, {**VALUES, **more, "kv_bits": kv_bits}).runs()
    return spec


def test_it_is_part_of_the_identity_and_of_the_name() -> None:
    plain, quantised = spec_with(None), spec_with(8)
    assert quantised.identity() == {**plain.identity(), "kv bits": 8}
    assert len({plain.run_name("d"), quantised.run_name("d"), spec_with(4).run_name("d")}) == 3


def test_a_spec_without_it_is_stored_as_before() -> None:
    plain = spec_with(None)
    assert "kv_bits" not in plain.model_dump(mode="json")
    assert "kv_bits" not in plain.model_dump_json()
    assert "kv bits" not in plain.identity()
    assert parse(RunSpec, plain.model_dump(mode="json"), "x") == plain
    quantised = spec_with(4)
    assert parse(RunSpec, quantised.model_dump(mode="json"), "x") == quantised


def test_a_file_the_command_line_and_the_form_name_it(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('benchmark = "cmc-bench"\nmodel = "m"\nkv_bits = 8\n')
    assert load_spec(path, {}).kv_bits == 8
    assert load_spec(path, {"kv_bits": 4}).kv_bits == 4
    spec, errors = read_form({"benchmark": "cmc-bench", "model": ["policy:random"], "kv_bits": "8"})
    assert spec is not None, errors
    assert "--kv-bits 8" in command_line(workspace, spec)
    assert "kv_bits = 8" in to_toml(spec)
    assert read_form({"benchmark": "cmc-bench", "model": ["policy:random"], "kv_bits": "6"})[1] == {
        "kv_bits": "give 8 or 4."
    }


@pytest.mark.parametrize("value", [0, 1, 2, 16, -8, 10**30, True, 8.5, "eight", [8], {"bits": 8}, float("nan")])
def test_other_values_of_a_received_spec_are_refused(value: Any) -> None:
    values = {**spec_with(8).model_dump(mode="json"), "kv_bits": value}
    with pytest.raises(SpecError, match="kv_bits"):
        parse(RunSpec, values, "the run")
    with pytest.raises(SpecError, match="kv_bits"):
        load_spec(None, {**VALUES, "kv_bits": value})


@pytest.mark.parametrize("model", ["policy:random", "openai:gpt-4o-mini"])
def test_engines_that_cannot_quantise_refuse_before_anything_is_created(workspace: Workspace, model: str) -> None:
    spec = spec_with(8, model=model)
    with pytest.raises(ModelError, match="kv_bits"):
        check_spec(workspace, spec)
    assert not workspace.runs_folder.exists()


def test_the_new_run_screen_shows_the_refusal_at_the_field(workspace: Workspace) -> None:
    spec = load_spec(None, {"benchmark": "cmc-bench", "model": "policy:random", "kv_bits": 8})
    problems = PreflightChecker(workspace).check(spec).problems
    assert problems is not None
    assert list(problems) == ["kv_bits"]


def test_a_run_with_other_bits_is_not_resumed_and_the_difference_is_named(workspace: Workspace) -> None:
    plan_run(workspace, check_spec(workspace, spec_with(8, name="run")))
    for bits, words in ((4, "4"), (None, "not set")):
        with pytest.raises(SpecError, match=f"kv bits: was 8, is {words}"):
            check_spec(workspace, spec_with(bits, name="run"))
    assert check_spec(workspace, spec_with(8, name="run")).existing
    assert plan_resume(workspace, workspace.runs_folder / "run").spec.kv_bits == 8


def test_an_edited_spec_of_a_run_is_refused(workspace: Workspace) -> None:
    run = plan_run(workspace, check_spec(workspace, spec_with(8, name="run")))
    file = run.folder / "spec.toml"
    text = file.read_text()
    assert "kv_bits = 8\n" in text
    file.write_text(text.replace("kv_bits = 8\n", "kv_bits = 4\n"))
    with pytest.raises(SpecError, match="kv_bits: was 8, is 4"):
        plan_resume(workspace, run.folder)


def test_a_received_run_of_a_model_that_cannot_quantise_is_not_resumed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_run(workspace, check_spec(workspace, spec_with(8, name="run")))

    def refuse(self: MLXEngine, model: str, bits: int) -> None:
        raise ModelError(f"{model} cannot")

    monkeypatch.setattr(MLXEngine, "check_kv_bits", refuse)
    with pytest.raises(ModelError):
        plan_resume(workspace, run.folder)


def test_a_damaged_value_in_a_store_is_reported(workspace: Workspace) -> None:
    run = plan_run(workspace, check_spec(workspace, spec_with(8, name="run")))
    with RunStore.open(run.folder) as store:
        store.set_meta("spec", {**store.meta("spec"), "kv_bits": "eight"})
    with pytest.raises(RashomonError):
        plan_resume(workspace, run.folder)


def test_a_comparison_names_the_difference() -> None:
    def run(name: str, **identity: Any) -> Any:
        return side(name, {}, identity={"model": "m", "weights digest": "a" * 64, **identity})

    plain, quantised, policy = run("plain"), run("kv8", **{"kv bits": 8}), side("policy", {})
    assert compared_facet([plain, quantised]) == "kv bits"
    assert difference_warnings([plain, quantised]) == []
    other = run("other", **{"model": "n", "kv bits": 4})
    (warning,) = difference_warnings([plain, other])
    assert warning == "The runs differ in more than the model: kv bits (none: plain; 4: other)."
    assert difference_warnings([policy, quantised]) == []
