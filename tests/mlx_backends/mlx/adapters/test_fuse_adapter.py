"""Fused models: folders that answer as the model does with its adapter, and that say what they were made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.errors import ModelError
from mlx_backends.engine_registry import describe, load_backend
from tests.mlx_backends.conftest import Pictures
from tests.mlx_backends.mlx.test_batched_answers import tokens, varied
from tests.support import tiny_models
from tests.support.adapters import make_adapter
from tests.support.benchmark_requests import answers
from tests.support.command import Rashomon
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

FAMILIES = ("qwen3_vl", "lfm2_vl", "llava", "internvl_chat")


def answered(model: str, pictures: Pictures) -> object:
    backend = load_backend(model, pictures.path)
    result = tokens(answers(backend, varied(pictures, 2)))
    backend.close()
    return result


def fused(rashomon: Rashomon, model: Path, adapter: Path, *options: str, code: int = 0) -> Path:
    target = rashomon.home / f"fused{''.join(options)}"
    rashomon.run("models", "fuse", model, "--adapter", adapter, "--to", target, *options, code=code)
    assert not list(rashomon.home.glob(".fused*")), "nothing unfinished is left"
    return target


@pytest.mark.parametrize(
    "family", [name if name == "qwen3_vl" else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
)
def test_a_fused_model_answers_as_with_the_adapter(family: str, pictures: Pictures, tmp_path: Path) -> None:
    model = getattr(tiny_models, family)(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    target = fused(Rashomon(tmp_path), model, adapter)
    assert answered(str(target), pictures) == answered(f"{model}+{adapter}", pictures)
    info, base, adapted = describe(str(target)), describe(str(model)), describe(f"{model}+{adapter}")
    assert (info.base_weights, info.adapter) == (base.weights, adapted.adapter)
    assert info.weights != base.weights


def test_quantisation(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    plain = build_tiny_vlm(tmp_path / "plain", TEXTS, quantise=False)
    quantised = build_tiny_vlm(tmp_path / "quantised", TEXTS, quantise=True)
    of_plain, of_quantised = (make_adapter(m, tmp_path / f"of-{m.name}", dora=m is plain) for m in (plain, quantised))
    assert describe(str(fused(rashomon, plain, of_plain, "--bits", "4"))).quantisation == "4-bit g64"
    assert describe(str(fused(rashomon, quantised, of_quantised))).quantisation == "4-bit g64"
    assert describe(str(fused(rashomon, quantised, of_quantised, "--dequantise"))).quantisation == "bf16"


def test_a_quantised_base_in_more_bits_is_nearer_to_its_adapter(tmp_path: Path) -> None:
    """Only the layers with the adapter are quantised anew; the others are as they were."""
    import mlx.core as mx

    rashomon = Rashomon(tmp_path)
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=True)
    layer = next(name.removesuffix(".scales") for name in tensors(model) if name.endswith("q_proj.scales"))
    adapter = make_adapter(model, tmp_path / "adapter", targets=["q_proj"], strength=0.1)
    eight = fused(rashomon, model, adapter, "--bits", "8")
    assert describe(str(eight)).quantisation == "mixed 4/8-bit g64"
    before, after = (tensors(folder) for folder in (model, eight))
    changed = {name for name in before if not mx.array_equal(before[name], after[name])}
    assert f"{layer}.weight" in changed
    assert all(".q_proj." in name for name in changed)
    plain = tensors(fused(rashomon, model, adapter, "--dequantise"))
    folders = {4: fused(rashomon, model, adapter), 8: eight}
    errors = {bits: _error(tensors(folder), plain, layer, bits) for bits, folder in folders.items()}
    assert errors[8] < errors[4] / 2


def tensors(model: Path) -> dict[str, Any]:
    import mlx.core as mx

    return dict(cast("dict[str, Any]", mx.load(str(model / "model.safetensors"))))


def _error(weights: dict[str, Any], plain: dict[str, Any], layer: str, bits: int) -> float:
    import mlx.core as mx

    codes, scales, biases = (weights[f"{layer}.{part}"] for part in ("weight", "scales", "biases"))
    return float(
        mx.abs(mx.dequantize(codes, scales, biases, group_size=64, bits=bits) - plain[f"{layer}.weight"]).mean()
    )


def test_an_adapter_is_fused_once(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=True)
    adapter = make_adapter(model, tmp_path / "adapter")
    target = fused(rashomon, model, adapter)
    again = rashomon.run("models", "fuse", target, "--adapter", adapter, "--to", tmp_path / "twice", code=2)
    assert "in its weights already" in again.stderr
    base = {"base model": "model", "base weights": describe(str(model)).weights}
    other = make_adapter(model, tmp_path / "other", seed=1, base=base)
    refused = rashomon.run("models", "fuse", target, "--adapter", other, "--to", tmp_path / "twice", code=2)
    assert "was trained on model, not on fused" in refused.stderr
    assert not (tmp_path / "twice").exists()
    of_fused = make_adapter(
        model, tmp_path / "next", seed=1, base={"base model": "fused", "base weights": describe(str(target)).weights}
    )
    rashomon.run("models", "fuse", target, "--adapter", of_fused, "--to", tmp_path / "twice")


@pytest.mark.slow
def test_any_program_loads_it(tmp_path: Path) -> None:
    import mlx_vlm

    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    target = fused(Rashomon(tmp_path), model, make_adapter(model, tmp_path / "adapter"), "--bits", "4")
    loaded, processor = mlx_vlm.load(str(target))
    assert mlx_vlm.generate(loaded, processor, "The bar", max_tokens=3).text is not None


def test_refusals_write_nothing(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=True)
    other = tiny_models.llava(tmp_path / "other")
    adapter = make_adapter(model, tmp_path / "adapter")
    for options in (("--bits", "5"), ("--bits", "4", "--dequantise")):
        assert not fused(rashomon, model, adapter, *options, code=2).exists()
    assert not fused(rashomon, other, adapter, code=2).exists()
    assert not fused(rashomon, model, tmp_path / "none", code=2).exists()
    (tmp_path / "fused").mkdir()
    fused(rashomon, model, adapter, code=2)
    assert not list((tmp_path / "fused").iterdir())
    (tmp_path / "model" / "fused.json").write_text("{")
    with pytest.raises(ModelError):
        describe(str(model))


def test_a_record_that_is_no_record_is_ignored(tmp_path: Path) -> None:
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    records: list[object] = [[], {"adapter digest": 3}, {"adapter digest": "x", "weights digest": "y"}]
    for record in records:
        (model / "fused.json").write_text(json.dumps(record))
        info = describe(str(model))
        assert (info.adapter, info.base_weights) == (None, None)
