"""Models that are recommended for a memory, and the facts of the catalog that they come from."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise
from math import ceil
from pathlib import Path

import pytest

from app.commands.data_and_models import list_commands
from mlx_backends.model_family_status import family_status
from mlx_backends.model_recommendation import TYPICAL, PromptSize, recommend_models, smallest_need
from mlx_backends.models.memory_and_cache_sizes import peak_memory, required_memory
from mlx_backends.models.metal_working_set import GIB, estimated_working_set
from mlx_backends.models.model_catalog import CatalogModel, catalog_models
from mlx_backends.models.model_types import type_problem

MEASURED = {
    "gemma-4-12B-it-4bit": (601, 7.6),
    "gemma-4-26b-a4b-it-4bit": (601, 16),
    "gemma-4-31b-it-4bit": (601, 20),
    "gemma-4-e4b-it-4bit": (597, 5.9),
    "Qwen3-VL-30B-A3B-Instruct-4bit": (16554, 23),
    "Qwen3-VL-32B-Instruct-4bit": (16554, 26),
    "Qwen3-VL-8B-Instruct-4bit": (16554, 11),
    "Qwen3-VL-2B-Instruct-bf16": (16467, 8.38),
    "Qwen3.5-35B-A3B-4bit": (16569, 25),
    "Qwen3.5-9B-MLX-4bit": (16569, 11),
    "Qwen3.8-27B-4bit": (16482, 22.06),
    "Qwen2-VL-7B-Instruct-4bit": (16565, 9.3),
}
"""Tokens of a prompt of 330 tokens of text and one photo, and the peak in GB, on a Mac (M5 Max) with mlx-vlm 0.6.11 or 0.7.4.

Published in the repository jrp2014/check_models in August and October 2026. It also measured two models of the type mistral3,
which took 1 and 3 GB more than their estimate.
"""


def model(name: str) -> CatalogModel:
    (match,) = (entry for entry in catalog_models() if entry.id.endswith(f"/{name}"))
    return match


@pytest.mark.parametrize("name", MEASURED)
def test_peaks_measured_on_a_mac_are_below_the_estimate(name: str) -> None:
    tokens, measured = MEASURED[name]
    entry = model(name)
    assert entry.config is not None
    estimate = peak_memory(
        entry.config, entry.weights_bytes, prompt_tokens=tokens, image_tokens=tokens - 330, max_tokens=256
    )
    assert measured < estimate / 1e9 < 1.55 * measured


@pytest.mark.parametrize("gigabytes", [8, 16, 18, 24, 32, 36, 48, 64, 96, 128, 512])
def test_three_models_fit_differ_and_are_proven(gigabytes: int) -> None:
    available = estimated_working_set(gigabytes * GIB)
    first, second, third = recommend_models(available)
    assert len({item.model.base for item in (first, second, third)}) == 3
    assert first.model.base.partition("/")[0] != second.model.base.partition("/")[0]
    assert 2 * third.model.parameters <= first.model.parameters
    for item in (first, second, third):
        assert required_memory(item.model.weights_bytes) <= item.needs <= 0.9 * available
        assert item.family.status == "proven"
        assert not item.model.caution
        assert type_problem({"model_type": item.model.family}) is None
        assert str(item.model.licence) in " ".join(item.facts)


def test_a_long_prompt_needs_more_memory_and_leads_to_other_models() -> None:
    available = estimated_working_set(16 * GIB)
    pages = PromptSize(2000, ((4000, 3000),) * 3, "three scanned pages")
    typical, long = recommend_models(available), recommend_models(available, pages)
    assert typical[0].model.id != long[0].model.id
    assert typical[0].is_exact
    assert all(item.needs <= 0.9 * available for item in long)


def test_more_memory_gives_a_finer_quantisation_of_the_same_model() -> None:
    smaller, larger = (recommend_models(estimated_working_set(size * GIB))[0].model for size in (32, 64))
    assert (smaller.base, smaller.quantisation) == ("Qwen/Qwen3.8-27B", "4-bit")
    assert (larger.base, larger.quantisation) == ("Qwen/Qwen3.8-27B", "8-bit")


def test_too_little_memory_gives_none_and_the_smallest_need_gives_one() -> None:
    least = smallest_need()
    (smallest,) = recommend_models(ceil(least / 0.9))
    assert smallest.needs == least
    assert recommend_models(ceil(least / 0.9) - 100_000_000) == ()
    assert recommend_models(0) == ()
    assert smallest_need(PromptSize(100_000, (), "a book")) >= least


def test_a_model_without_a_configuration_says_so() -> None:
    (item,) = recommend_models(ceil(smallest_need() / 0.9))
    assert item.model.config is None
    assert not item.is_exact
    assert "flat allowance" in item.facts[0]


def test_a_mixture_of_26_billion_parameters_is_not_for_a_mac_with_24_gb() -> None:
    # Its users measured 16 to 20 GB, of which a Mac with 24 GB has 19 for all programs.
    assert "google/gemma-4-26B-A4B-it" not in {
        item.model.base for item in recommend_models(estimated_working_set(24 * GIB))
    }


def test_an_older_model_is_listed_and_not_recommended() -> None:
    assert any(entry.base == "Qwen/Qwen2.5-VL-72B-Instruct" for entry in catalog_models())
    huge = [item.model.released or "" for size in (64, 128, 512) for item in recommend_models(size * 10**9)]
    assert min(huge) >= "2025-07"


@pytest.mark.parametrize("entry", catalog_models(), ids=lambda entry: entry.id)
def test_every_entry_of_the_catalog_is_well_formed(entry: CatalogModel) -> None:
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.id, re.ASCII)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.base, re.ASCII)
    assert type_problem({"model_type": entry.family}) is None, "mlx-vlm has its type, and it is not refused"
    assert entry.released is None or re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", entry.released)
    assert entry.checked is None or date.fromisoformat(entry.checked) >= date(2026, 11, 29)
    assert 10**8 < entry.weights_bytes <= 2 * entry.parameters
    assert entry.licence is None or re.fullmatch(r"[a-z0-9.-]+", entry.licence)


def test_every_family_of_the_catalog_is_proven() -> None:
    status = {entry.family: family_status({"model_type": entry.family}, entry.id).status for entry in catalog_models()}
    assert set(status.values()) == {"proven"}


def test_the_list_names_no_refused_type_and_prints_each_caution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    list_commands.models(as_json=False)
    lines = capsys.readouterr().out.splitlines()
    cautions = {entry.id: entry.caution for entry in catalog_models() if entry.caution}
    assert len(cautions) == 2
    following = {line.split()[0]: after.strip() for line, after in pairwise(lines) if line and not line.startswith(" ")}
    assert {name: following[name] for name in cautions} == cautions
    assert not [
        line for line in lines if re.search("phi-4-multimodal|ernie|youtu|molmo|moondream", line, re.IGNORECASE)
    ]


def test_the_typical_prompt_is_what_its_name_says() -> None:
    ((width, height),) = TYPICAL.images
    assert (
        f"{TYPICAL.text_tokens:,} tokens of text and an image of {width * height / 1e6:.0f} megapixels" == TYPICAL.name
    )
