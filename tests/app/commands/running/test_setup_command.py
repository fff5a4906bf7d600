"""The papers' setups: one command each, every value with its source, and what a machine lacks said in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.papers.paper_setups import find_setup, setup_names
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.errors import SpecError
from benchmarks.registry import benchmark_names, get_benchmark
from mlx_backends.models.model_catalog import catalog_models
from tests.benchmarks.test_vqa import small_gqa, small_okvqa
from tests.support.command import ROOT, Rashomon
from tests.support.data.clash import published_folder, published_row
from tests.support.data.contra4 import copy_rows
from tests.support.data.crosscheck_bench import row, write_rows
from tests.support.data.mmkc_bench import whole_folder
from tests.support.data.pope import small_pope
from tests.support.demo import FOUR_BIT

SOURCES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "clash": ("published", lambda place: published_folder(place, [published_row(n) for n in range(1, 25)])),
    "mmkc-bench": ("published", lambda place: whole_folder(place, 6)),
    "pope": ("pope", lambda place: small_pope(place, 7)),
    "crosscheck-bench": ("rows", lambda place: write_rows(place, [row(next(iter(TASKS)), n) for n in range(20)])),
    "contra4": ("published", lambda place: copy_rows(place, 20)),
    "okvqa": ("okvqa", small_okvqa),
    "gqa": ("gqa", small_gqa),
}
NOT_IN_CATALOG = {"mlx-community/Meta-Llama-3.1-8B-Instruct-4bit"}
"""A language model, which answers from captions alone."""


@pytest.mark.parametrize("name", setup_names())
def test_every_value_is_valid_and_has_a_source(name: str) -> None:
    setup = find_setup(f"paper:{name}")
    runs = BatchSpec.model_validate(setup.values).runs()
    assert {run.benchmark for run in runs} == {name}
    assert set(setup.sources) == {*setup.values, *setup.values["decoding"]} - {"benchmark", "decoding"}
    assert set(setup.values["conditions"]) <= set(get_benchmark(name).conditions)
    assert {run.model for run in runs} <= {model.id for model in catalog_models()} | NOT_IN_CATALOG


def test_the_documentation_has_every_source_and_difference() -> None:
    page = (ROOT / "docs" / "setups.md").read_text("utf-8")
    for name in setup_names():
        setup = find_setup(name)
        for sentence in (*setup.sources.values(), *setup.differences):
            assert sentence in page, name


def test_the_benchmarks_of_the_papers_have_a_setup() -> None:
    assert set(setup_names()) >= {"cmc-bench", "clash", "mmkc-bench", "crosscheck-bench", "contra4"}
    assert set(setup_names()) <= set(benchmark_names())
    assert find_setup("cmc-bench").values["conditions"] == ["aligned", "image-correct", "text-correct", "both-wrong"]
    for name in ("cmc", "", "../models", "cmc-bench/../clash"):
        with pytest.raises(SpecError):
            find_setup(f"paper:{name}")


@pytest.mark.parametrize(
    "name", ["cmc-bench", *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(SOURCES))]
)
def test_twenty_examples_of_a_setup(name: str, rashomon: Rashomon, tmp_path: Path) -> None:
    if name in SOURCES:
        source, write = SOURCES[name]
        rashomon.run("build", name, "--source", f"{source}={write(tmp_path / 'source')}")
    model = "policy:uniform" if name in ("cmc-bench", "clash", "mmkc-bench") else str(FOUR_BIT)
    arguments = ["--batch", f"paper:{name}", "--model", model, "--limit", "20", "--name", "r"]
    dry = rashomon.run(*arguments, "--dry-run", "--display", "plain").stdout
    rashomon.run(*arguments, "--display", "none")
    setup = find_setup(name).values
    with RunStore.read(rashomon.workspace / "runs" / "r") as store:
        spec, records = store.meta("spec"), list(store.records())
    assert f"calls: {len(records)}; instances are counted in the build" in dry
    assert f"no run of {model} on {name} was timed here" in dry
    assert (spec["prompt_set"], spec["seed"]) == (setup["prompt_set"], 0)
    left_out = ["captions"] if name == "contra4" else []  # which need a build with captions by a model
    assert spec["conditions"] == [condition for condition in setup["conditions"] if condition not in left_out]
    assert ("the condition captions is left out" in dry) == bool(left_out)
    assert spec["decoding"].items() >= setup["decoding"].items()
    assert all(record.answer is not None for record in records)
    assert len({record.instance.group for record in records}) <= 20
    assert "nothing is left to run" in rashomon.run(*arguments, "--dry-run", "--display", "plain").stdout
    assert "s per answer over" in rashomon.run(*arguments, "--name", "other", "--dry-run", "--display", "plain").stdout


def test_the_judge_is_the_papers_where_a_key_is_there(rashomon: Rashomon) -> None:
    arguments = ("--batch", "paper:cmc-bench", "--model", "policy:uniform", "--limit", "2", "--dry-run")
    without = rashomon.run(*arguments, "--display", "plain").stdout
    assert "judged by match, because there is no key for the paper's judge" in without
    assert "openai:gpt-5-mini" in without
    with_key = (
        replace(rashomon, variables={**rashomon.variables, "OPENAI_API_KEY": "sk-nobody"})
        .run(*arguments, "--display", "plain")
        .stdout
    )
    assert "judged by openai:gpt-5-mini" in with_key
    assert "judge openai:gpt-5-mini: 8 calls" in with_key
    assert "sk-nobody" not in with_key
    chosen = rashomon.run(*arguments, "--judge", "match", "--display", "plain").stdout
    assert "judged by: match\n" in chosen
    assert "the paper's judge" not in chosen


def test_models_that_are_not_here_are_all_named_with_what_fetches_them(rashomon: Rashomon) -> None:
    done = rashomon.run("--batch", "paper:cmc-bench", "--dry-run", "--display", "plain", code=3)
    for model in find_setup("cmc-bench").values["model"]:
        assert done.stdout.count(f"`rashomon models get {model}`") == 1
    assert done.stderr == "rashomon: HF_HUB_OFFLINE is set, so nothing is fetched; unset it and run the same command.\n"
    missing = rashomon.run("--batch", "paper:clash", "--display", "plain", code=3)
    assert "rashomon build clash" in missing.stdout
    assert missing.stderr.count("\n") == 1
    assert "did you mean 'clash'" in rashomon.run("--batch", "paper:clahs", "--dry-run", code=2).stderr


def test_a_benchmark_is_printed_with_its_setup(rashomon: Rashomon) -> None:
    for name in setup_names():
        text = rashomon.run("benchmarks", name).stdout
        assert f"rashomon --batch paper:{name}" in text
        for source in find_setup(name).sources.values():
            assert source in text
    (entry,) = rashomon.json("benchmarks", "pope")
    assert entry["setup"]["values"]["conditions"]["value"] == ["random", "popular", "adversarial"]
    rashomon.run("benchmarks", "pop", code=2)


def test_the_tasks_of_a_benchmark_are_printed_with_their_capabilities(rashomon: Rashomon) -> None:
    (entry,) = rashomon.json("benchmarks", "crosscheck-bench")
    assert (len(entry["tasks"]), len(entry["capabilities"])) == (15, 7)
    assert entry["tasks"]["SKU"] == "Same-style SKU match (L2; A1 + A3 + A5)"
    lines = rashomon.run("benchmarks", "crosscheck-bench").stdout.splitlines()
    assert "SKU              Same-style SKU match (L2; A1 + A3 + A5)" in [line.strip() for line in lines]
    assert "tasks:" not in rashomon.run("benchmarks").stdout
