"""A real model end to end: a tiny 4-bit Qwen3-VL through mlx-vlm, in real processes."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.commands.system import demo_command
from app.store.workspace import Workspace
from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.charts import draw_sources
from tests.support.command import Rashomon, kill_all
from tests.support.json_output import json_result
from tests.support.tiny_qwen3 import build_tiny_vlm

OPTIONS = ("--benchmark", "cmc-bench", "--max-tokens", "8", "--display", "none")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("real")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    build_tiny_vlm(
        home / "tiny", ["How many apples were sold?", "According to the source, the value is 12."], quantise=True
    )
    return home


def done(rashomon: Rashomon) -> int:
    return states(rashomon).get("killed", ("", 0, 0))[1]


def more_than(rashomon: Rashomon, count: int) -> bool:
    return done(rashomon) > count


@pytest.mark.slow
def test_killed_and_resumed_run_matches_token_for_token(home: Path) -> None:
    rashomon = Rashomon(home)
    model = ("--model", str(home / "tiny"), "--limit", "6")
    rashomon.run("--batch", *OPTIONS, *model, "--name", "quiet", "--exact")
    for _ in range(2):
        process = rashomon.start("--batch", *OPTIONS, *model, "--name", "killed")
        wait_until(partial(more_than, rashomon, done(rashomon) + 5))
        kill_all(process)
    rashomon.run("resume", "killed", "--display", "none")
    answers = {}
    for name in ("quiet", "killed"):
        rashomon.run("export", name, "--canonical", "--format", "json", "--out", home / name)
        answers[name] = (home / name / "samples.jsonl").read_bytes()
    assert answers["quiet"] == answers["killed"]
    assert "each answer was computed separately" in rashomon.run("show", "quiet").stdout
    assert "answered in batches, with shared prefixes computed once" in rashomon.run("show", "killed").stdout
    samples = [json.loads(line) for line in answers["quiet"].splitlines()]
    assert len(samples) == 48
    assert all(sample["steps"][0]["tokens"] for sample in samples)
    assert len({tuple(sample["steps"][0]["tokens"]) for sample in samples}) > 1, "the model sees what it is asked"


@pytest.mark.slow
def test_several_prompt_sets_of_one_model_and_their_baselines(home: Path) -> None:
    """The runs share a worker and its model; system texts and likelihoods take the same way."""
    rashomon = Rashomon(home)
    prompts = [option for name in ("paper", "careful-auditor", "image-first") for option in ("--prompt-set", name)]
    model = ("--model", str(home / "tiny"), "--limit", "1", "--score", "likelihood")
    rashomon.run("--batch", *OPTIONS, *model, *prompts)
    runs = [run for run in rashomon.json("runs") if run["prompt_set"] in prompts]
    assert {run["prompt_set"]: (run["done"], run["total"]) for run in runs} == dict.fromkeys(prompts[1::2], (8, 8))
    rashomon.run("baselines", runs[-1]["name"])
    made = {run["name"].rpartition("-")[2] for run in rashomon.json("runs")}
    assert {"agree", "confident", "oracle"} <= made


@pytest.mark.slow
def test_missing_or_broken_images_fail_only_their_answers(home: Path) -> None:
    rashomon = Rashomon(home)
    data = home / "broken"
    shutil.copytree(rashomon.workspace / "benchmarks" / "cmc-bench", data)
    media = sorted((data / "media").iterdir())
    for path in media[::2]:
        path.unlink()
    for path in media[1::4]:
        path.write_bytes(path.read_bytes()[:300])
    rashomon.run(
        "--batch", *OPTIONS, "--model", home / "tiny", "--name", "broken", "--data", data, "--limit", "6", code=1
    )
    (table,) = rashomon.json("show", "broken", "--table", "failures")["tables"]
    cells = {row["label"].rpartition(" / ")[2]: row["cells"] for row in table["rows"]}
    assert cells["image-only"]["error"] > 0
    assert cells["text-only"]["error"] == 0
    assert sum(cell["error"] + cell["labelled"] + cell["unparsed"] + cell["undecided"] for cell in cells.values()) == 48
    shutil.rmtree(data / "media")
    shutil.copytree(rashomon.workspace / "benchmarks" / "cmc-bench" / "media", data / "media")
    rashomon.run("resume", "broken", "--retry-errors", "--display", "none")
    (table,) = rashomon.json("show", "broken", "--table", "failures")["tables"]
    assert sum(row["cells"]["error"] for row in table["rows"]) == 0


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("model.safetensors", None, "lacks 1 of its 1 weight files"),
        ("model.safetensors", "cut", "not a whole safetensors file"),
        ("config.json", '{"model_type": "llama", "vocab_size": 8}', "text-only model"),
        ("config.json", None, "no config.json"),
    ],
)
def test_invalid_model_folder_is_refused_before_the_run(
    home: Path, tmp_path: Path, file: str, content: str | None, says: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(home / "tiny", folder)
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    before = states(Rashomon(home))
    message = Rashomon(home).run("--batch", *OPTIONS, "--conditions", "image-only", "--model", folder, code=2).stderr
    assert says in message
    assert len(message.splitlines()) == 1
    assert states(Rashomon(home)) == before


@pytest.mark.parametrize("examples", [3, pytest.param(24, marks=pytest.mark.slow)])
def test_the_demo_ends_in_a_scorecard_and_a_sentence(
    tmp_path: Path, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    monkeypatch.setattr(
        demo_command,
        "DEMOS",
        {name: replace(settings, examples=examples) for name, settings in demo_command.DEMOS.items()},
    )
    output = Rashomon(tmp_path).run("demo", "--display", "plain").stdout
    print(f"demo: {time.monotonic() - began:.1f} s")
    end = output[output.index("do with their sources") :]
    for row in (
        "reads the image alone",
        "reads the text alone",
        "conflict: follows the image",
        "conflict: follows the text",
    ):
        assert row in end
    assert "Where its sources disagree, " in end
    assert "show demo-model-4bit --table main" in end, "the paper's table is one command away"
    assert states(Rashomon(tmp_path)) == {}, "it keeps to a workspace of its own"
    demo_workspace = Workspace(tmp_path / "workspace" / "rashomon-demo" / "cmc-bench")
    assert [run.state for run in demo_workspace.summaries()] == ["done"] * 7
    in_demo = partial(Rashomon(tmp_path).run, "--workspace", demo_workspace.path)
    (main,) = json_result(in_demo("show", "demo-model-4bit", "--table", "main", "--json").stdout)["tables"]
    assert main["rows"][0]["cells"]["aligned"]["value"] >= 0.75, "it reads charts"


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["clash", "mmkc-bench", "crosscheck-bench"])
def test_other_benchmarks_have_demos(tmp_path: Path, benchmark: str) -> None:
    began = time.monotonic()
    output = Rashomon(tmp_path).process("demo", benchmark, "--display", "plain").stdout
    print(f"demo {benchmark}: {time.monotonic() - began:.1f} s")
    assert "model-4bit" in output
    assert f"--benchmark {benchmark}" in output
    demo_workspace = Workspace(tmp_path / "workspace" / "rashomon-demo" / benchmark)
    assert {run.state for run in demo_workspace.summaries()} == {"done"}


def test_unknown_demo_is_refused(tmp_path: Path) -> None:
    assert "did you mean 'clash'?" in Rashomon(tmp_path).run("demo", "clahs", code=2).stderr
