"""``show --speed``: what a run computed, beside what perfect sharing would have computed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from app.report.progress.run_speed import read_speed
from app.store.run_facts import WORK_KEY
from app.store.run_store import RunStore
from app.store.sqlite_errors import DamagedError
from tests.support.command import ROOT, Rashomon, kill_all

BATCH = ("--batch", "--benchmark", "cmc-bench", "--display", "none", "--limit", "4")


@pytest.mark.slow
def test_a_run_that_shares_work_shows_how_much(rashomon: Rashomon) -> None:
    with patch.object(RunStore, "order_by_image", autospec=True, side_effect=RunStore.order_by_image) as order:
        rashomon.run(*BATCH, "--model", ROOT / "assets" / "demo" / "model-4bit", "--name", "shared")
    whole = [call for call in order.call_args_list if call.kwargs["only"] is None]
    assert len(whole) == 1, "which reads every instance of the run"
    (speed,) = speeds(rashomon, "shared")
    with RunStore.read(rashomon.workspace / "runs" / "shared") as store:
        generations = [record.generations[0] for record in store.records()]
    work = speed["work"]
    assert (speed["answers"], speed["timed"]) == (len(generations),) * 2
    assert work["prompts"] == speed["counted"] == len(generations) - 1, "the first is answered alone"
    prompts = [generation.prompt_tokens or 0 for generation in generations]
    assert sum(prompts) - work["prompt_tokens"] in prompts
    assert speed["tokens"] == sum(generation.completion_tokens or 0 for generation in generations)
    assert speed["prefill_s"] == pytest.approx(sum(generation.prefill_s or 0 for generation in generations))
    assert work["distinct_tokens"] <= work["computed_tokens"] < 1.15 * work["distinct_tokens"] < work["prompt_tokens"]
    assert work["encoded"] + work["from_disk"] == work["distinct_images"] < work["images"]
    prose = rashomon.run("show", "shared", "--speed").stdout
    assert f"{work['computed_tokens']:,} computed" in prose


@pytest.mark.slow
def test_a_killed_and_repeated_run_counts_its_distinct_tokens_once(rashomon: Rashomon) -> None:
    command = (*BATCH, "--limit", "12", "--model", ROOT / "assets" / "demo" / "model-4bit", "--max-tokens", "96")
    rashomon.process(*command, "--name", "whole")
    (whole,) = speeds(rashomon, "whole")
    process = rashomon.start(*command, "--name", "killed", "--fresh")
    while process.poll() is None and not counted(rashomon, "killed"):
        time.sleep(0.02)
    kill_all(process)
    (speed,) = speeds(rashomon, "killed")
    assert 0 < speed["counted"] <= speed["generated"] < whole["generated"]
    rashomon.process("resume", "killed", "--display", "none")
    rashomon.process("resume", "killed", "--repeat", "--display", "none")
    (speed,) = speeds(rashomon, "killed")
    assert speed["work"]["distinct_tokens"] == whole["work"]["distinct_tokens"]
    assert speed["work"]["distinct_images"] == whole["work"]["distinct_images"]
    assert speed["work"]["computed_tokens"] > 2 * whole["work"]["computed_tokens"]
    assert speed["answers"] == whole["answers"]
    assert speed["answers"] < speed["counted"] <= speed["generated"] <= 2 * speed["answers"]


def speeds(rashomon: Rashomon, name: str) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = rashomon.json("show", name, "--speed")["speeds"]
    return described


def counted(rashomon: Rashomon, name: str) -> int:
    folder = rashomon.workspace / "runs" / name
    return read_speed(folder).counted or 0 if (folder / "run.sqlite").exists() else 0


def test_a_run_without_shared_work_says_so(rashomon: Rashomon) -> None:
    rashomon.run(*BATCH, "--model", "policy:uniform", "--name", "policy")
    assert "none was counted" in rashomon.run("show", "policy", "--speed").stdout
    (speed,) = speeds(rashomon, "policy")
    assert (speed["work"], speed["timed"], speed["prefill_s"]) == (None, 0, 0.0)
    assert speed["answers"] > 1


@pytest.mark.parametrize("work", [[{"prompts": 1}], {}, [{"prompts": "many"}], [3]])
def test_received_counts_that_are_none_are_named(work: object, rashomon: Rashomon) -> None:
    rashomon.run(*BATCH, "--model", "policy:uniform", "--name", "policy")
    folder: Path = rashomon.workspace / "runs" / "policy"
    with RunStore.open(folder) as store:
        store.set_meta(WORK_KEY, work)
    with RunStore.read(folder) as store, pytest.raises(DamagedError):
        store.meta(WORK_KEY)
    rashomon.run("show", "policy", "--speed", code=DamagedError.exit_code)
