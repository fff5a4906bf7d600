"""Numbers computed on the pages, recomputed by the code behind them."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from app.engine.training.training_spec_and_recipes import RECIPES
from mlx_backends.models import memory_and_cache_sizes
from mlx_backends.models.metal_working_set import GIB, estimated_working_set
from mlx_backends.models.training_memory import RowTokens, image_tokens, training_memory
from tests.docs.pages import ROOT

MACS = (16, 24, 32, 64)

SPECIAL_TOKENS = 64
"""Tokens of a chat template."""


def rows(page: str, columns: int) -> list[list[str]]:
    """Return the cells of the page's table rows with ``columns`` cells."""
    lines = [line for line in (ROOT / page).read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns]


@pytest.mark.parametrize(("column", "gigabytes"), list(enumerate(MACS, 3)))
def test_documented_memory_table_matches_the_estimate(
    column: int, gigabytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(memory_and_cache_sizes, "metal_working_set", lambda: None)
    monkeypatch.setattr(memory_and_cache_sizes, "_total", lambda: gigabytes * GIB)
    table = [row for row in rows("docs/memory.md", 7) if row[0].startswith("`")]
    assert len(table) > 20
    for model, weights, needs, *fits in table:
        fit = memory_and_cache_sizes.memory_fit(round(float(weights.removesuffix(" GB")) * 1e9))
        assert abs(fit.need / 1e9 - float(needs.removesuffix(" GB"))) < 0.1, model
        assert fits[column - 3] == ("yes" if fit.ok else "no"), (model, gigabytes)


@pytest.mark.skipif(
    find_spec("mlx_backends.models.model_catalog") is None, reason="there is no list of the papers' models"
)
def test_all_models_of_the_paper_are_listed_with_sizes() -> None:
    listed = import_module("mlx_backends.models.model_catalog").catalog_models()
    sizes = {model[0].strip("`"): model[1] for model in rows("docs/memory.md", 7) if model[0].startswith("`")}
    assert sizes == {model.id: f"{model.weights_bytes / 1e9:.1f} GB" for model in listed if model.benchmarks}


def test_documented_hours_are_instances_times_seconds() -> None:
    table = [row for row in rows("docs/paper.md", 4) if re.fullmatch(r"[\d.]+", row[0])]
    assert len(table) == 5
    for seconds, pilot, paper, everything in table:
        assert pilot == f"{160 * float(seconds) / 60:.1f} min"
        assert paper == f"{3768 * float(seconds) / 3600:.1f} h"
        assert everything == f"{7536 * float(seconds) / 3600:.1f} h"


TRAINED = {
    "LLaVA-1.5-7B": ("llava-hf/llava-1.5-7b-hf", 32, 4096, 11008, 32, 128, 32064, {"image_size": 336, "patch_size": 14}),
    "Qwen3-VL-4B": (
        "Qwen/Qwen3-VL-4B-Instruct", 36, 2560, 9728, 8, 128, 151936, {"patch_size": 16, "spatial_merge_size": 2},
    ),
}  # fmt: skip
"""Published sizes: the model of the catalog, layers, widths, key-value heads, head size, vocabulary, encoder."""


def test_documented_training_memory_is_the_estimate() -> None:
    catalog = [json.loads(line) for line in _catalog_lines()]
    table = [row for row in rows("docs/training.md", 8) if row[0] in TRAINED]
    assert len(table) == 8
    for name, rank, checkpointing, needs, *fits, disk in table:
        base, layers, hidden, inner, keys, head, vocabulary, vision = TRAINED[name]
        text = {
            "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": 32,
            "num_key_value_heads": keys, "head_dim": head, "vocab_size": vocabulary,
        }  # fmt: skip
        config = {"dtype": "bfloat16", "text_config": text, "vision_config": {"hidden_size": 1024, **vision}}
        (entry,) = [entry for entry in catalog if entry["base"] == base]
        weights = int(entry["language"] * 4.5 / 8 + entry["rest"] * 2)
        image = image_tokens(config, 640, 480)
        row = RowTokens(200 + SPECIAL_TOKENS + image + 16, image, 16)
        memory = training_memory(
            config, weights, row, rank=int(rank), dropout=0.05, checkpointing=checkpointing == "on"
        )
        assert needs == f"{memory.total / 1e9:.1f} GB", name
        assert disk == f"{memory.disk / 1e9:.1f} GB", name
        expected = ["yes" if memory.total <= estimated_working_set(size * GIB) else "no" for size in (16, 24, 36)]
        assert fits == expected, name


def test_documented_recipes_are_those_of_the_code() -> None:
    table = [row for row in rows("docs/training.md", 10) if row[0].strip("`") in RECIPES]
    assert len(table) == len(RECIPES)
    for name, rank, alpha, dropout, length, batch, rate, schedule, warmup, epochs in table:
        recipe = RECIPES[name.strip("`")]
        numbers = [
            recipe[key] for key in ("rank", "alpha", "dropout", "max_length", "batch_size", "learning_rate", "epochs")
        ]
        assert [float(cell) for cell in (rank, alpha, dropout, length, batch, rate, epochs)] == numbers
        assert schedule == recipe["schedule"]
        assert warmup == ("3%" if recipe["warmup"] < 1 else f"{recipe['warmup']:.0f} updates")


def _catalog_lines() -> list[str]:
    lines = (ROOT / "assets" / "models.json").read_text("utf-8").splitlines()
    return [line.strip().rstrip(",") for line in lines if line.strip().startswith("{")]
