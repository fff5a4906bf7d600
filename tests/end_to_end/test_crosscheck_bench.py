"""CrossCheck-Bench through the real command line: MM-CoT's two stages under SIGKILL, all tasks and strategies, sampling."""

from __future__ import annotations

import itertools
import json
import threading
from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.run_spec import load_spec
from app.store.run_store import RunStore
from benchmarks.crosscheck_bench import crosscheck_prompts
from benchmarks.crosscheck_bench.crosscheck_constants import CONDITIONS, TASKS
from benchmarks.media import load_image
from benchmarks.vocabulary import Mark, Media
from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.command import Rashomon, kill_all
from tests.support.data.crosscheck_bench import BOXES, row, write_rows
from tests.support.fault_server import FaultServer, Received
from tests.support.tiny_qwen3 import build_tiny_vlm

TEXTS = [
    crosscheck_prompts.INTRODUCTION,
    crosscheck_prompts.STEP_BY_STEP,
    "What about product 1? Option: A: Main item for sale B: Partial",
]
EVERY = ",".join(CONDITIONS)
PRODUCTS = Path(__file__).resolve().parents[2] / "assets" / "products"


def build(home: Path, tasks: list[str], count: int) -> Rashomon:
    rashomon = Rashomon(home)
    folder = write_rows(home / "rows", (row(task, number) for task in tasks for number in range(count)))
    rashomon.run("build", "crosscheck-bench", "--source", f"rows={folder}")
    return rashomon


def samples(rashomon: Rashomon, run: str) -> list[dict[str, Any]]:
    rashomon.run("export", run, "--canonical", "--format", "json", "--out", rashomon.home / run)
    return [json.loads(line) for line in (rashomon.home / run / "samples.jsonl").read_text("utf-8").splitlines()]


# --- what a user gets without saying more ------------------------------------------------------------------


def test_paper_settings_are_defaults_and_can_be_overridden(tmp_path: Path) -> None:
    def decoding(**options: Any) -> tuple[Any, ...]:
        (run,) = load_spec(None, {"benchmark": "crosscheck-bench", "model": "policy:always-yes", **options}).runs()
        settings = run.to_decoding()
        return run.conditions, settings.temperature, settings.top_p, settings.max_tokens, settings.seed

    assert decoding() == (("vanilla",), 0.7, 0.9, 512, 0)
    assert decoding(temperature=0.0, max_tokens=8, seed=4, conditions=["cot"]) == (("cot",), 0.0, 0.9, 8, 4)
    spec = tmp_path / "spec.toml"
    spec.write_text('benchmark = "crosscheck-bench"\nmodel = "policy:always-yes"\n[decoding]\ntop_p = 0.5\n')
    (run,) = load_spec(spec, {"temperature": 0.1}).runs()
    assert (run.decoding.top_p, run.decoding.temperature, run.decoding.max_tokens) == (0.5, 0.1, 512)
    assert run.identity()["protocol"] == "crosscheck-bench"
    (other,) = load_spec(None, {"benchmark": "cmc-bench", "model": "policy:random"}).runs()
    assert (other.decoding.temperature, other.decoding.max_tokens, other.conditions) == (0.0, 256, ())
    assert other.identity()["protocol"] == "direct"


