"""``show --speed``: what a run computed, beside what perfect sharing would have computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.store.run import RunStore
from app.store.run_facts import WORK_KEY
from app.store.sqlite_errors import DamagedError
from mlx_backends.core.reuse import Reuse
from mlx_backends.mlx.preprocess import count_distinct_tokens
from tests.support.command import ROOT, Rashomon

BATCH = ("--batch", "--benchmark", "cmc-bench", "--display", "none", "--limit", "4")


def test_a_run_that_shares_work_shows_how_much(rashomon: Rashomon) -> None:
    rashomon.run(*BATCH, "--model", ROOT / "assets" / "demo" / "model-4bit", "--name", "shared")
    (speed,) = json.loads(rashomon.run("show", "shared", "--speed", "--json").stdout)
    with RunStore.read(rashomon.workspace / "runs" / "shared") as store:
        generations = [record.generations[0] for record in store.records()]
    work = speed["work"]
    assert (speed["answers"], speed["timed"], work["prompts"]) == (len(generations),) * 3
    assert work["prompt_tokens"] == sum(generation.prompt_tokens or 0 for generation in generations)
    assert speed["tokens"] == sum(generation.completion_tokens or 0 for generation in generations)
    assert speed["prefill_s"] == pytest.approx(sum(generation.prefill_s or 0 for generation in generations))
    assert work["distinct_tokens"] <= work["computed_tokens"] < 1.15 * work["distinct_tokens"] < work["prompt_tokens"]
    assert work["encoded"] + work["from_disk"] == work["distinct_images"] < work["images"]
    prose = rashomon.run("show", "shared", "--speed").stdout
    assert f"{work['computed_tokens']:,} computed" in prose


def test_a_run_without_shared_work_says_so(rashomon: Rashomon) -> None:
    rashomon.run(*BATCH, "--model", "policy:uniform", "--name", "policy")
    assert "none was counted" in rashomon.run("show", "policy", "--speed").stdout
    (speed,) = json.loads(rashomon.run("show", "policy", "--speed", "--json").stdout)
    assert (speed["work"], speed["timed"], speed["prefill_s"]) == ({}, 0, 0.0)
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


def test_distinct_tokens_are_counted_as_the_nodes_of_a_prefix_tree() -> None:
    rng = np.random.default_rng(0)
    trunk = rng.integers(0, 9, 20)
    prompts = [np.concatenate([trunk[: 5 * (n % 4)], rng.integers(0, 2, 4 + n % 3)]) for n in range(60)]
    reuse = Reuse()
    for prompt in prompts:
        reuse.read(prompt, ["a" * 64, f"{len(prompt):016x}" * 4])
    assert reuse.distinct_tokens == count_distinct_tokens(prompts)
    assert (reuse.prompts, reuse.prompt_tokens, reuse.images) == (60, sum(map(len, prompts)), 120)
    assert reuse.distinct_images == 1 + len({len(prompt) for prompt in prompts})
