"""Batched runs of a real worker: the tokens of ``--exact``, for prompts of several images and for two stages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from tests.support import tiny_models
from tests.support.command import Rashomon
from tests.support.data.crosscheck_bench import row, write_rows
from tests.support.data.mmkc_bench import whole_folder
from tests.support.fp32 import in_fp32
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

BATCHED = {"mode": "batched"}
"""The order to answer in batches: tiny models would not be expected to gain by them."""


def qwen3_vl(folder: Path) -> Path:
    return in_fp32(build_tiny_vlm(folder, TEXTS, quantise=False))


def qwen3_vl_4bit(folder: Path) -> Path:
    return in_fp32(build_tiny_vlm(folder, TEXTS, quantise=True))


def lfm2_vl(folder: Path) -> Path:
    return in_fp32(tiny_models.lfm2_vl(folder))


def both_ways(rashomon: Rashomon, benchmark: str, model: Path, *more: str) -> list[dict[str, Any]]:
    """Run in batches ("together") and sequentially ("alone"), check that the samples agree, and return them."""
    options = ("--batch", "--benchmark", benchmark, "--model", str(model), "--max-tokens", "6", "--max-pixels", "20000")
    texts = {}
    for name, how in (("together", ()), ("alone", ("--exact",))):
        rashomon.run(*options, *more, *how, "--temperature", "0", "--name", name, "--display", "none")
        rashomon.run("export", name, "--canonical", "--format", "json", "--out", rashomon.home / name)
        texts[name] = (rashomon.home / name / "samples.jsonl").read_text("utf-8")
    assert texts["together"] == texts["alone"]
    samples = [json.loads(line) for line in texts["together"].splitlines()]
    assert all(step["tokens"] for sample in samples for step in sample["steps"])
    assert len({tuple(sample["steps"][0]["tokens"]) for sample in samples}) > 3, "the model sees what it is asked"
    return samples


def way(rashomon: Rashomon) -> dict[str, Any]:
    """Return the batch invariance check of the batched run; the sequential run has none."""
    with RunStore.read(rashomon.workspace / "runs" / "alone") as store:
        assert store.meta("canary", []) == []
    with RunStore.read(rashomon.workspace / "runs" / "together") as store:
        (canary,) = store.meta("canary")
    assert (canary["way"], canary["failed"]) == ("in batches, with shared prefixes computed once", {})
    return dict(canary)


def several_images(home: Path, model: Callable[[Path], Path], examples: int) -> tuple[Rashomon, Path]:
    """MMKC-Bench under all its settings, of up to three images a prompt."""
    rashomon = Rashomon(home, BATCHED)
    rashomon.run("build", "mmkc-bench", "--source", f"published={whole_folder(home / 'src', 1)}")
    built = model(home / "model")
    samples = both_ways(rashomon, "mmkc-bench", built, "--limit", str(examples))
    assert {sample["prompt"].count("[IMAGE ") for sample in samples} == {1, 2, 3}
    print(f"mmkc-bench, {model.__name__}: {len(samples)} answers")
    return rashomon, built


@pytest.mark.slow
def test_batched_prompts_of_several_images_equal_sequential(tmp_path: Path) -> None:
    rashomon, _ = several_images(tmp_path, qwen3_vl, 4)
    assert way(rashomon)["lacks"] == ""


@pytest.mark.slow
def test_batched_prompts_of_several_images_equal_sequential_in_4_bits(tmp_path: Path) -> None:
    way(several_images(tmp_path, qwen3_vl_4bit, 8)[0])


@pytest.mark.slow
def test_model_with_untrimmable_cache_is_batched_and_reported(tmp_path: Path) -> None:
    rashomon, model = several_images(tmp_path, lfm2_vl, 8)
    sentence = way(rashomon)["lacks"]
    assert sentence == (
        f"{model.name} reuses a shared prefix only as a whole, up to where the requests then known diverge, "
        "and reads it again for others: its cache cannot be trimmed (ArraysCache)."
    )
    assert f"  {sentence}" in rashomon.run("show", "together").stdout.splitlines()
    assert "cut back" not in rashomon.run("show", "alone").stdout
    options = ("--benchmark", "mmkc-bench", "--model", str(model), "--limit", "8", "--max-tokens", "6")
    lines = rashomon.process("--batch", *options, "--name", "again", "--display", "plain").stdout.splitlines()
    assert any(line.startswith(f"again: running ({sentence})") for line in lines), "while it runs"
    assert sentence in lines, "and at its end"


@pytest.mark.slow
@pytest.mark.parametrize("model", [qwen3_vl, qwen3_vl_4bit, lfm2_vl])
def test_batched_two_stage_answers_equal_sequential(model: Callable[[Path], Path], tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path, BATCHED)
    rows = write_rows(tmp_path / "rows", (row(task, number) for task in TASKS for number in range(2)))
    rashomon.run("build", "crosscheck-bench", "--source", f"rows={rows}")
    samples = both_ways(rashomon, "crosscheck-bench", model(tmp_path / "model"), "--conditions", "mm-cot")
    assert {len(sample["steps"]) for sample in samples} == {2}
    assert {sample["prompt"].count("[IMAGE ") for sample in samples} >= {1, 3}
    way(rashomon)
    print(f"mm-cot, {model.__name__}: {2 * len(samples)} answers")