@pytest.mark.slow
def test_the_product_set_has_every_task_under_every_strategy(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    build = rashomon.json("build", "crosscheck-bench", "--source", f"products={PRODUCTS}")
    manifest = build["manifest"]
    assert set(manifest["tasks"]) == set(TASKS)
    assert min(manifest["tasks"].values()) >= 4
    assert manifest["with_boxes"] == manifest["samples"]
    options = ("batch", "--benchmark", "crosscheck-bench", "--model", "policy:always-yes", "--conditions", EVERY)
    rashomon.run(*options, "--name", "r", "--display", "none")
    assert states(rashomon)["r"] == ("done", 5 * manifest["samples"], 5 * manifest["samples"])
    (main,) = rashomon.json("show", "r", "--table", "main")["tables"]
    ours = [row["cells"] for row in main["rows"] if "(paper)" not in row["label"]]
    assert len(ours) == 5
    assert {cell["value"] is None for cells in ours for cell in cells.values()} == {False}
    pictures = {path.stem for path in (rashomon.workspace / "benchmarks" / "crosscheck-bench" / "media").iterdir()}
    assert all(len(stem) == 64 for stem in pictures), "no file name tells anything"


def test_every_task_and_strategy_appears_in_the_tables(tmp_path: Path) -> None:
    """Two samples a task, one of each answer: always-yes is right on half of the yes/no tasks."""
    rashomon = build(tmp_path, list(TASKS), 2)
    output = rashomon.run(
        "batch", "--benchmark", "crosscheck-bench", "--model", "policy:always-yes", "--name", "v"
    ).stdout
    assert "Accuracy by task" in output
    assert states(rashomon)["v"] == ("done", 30, 30)
    rashomon.run(
        *("batch", "--benchmark", "crosscheck-bench", "--model", "policy:always-yes", "--conditions", EVERY),
        *("--judge", "extracted", "--judge", "printed", "--name", "every", "--display", "none"),
    )
    assert states(rashomon)["every"] == ("done", 150, 150)
    tables = {table["name"]: table for table in rashomon.json("show", "every", "v")["tables"]}
    assert {"main", "levels", "capabilities", "composition", "interventions", "interleaved", "exact-match"} <= set(
        tables
    )
    answered = samples(rashomon, "every")
    assert Counter(sample["condition"] for sample in answered) == dict.fromkeys(CONDITIONS, 30)
    assert Counter(len(sample["steps"]) for sample in answered if sample["condition"] == "mm-cot") == {2: 30}
    assert Counter(len(sample["steps"]) for sample in answered if sample["condition"] != "mm-cot") == {1: 120}
    assert {sample["strata"]["task"] for sample in answered} == set(TASKS)
    right = Counter(
        sample["strata"]["task"] for sample in answered if sample["verdicts"]["printed@1"]["label"] == "CORRECT"
    )
    assert right == {task: 5 for task in TASKS if TASKS[task].closed and TASKS[task].level != "L3"}
    published = rashomon.run("published", "crosscheck-bench", "--table", "1").stdout
    assert "95.20" in published
    assert "91.85" in published


@pytest.mark.slow
def test_judge_model_receives_only_open_answers(tmp_path: Path) -> None:
    rashomon = build(tmp_path, ["LD", "PI", "BR"], 2)
    rashomon.run(
        *(
            "batch",
            "--benchmark",
            "crosscheck-bench",
            "--model",
            "policy:always-yes",
            "--name",
            "r",
            "--display",
            "none",
        )
    )
    with FaultServer(lambda prompt, times: "CORRECT" if "Brand 1" in prompt else "INCORRECT") as server:
        judge = f"endpoint:j@{server.url}"
        assert "2 calls" in rashomon.run("judge", "r", "--judge", judge, "--dry-run").stdout
        rashomon.run("judge", "r", "--judge", judge)
        assert sorted("Brand 1" in request.prompt for request in server.received) == [False, True]
        (main,) = rashomon.json("show", "r", "--judge", judge, "--table", "main")["tables"]
    cells = main["rows"][0]["cells"]
    assert [cells[task]["value"] for task in ("ld", "pi", "br")] == [0.5, 0.0, 0.5]


# --- MM-CoT under SIGKILL ----------------------------------------------------------------------------------


def is_second(received: Received) -> bool:
    return len(received.body["messages"]) == 3


def reply(prompt: str, times: int) -> str:
    """Stage 1 names one box by its label; what it says tells the samples apart."""
    if crosscheck_prompts.HIGHLIGHTED in prompt:
        return "Answer: A"
    product = prompt.partition("product ")[2][:1]
    return f"Product {product}: the price tag is torn, so it is (B)."


def shown_images(received: Received) -> list[list[bytes]]:
    """The pictures of each turn."""
    turns = []
    for message in received.body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        turns.append([b64decode(url.partition(",")[2]) for url in urls])
    return turns


class Stalling:
    """Server that replies as :func:`reply`, but holds the first and third second stage until released."""

    def __init__(self) -> None:
        self.arrived = {number: threading.Event() for number in (0, 2)}
        self.let_go = {number: threading.Event() for number in (0, 2)}
        self._second = itertools.count()

    def __call__(self, prompt: str, times: int) -> str:
        if crosscheck_prompts.HIGHLIGHTED in prompt and (number := next(self._second)) in self.arrived:
            self.arrived[number].set()
            self.let_go[number].wait(60)
        return reply(prompt, times)


def count_durable_answers(rashomon: Rashomon) -> int:
    """Return the number of durable answers of the run."""
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        return sum(len(record.generations) for record in store.records())


def test_mm_cot_killed_between_stages_resumes_with_its_reasoning(tmp_path: Path) -> None:
    """Three samples, one call at a time; everything is killed while the server stalls on a second stage, two times.

    The replies that are kept beside the runs are removed after each kill, so that only the run's own store is left.
    """
    rashomon = build(tmp_path, ["PI"], 3)
    stalling = Stalling()
    with FaultServer(stalling) as server:
        spec = ("batch", "--benchmark", "crosscheck-bench", "--model", f"endpoint:m@{server.url}", "--name", "r")
        options = ("--conditions", "mm-cot", "--concurrency", "1", "--timeout", "60", "--display", "none")
        for killed, number in enumerate(stalling.arrived):
            process = rashomon.start(*spec, *options)
            assert stalling.arrived[number].wait(30)
            answered = len(server.replies) - killed  # what a stalled stage gave went to a process that is dead
            wait_until(lambda answered=answered: count_durable_answers(rashomon) == answered)
            kill_all(process)
            stalling.let_go[number].set()
            for file in rashomon.workspace.glob("replies.sqlite*"):
                file.unlink()
        rashomon.run("resume", "r", "--display", "none")
        received = list(server.received)
    first, second = [[request for request in received if is_second(request) is late] for late in (False, True)]
    assert Counter(request.prompt for request in first) == dict.fromkeys((request.prompt for request in first), 1)
    assert len(first) == 3, "no first stage was asked twice"
    assert len(second) == 3 + 2, "of the second stages only the two that were killed were asked again"

    rows = {request["id"]: request for request in samples(rashomon, "r")}
    pictures = {path.read_bytes(): path for path in (tmp_path / "rows").glob("*.png")}
    marks = (Mark(BOXES[1]["label"], tuple(BOXES[1]["box"])),)
    for request in second:
        product = request.body["messages"][0]["content"][-1]["text"].partition("product ")[2][:1]
        assert request.body["messages"][1] == {"role": "assistant", "content": reply(f"product {product}", 1)}
        plain, none, drawn = shown_images(request)
        (file,) = (path for path in pictures.values() if path.name == f"PI-{product}-0.png")
        assert none == []
        assert [load_image(data).tobytes() for data in plain] == [load_image(file).tobytes()]
        assert [load_image(data).tobytes() for data in drawn] == [load_image(file, None, marks).tobytes()]
    assert len(rows) == 3
    for sample in rows.values():
        assert sample["remarks"] == ["drawn for stage 2: price tag (frame 1)"]
        assert [step["text"] for step in sample["steps"]][1] == "Answer: A"
        assert sample["steps"][0]["text"].startswith(f"Product {sample['question'][-2]}: ")
    output = rashomon.run("show", "r", "--sample", next(iter(rows))).stdout
    assert "drawn for stage 2: price tag (frame 1)" in output


def test_failed_first_stage_is_an_instance_error(tmp_path: Path) -> None:
    rashomon = build(tmp_path, ["PI"], 2)
    with FaultServer(reply, lambda number: "400" if number <= 2 else None) as server:  # the first is examined by, too
        rashomon.run(
            *("batch", "--benchmark", "crosscheck-bench", "--model", f"endpoint:m@{server.url}", "--name", "r"),
            *("--conditions", "mm-cot", "--concurrency", "1", "--display", "none"),
            code=1,
        )
        assert server.requests == 4
    answered = samples(rashomon, "r")
    assert [[step["finish_reason"] for step in sample["steps"]] for sample in answered] == [["error"], ["stop", "stop"]]
    assert "remarks" not in answered[0]


def test_the_estimate_counts_both_stages(tmp_path: Path) -> None:
    rashomon = build(tmp_path, ["PI"], 2)
    output = rashomon.run(
        *("batch", "--benchmark", "crosscheck-bench", "--model", "endpoint:m@http://127.0.0.1:9/v1", "--dry-run"),
        *("--conditions", "vanilla,mm-cot"),
    ).stdout
    assert "6 calls" in output
    assert "(8 images)" in output


# --- sampling ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sampling_is_reproducible_after_kills_and_in_any_order(
    tmp_path: Path,
) -> None:
    """A tiny model of random weights on the product set: a sample of each task under each strategy, at 0.7 and 0.9."""
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "crosscheck-bench", "--source", f"products={PRODUCTS}", "--per-stratum", "2")
    model = build_tiny_vlm(tmp_path / "tiny", TEXTS, quantise=True)
    spec = ("batch", "--benchmark", "crosscheck-bench", "--model", str(model), "--conditions", EVERY)
    options = (*spec, "--max-tokens", "8", "--max-pixels", "4096", "--display", "none")
    rashomon.run(*options, "--name", "quiet")
    total = states(rashomon)["quiet"][1]

    def done() -> int:
        return states(rashomon).get("killed", ("", 0, 0))[1]

    for share in (0.2, 0.4):
        process = rashomon.start(*options, "--name", "killed")
        wait_until(lambda share=share: done() > share * total, 120)
        kill_all(process)
        # In another order: the strategies that come last are asked first.
        rashomon.run("resume", "killed", "--conditions", "mm-cot", "--display", "none")
    assert done() < total
    rashomon.run("resume", "killed", "--display", "none")
    quiet, killed = samples(rashomon, "quiet"), samples(rashomon, "killed")
    assert quiet == killed
    assert {sample["strata"]["task"] for sample in quiet} == set(TASKS)
    assert Counter(sample["condition"] for sample in quiet) == dict.fromkeys(CONDITIONS, total // 5)
    assert {step["finish_reason"] for sample in quiet for step in sample["steps"]} <= {"stop", "length"}
    assert all(len(sample["steps"]) == (2 if sample["condition"] == "mm-cot" else 1) for sample in quiet)
    cot, stage_1 = (
        {sample["group"]: sample["steps"][0]["tokens"] for sample in quiet if sample["condition"] == condition}
        for condition in ("cot", "mm-cot")
    )
    assert cot == stage_1, "stage 1 of MM-CoT is chain-of-thought"
    print(f"{total} instances, {sum(len(sample['steps']) for sample in quiet)} answers, each the same after two kills")


def test_marked_and_plain_medium_share_one_file() -> None:
    assert Media("a", ".png").name == Media("a", ".png", marks=(Mark("x", (0, 0, 1, 1)),)).name
