"""The ladder: which rungs can be had, and at which step the difference enters; and what the command says to mistakes."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import run_cli
from app.compare.papers.paper_distance import compare_with_paper
from app.figures.figure_style import to_bytes
from app.figures.ladder_figures import draw_ladder
from app.json_output.json_envelope import plain
from app.json_output.parity_json import ladder_json
from app.parity.ladder import ladder_tables
from app.parity.ladder.ladder_comparison import compare_rungs
from app.parity.ladder.ladder_models import Rung, find_rungs
from app.parity.model_probing import ProbeOptions
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from assets.demo.recipe.quantise import quantise
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import RashomonError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Verdict
from judges.judge_registry import get_judge
from tests.support.command import ROOT, Rashomon
from tests.support.json_output import json_result
from tests.support.parity import finished_run, in_this_process
from tests.support.tiny_qwen3 import build_tiny_vlm

TEXTS = ["How many apples were sold?", "According to the source, the value is 12."]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tiny model in bf16, 8-bit and 4-bit, and another model."""
    folder = tmp_path_factory.mktemp("models")
    build_tiny_vlm(folder / "tiny-bf16", TEXTS, quantise=False)
    for bits in (8, 4):
        quantise(folder / "tiny-bf16", folder / f"tiny-{bits}bit", bits)
    shutil.copytree(folder / "tiny-4bit", folder / "other-4bit")
    return folder


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


