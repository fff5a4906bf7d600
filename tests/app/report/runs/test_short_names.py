"""Short names of runs, and the titles that users give them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.report.progress.running_accuracy import conflict_result
from app.report.runs.short_names import short_model, short_quantisation
from app.store.run_references import run_folder
from app.store.run_summary import RunSummary, read_summary
from app.store.run_titles import read_title, set_title
from app.store.store_types import ConditionProgress, JudgedCounts
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from tests.support.runs import instances, make_run, says

SPEC = {"benchmark": "cmc-bench", "model": "a/Qwen3-VL-4B-Instruct-4bit", "prompt_set": "paper", "judge": ["match"]}


@pytest.mark.parametrize(
    ("model", "quantisation", "short"),
    [
        ("mlx-community/Qwen3-VL-4B-Instruct-4bit", "4-bit g64", "qwen3-vl-4b"),
        ("mlx-community/Qwen3-VL-4B-Instruct-4bit", "", "qwen3-vl-4b-instruct-4bit"),
        ("google/gemma-3-4b-it", "bf16", "gemma-3-4b"),
        ("a/gemma-4", "bf16", "gemma-4"),
        ("/models/InternVL3-8B-MLX-6bit/", "6-bit g64", "internvl3-8b"),
        ("policy:always-image", "", "always-image"),
        ("openai:gpt-4o", "", "openai:gpt-4o"),
    ],
)
def test_models(model: str, quantisation: str, short: str) -> None:
    assert short_model(model, quantisation) == short


def test_quantisations() -> None:
    kinds = ("4-bit g64", "mixed 4/6-bit g64", "bf16", "4-bit g32 mxfp4", "")
    assert [short_quantisation(kind) for kind in kinds] == ["4bit", "4/6bit", "bf16", "4bit", ""]


def run(name: str, **spec: object) -> RunSummary:
    return RunSummary(name, "done", {**SPEC, **spec}, (), quantisation="4-bit g64")


def test_a_title_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    folder = make_run(workspace, "a-run", instances(1), says("12"))
    before = (folder / "run.sqlite").read_bytes()
    set_title(folder, "  a title\nof two lines  ")
    assert read_title(folder) == read_summary(folder).title == "a title of two lines"
    assert run_folder(workspace, "a-run") == folder
    assert (folder / "run.sqlite").read_bytes() == before
    set_title(folder, "")
    set_title(folder, "")
    assert read_title(folder) == ""


def test_a_title_is_never_written_through_a_link(tmp_path: Path) -> None:
    folder, target = tmp_path / "run", tmp_path / "target"
    folder.mkdir()
    target.write_text("kept")
    (folder / "title").symlink_to(target)
    assert read_title(folder) == ""
    set_title(folder, "new")
    assert target.read_text() == "kept"
    with pytest.raises(StoreError):
        set_title(tmp_path / "gone", "new")


def progress(condition: str, correct: int) -> ConditionProgress:
    return ConditionProgress(condition, 10, 10, 0, 0, 0, 0.0, 0, {"match@2": JudgedCounts(10, correct)})


def test_accuracy_under_conflict_leaves_other_conditions_out() -> None:
    summary = replace(
        run("x"), progress=(progress("aligned", 10), progress("both-wrong", 1), progress("image-only", 10))
    )
    accuracy = conflict_result(summary)
    assert (accuracy.estimate.value, accuracy.estimate.n, accuracy.of_conflicts) == (0.1, 10, True)
    assert accuracy.conditions == ("both-wrong",)


@pytest.mark.parametrize("benchmark", ["pope", "one that is not installed"])
def test_without_conflicts_all_conditions_count(benchmark: str) -> None:
    summary = replace(run("x", benchmark=benchmark), progress=(progress("random", 5), progress("popular", 10)))
    accuracy = conflict_result(summary)
    assert (accuracy.estimate.value, accuracy.of_conflicts) == (0.75, False)
