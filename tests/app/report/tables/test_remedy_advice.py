"""What ``rashomon show`` and ``rashomon recommend`` suggest to try, and that the suggested commands work."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

from app.report.tables.remedy_advice import remedies
from app.report.tables.single_source_accuracy import Counted, CountedAnswers
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.stats.clusters import Clusters
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import answered

CMC = get_benchmark("cmc-bench")
SPEC = {"benchmark": "cmc-bench", "model": "org/model", "prompt_set": "paper"}
READS_BOTH = {("image-only", "image", True): 40, ("text-only", "text", True): 40, ("aligned", "", True): 38}
FOLLOWS_TEXT = {**READS_BOTH, ("text-correct", "", True): 40, ("image-correct", "", False): 40}


def commands(labelled: dict[Counted, int], run: str = "mine", **spec: str) -> list[str]:
    return [step.command for step in remedies(run, {**SPEC, **spec}, CMC, answers(labelled))]


def answers(labelled: dict[Counted, int]) -> CountedAnswers:
    """So many answers of each kind, each of an example of its own."""
    keys = [key for key, number in labelled.items() for _ in range(number)]
    return CountedAnswers(keys, Clusters.of(np.arange(len(keys))))


def kinds(labelled: dict[Counted, int], **spec: str) -> list[str]:
    return [shlex.split(command)[0] for command in commands(labelled, **spec)]


def test_what_costs_least_comes_first() -> None:
    assert kinds(FOLLOWS_TEXT) == ["baselines", "show", "--batch", "--batch", "training"]


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"prompt_set": "expect-conflict"}, ["baselines", "show", "--batch", "training"]),
        ({"prompt_set": "expect-conflict", "protocol": "verify"}, ["baselines", "training"]),
        ({"model": "org/model+trained"}, ["baselines", "show", "--batch", "--batch"]),
        ({"model": "policy:always-text"}, []),
        ({"model": "ocr:text"}, []),
        ({"model": "baseline:agree:org/model"}, []),
        ({"model": "imported:org/model"}, []),
    ],
)
def test_what_a_run_has_already_is_not_suggested(spec: dict[str, str], left: list[str]) -> None:
    assert kinds(FOLLOWS_TEXT, **spec) == left


def test_nothing_is_suggested_where_conflicts_do_no_harm_or_nothing_is_known() -> None:
    assert commands({**READS_BOTH, ("image-correct", "", True): 39, ("image-correct", "", False): 1}) == []
    assert commands({("image-correct", "", False): 2, ("aligned", "", True): 2, ("aligned", "", False): 2}) == []
    assert commands({("image-correct", "", False): 40}) == []
    assert commands({}) == []


def test_a_model_that_reads_no_images_is_not_asked_in_other_words() -> None:
    blind = {**FOLLOWS_TEXT, ("image-only", "image", True): 2, ("image-only", "image", False): 38}
    (step,) = remedies("mine", SPEC, CMC, answers(blind))
    assert not step.command
    assert "images" in step.idea


def test_a_name_is_one_word_of_its_command() -> None:
    for command in commands(FOLLOWS_TEXT, run="my run; rm -rf x"):
        assert "rm" not in shlex.split(command)


def test_the_recommended_model_and_a_single_run_get_suggestions(tmp_path: Path) -> None:
    home = Workspace(tmp_path / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    CMC.build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for name in ("one", "two"):
        answered(home, name, "policy:random", 12)
        with RunStore.open(home.runs_folder / name) as store:
            store.set_meta("spec", {**store.meta("spec"), "model": f"org/{name}"})
    rashomon = Rashomon(tmp_path)
    assert "rashomon baselines one" in rashomon.run("show", "one").stdout
    assert "What to try" not in rashomon.run("show", "one", "two").stdout
    assert "What to try" not in rashomon.run("show", "one", "--table", "main").stdout
    assert "What to try with" in rashomon.run("recommend", "one", "two").stdout
    assert rashomon.json("recommend", "one", "two")["to_try"]
    assert rashomon.json("show", "one")["to_try"][0]["command"] == "baselines one"


@pytest.mark.slow
def test_the_suggested_commands_work(tmp_path: Path) -> None:
    demo, rashomon = ROOT / "assets" / "demo", Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", demo / "rows.csv")
    rashomon.run(
        *("--batch", "--benchmark", "cmc-bench", "--model", demo / "model-4bit", "--name", "mine", "--limit", "8")
    )
    lines = rashomon.run("show", "mine").stdout.splitlines()
    suggested = [line.strip() for line in lines if line.startswith("  rashomon ")]
    assert len(suggested) == 5
    for line in suggested[:4]:
        program = shlex.join([*rashomon.command(), "--workspace", str(rashomon.workspace)])
        script = f'rashomon() {{ {program} "$@"; }}\n{line}'
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=rashomon.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    names = {run["name"] for run in rashomon.json("runs")}
    assert {"mine", "mine-agree", "mine-oracle", "mine-warned", "mine-read"} <= names