def test_the_rungs_of_a_model_are_found_beside_it(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.parity.ladder.ladder_models._torch_missing", lambda: "PyTorch is not installed.")
    rungs = find_rungs([str(models / "tiny-4bit")])
    assert [(rung.name, Path(rung.model).name, bool(rung.why)) for rung in rungs if not rung.side_branch] == [
        ("torch fp32", "tiny-bf16@fp32", True),
        ("MLX bf16", "tiny-bf16", False),
        ("MLX 8-bit", "tiny-8bit", False),
        ("MLX 4-bit", "tiny-4bit", False),
    ]
    (side_branch,) = (rung for rung in rungs if rung.side_branch)
    assert (side_branch.name, side_branch.model) == ("torch 4-bit", f"cuda:{models / 'tiny-4bit'}@fp32")


def test_a_rung_that_is_not_there_is_said(models: Path) -> None:
    reasons = {rung.name: rung.why for rung in find_rungs([str(models / "other-4bit")])}
    assert reasons["MLX 8-bit"].startswith(f"there is no 8-bit other in the folder {models.name}; ")
    assert reasons["MLX bf16"] == f"there is no full-precision other in the folder {models.name}."
    assert reasons["MLX 4-bit"] == ""


@pytest.mark.slow
def test_the_ladder_tells_at_which_step_the_difference_enters(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    in_this_process(monkeypatch)
    workspace = Workspace(tmp_path / "workspace")
    build = workspace.build_folder("cmc-bench")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], build, BuildOptions())
    every = list(get_benchmark("cmc-bench").instances(Build.open(build), "paper"))
    # The paper's rows are comparable with its own data only.
    instances = [replace(one, strata={**one.strata, "source": "chartqa"}) for one in every[:: len(every) // 6][:6]]
    ways = [Rung(f"MLX {bits}", str(models / f"tiny-{bits}")) for bits in ("bf16", "8bit", "4bit")]
    folders = [finished_run(workspace, f"run-{number}", rung.model, instances) for number, rung in enumerate(ways)]
    for folder in folders:  # no rule labels what a model with random weights says
        label_all(folder, "NEITHER")
    ladder = compare_rungs(ways, folders, ProbeOptions(3, [build]), missing=["torch: PyTorch is not installed."])
    assert [(step.start, step.end, step.kind) for step in ladder.steps] == [
        ("MLX bf16", "MLX 8bit", "quantisation"),
        ("MLX 8bit", "MLX 4bit", "quantisation"),
    ]
    first, second = ladder.steps
    assert 0 < first.moved < second.moved < ladder.overall.moved * 1.5
    assert ladder.verdict.startswith(f"From MLX bf16 to MLX 4bit, {ladder.overall.changed} of 6 answers change; ")
    assert "Most of it enters from MLX 8bit to MLX 4bit (quantisation): a logit moves by " in ladder.verdict
    table = ladder_tables.steps_table(ladder)
    assert [row for row, _ in table.rows] == ["MLX bf16 → MLX 8bit", "MLX 8bit → MLX 4bit", "MLX bf16 → MLX 4bit"]
    assert {cells[0] for _, cells in table.rows} == {"same"}
    assert "torch: PyTorch is not installed." in ladder_tables.rungs_table(ladder).notes
    parsed = plain(ladder_json(ladder))
    assert parsed["steps"][1]["pair"]["numerics"]["moved"] == pytest.approx(second.moved)
    assert str(tmp_path) not in json.dumps(parsed)
    assert str(models) not in json.dumps(parsed)
    assert to_bytes(draw_ladder(ladder, width="column"), "png").startswith(b"\x89PNG")
    assert to_bytes(draw_ladder(ladder, width="page"), "pdf") == to_bytes(draw_ladder(ladder, width="page"), "pdf")

    columns, sentence = ladder_tables.compare_with_paper_columns(ladder, ["Qwen3-VL-4B"], None)
    assert columns.columns == ("MLX bf16", "MLX 8bit", "MLX 4bit", "Qwen3-VL-4B (paper)")
    assert sentence.startswith("Compared with the paper's Qwen3-VL-4B, the ")
    assert "neither from MLX nor from quantisation" in sentence
    alone = compare_with_paper(folders[2:], ["Qwen3-VL-4B"], None)
    assert alone.verdict.startswith("Compared with the paper's Qwen3-VL-4B: of ")
    assert any(line.startswith("Prompt: ours paper") for line in alone.comparability)
    with pytest.raises(SpecError, match="the paper has no row"):
        compare_with_paper(folders[2:], ["Qwen3-VL-5B"], None)


def label_all(folder: Path, label: str) -> None:
    with RunStore.open(folder) as store:
        answered = filter(None, [store.answer_of(record.instance.id) for record in store.records()])
        store.add_verdicts([(*answer, Verdict(get_judge("match").id, "labelled", label)) for answer in answered])


def test_mistakes_are_one_sentence(tmp_path: Path, models: Path) -> None:
    for arguments, message in (
        (("parity",), "name two runs or models"),
        (("parity", "a", "b", "c"), "name two runs or models"),
        (("parity", "a", "b"), "there is no run 'a'"),
        (("parity", str(models / "tiny-4bit"), str(models / "tiny-8bit")), "--benchmark"),
        (("parity", "x", "--model", str(models / "tiny-4bit")), "name no runs with it"),
        (("parity", "--model", str(models / "other-4bit"), "--benchmark", "cmc-bench"), "other-4bit"),
        (("parity", "--model", str(models / "tiny-4bit"), "--format", "gif"), "gif"),
    ):
        with pytest.raises(RashomonError, match=re.escape(message)):
            run_cli(["--workspace", str(tmp_path), *arguments])


@pytest.mark.slow
def test_two_models_are_asked_looked_at_and_told_within_80_columns(rashomon: Rashomon, models: Path) -> None:
    """By the command, in real processes; the same command again asks and loads nothing."""
    source = ROOT / "assets" / "demo" / "held_out" / "cmc-bench"
    rashomon.run("build", "cmc-bench", "--source", f"rows={source}")
    narrow = Rashomon(rashomon.home, variables={"COLUMNS": "80"})
    command = (str(models / "tiny-bf16"), str(models / "tiny-4bit"), "--benchmark", "cmc-bench", "--limit", "2")
    shown = narrow.process("parity", *command, "--max-tokens", "6", "--probe", "4", "--display", "none")
    assert "A and B first differ at the logits for the same inputs: the quantisation (bf16 in A, 4-bit g64 in B)." in (
        " ".join(shown.stdout.split())
    )
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert shown.stderr.count("probing tiny") == 2
    again = narrow.process("parity", *command, "--max-tokens", "6", "--probe", "4", "--json")
    assert "probing tiny" not in again.stderr
    parsed = json_result(again.stdout)
    assert [stage["stage"] for stage in parsed["pair"]["stages"] if stage["status"] == "differs"] == ["numerics"]
    ladder = narrow.process(
        "parity",
        *("--model", str(models / "tiny-4bit"), "--benchmark", "cmc-bench", "--limit", "2", "--max-tokens", "6"),
        *("--probe", "4", "--display", "none", "--format", "png,md,latex,csv", "--out", str(rashomon.home / "out")),
    )
    assert max(map(len, ladder.stdout.splitlines())) <= 80
    assert {path.name for path in (rashomon.home / "out").iterdir()} == {
        "ladder.png",
        "ladder.md",
        "ladder.tex",
        "rungs.csv",
        "steps.csv",
    }
