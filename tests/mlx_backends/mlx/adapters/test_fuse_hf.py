"""Fused models in Hugging Face's layout: the original's names and shapes, and the same answers in every program."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from benchmarks.errors import ModelError
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.greedy_check import Agreement
from mlx_backends.mlx.adapters.fuse_adapter import FuseOptions, fuse
from mlx_backends.mlx.adapters.fuse_hf import fuse_to_hf
from mlx_backends.models.adapter_folder import read_adapter
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.weight_files import tensor_shapes
from tests.mlx_backends.conftest import Pictures
from tests.mlx_backends.mlx.test_batched_answers import varied
from tests.support import tiny_models
from tests.support.adapters import make_adapter
from tests.support.benchmark_requests import answers
from tests.support.command import Rashomon
from tests.support.demo import BF16, FOUR_BIT
from tests.support.in_torch import in_torch, needs_torch

FAMILIES = ("qwen3_vl", "lfm2_vl", "llava", "idefics3", "qwen2_5_vl", "qwen3_5", "glm4v", "mistral3", "internvl")
FIRST = "qwen3_vl"


def slow(*families: str) -> list[Any]:
    return [name if name == FIRST else pytest.param(name, marks=pytest.mark.slow) for name in families]


def fused(model: Path, adapter: Path, target: Path) -> Path:
    target.mkdir()
    fuse_to_hf(inspect(model), read_adapter(adapter), target)
    return target


def answered(model: str, pictures: Pictures) -> dict[str, tuple[int, ...]]:
    backend: Any = load_backend(model, pictures.path)
    backend._model.set_dtype(mx.float32)
    generations = answers(backend, varied(pictures, 2))
    backend.close()
    return {key: generation.tokens for key, generation in generations.items()}


def test_the_demo_in_4_bits_gets_the_layout_of_its_original(tmp_path: Path) -> None:
    folder = fused(FOUR_BIT, make_adapter(FOUR_BIT, tmp_path / "adapter"), tmp_path / "hf")
    shapes, original = (tensor_shapes(path / "model.safetensors") for path in (folder, BF16))
    assert shapes == original
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3VLForConditionalGeneration"]
    assert not {"quantization", "quantization_config"} & config.keys()
    _, metadata = mx.load(str(folder / "model.safetensors"), return_metadata=True)
    assert metadata == {"format": "pt"}
    assert describe(str(folder)).adapter == read_adapter(tmp_path / "adapter").digest


@pytest.mark.parametrize("family", slow(*FAMILIES))
def test_answers_are_those_with_the_adapter(family: str, pictures: Pictures, tmp_path: Path) -> None:
    model = getattr(tiny_models, family)(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    folder = fused(model, adapter, tmp_path / "hf")
    expected = answered(f"{model}+{adapter}", pictures)
    assert expected != answered(str(model), pictures)
    assert answered(str(folder), pictures) == expected


def test_a_model_in_that_layout_keeps_its_names_whatever_its_type(tmp_path: Path) -> None:
    """A mixture of experts, whose names do not follow from those of MLX; its attention is changed, its experts are not."""
    model = tiny_models.qwen3_vl_moe(tmp_path / "model")
    folder = fused(model, make_adapter(model, tmp_path / "adapter"), tmp_path / "hf")
    before, after = (mx.load(str(path / "model.safetensors")) for path in (model, folder))
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert {name: value.shape for name, value in before.items()} == {name: value.shape for name, value in after.items()}
    changed = {name for name in before if not bool(mx.array_equal(before[name], after[name]))}
    assert any(name.endswith("q_proj.weight") for name in changed)
    assert not any("experts" in name or "visual" in name for name in changed)


def test_experts_in_the_layout_of_mlx_are_refused(tmp_path: Path) -> None:
    model, target = tiny_models.qwen3_vl_moe(tmp_path / "model"), tmp_path / "mlx"
    adapter = make_adapter(model, tmp_path / "adapter")
    target.mkdir()
    fuse(inspect(model), read_adapter(adapter), target, FuseOptions())
    with pytest.raises(ModelError, match="experts of a layer apart"):
        fused(target, make_adapter(target, tmp_path / "other", seed=1), tmp_path / "hf")
    assert not list((tmp_path / "hf").iterdir())


@pytest.mark.slow
def test_the_command_says_which_programs_answer_alike(tmp_path: Path) -> None:
    rashomon, model = Rashomon(tmp_path, variables={"OMP_NUM_THREADS": "1"}), tiny_models.qwen3_vl(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    words = ("models", "fuse", model, "--adapter", adapter, "--to", tmp_path / "hf", "--layout", "hf")
    lines = rashomon.run(*words).stdout.splitlines()
    assert lines[1] == "mlx-vlm: 5 of 5 greedy answers are those of MLX, token for token"
    if find_spec("torch") is None:
        assert lines[2] == "transformers: not checked: PyTorch is not installed."
    else:
        assert lines[2] == "transformers: 5 of 5 greedy answers are those of MLX, token for token"
    assert not list(tmp_path.glob(".hf*")), "nothing unfinished is left"
    rashomon.run(*words[:-4], tmp_path / "other", "--layout", "hf", "--bits", "4", code=2)
    assert not (tmp_path / "other").exists()


def test_answers_that_differ_are_named() -> None:
    assert Agreement("mlx-vlm", 4, 5).sentence.endswith("token for token; measure it before you use it")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen3_vl", "qwen2_5_vl", "qwen3_5"])
def test_mlx_lm_computes_the_same_from_the_language_part(family: str, tmp_path: Path) -> None:
    import mlx_lm

    from mlx_backends.mlx.mlx_load import load

    model = getattr(tiny_models, family)(tmp_path / "model")
    folder = fused(model, make_adapter(model, tmp_path / "adapter"), tmp_path / "hf")
    ids = mx.array([[5, 17, 33, 80, 41, 60, 9, 12]])
    text, _ = mlx_lm.load(str(folder))
    both, _ = load(folder)
    assert bool(mx.allclose(text(ids), both(ids).logits, atol=1e-3))


# --- PyTorch ---------------------------------------------------------------------------------


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("family", ["demo", "lfm2_vl", "llava", "idefics3", "qwen2_5_vl"])
def test_transformers_answers_the_same(family: str, pictures: Pictures, tmp_path: Path) -> None:
    model = FOUR_BIT if family == "demo" else getattr(tiny_models, family)(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    folder = fused(model, adapter, tmp_path / "hf")
    expected = answered(f"{model}+{adapter}", pictures)
    theirs = in_torch(f"{folder}@fp32@cpu", varied(pictures, 2), pictures.path).answers
    assert {key: generation.tokens for key, generation in theirs.items()} == expected
