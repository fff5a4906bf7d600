"""Weights made for MLX in PyTorch: computed back bit for bit, renamed, in PyTorch's layout; what cannot be is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from benchmarks.errors import ModelError
from mlx_backends.pytorch import torch_weights
from mlx_backends.pytorch.torch_weights import (
    compute_dtype,
    convert_weights,
    dequantise,
    is_mlx_format,
    mlx_quantisation,
)
from tests.support import tiny_models
from tests.support.in_torch import needs_torch

AFFINE = {"group_size": 64, "bits": 4, "mode": "affine"}


@needs_torch
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_affine_weights_are_dequantised_bit_for_bit(bits: int, group: int, kind: str) -> None:
    import torch

    random = mx.random.normal((40, 256), key=mx.random.key(bits)).astype(getattr(mx, kind))
    packed = mx.quantize(random, group_size=group, bits=bits)
    expected = mx.dequantize(*packed, group_size=group, bits=bits)
    weights = dequantise(*map(_tensor, packed), bits=bits)
    assert weights.dtype == getattr(torch, kind)
    assert torch.equal(weights, _tensor(expected))


@needs_torch
def test_large_and_stacked_matrices_are_dequantised(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch_weights, "_ROWS", 7)
    packed = mx.quantize(mx.random.normal((3, 20, 128), key=mx.random.key(0)), group_size=64, bits=4)
    expected = mx.dequantize(*packed, group_size=64, bits=4)
    assert torch.equal(dequantise(*map(_tensor, packed), bits=4), _tensor(expected))


def _tensor(value: mx.array) -> Any:
    import torch

    if value.dtype == mx.bfloat16:
        return torch.from_numpy(np.array(value.view(mx.uint16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def folder(path: Path, weights: dict[str, mx.array], **config: Any) -> tuple[Path, dict[str, Any]]:
    path.mkdir(exist_ok=True)
    mx.save_safetensors(str(path / "model.safetensors"), weights, metadata={"format": "mlx"})
    return path, {"model_type": "qwen3_vl", **config}


@needs_torch
def test_names_and_convolutions_follow_pytorch(tmp_path: Path) -> None:
    import torch

    conv, line = mx.random.normal((8, 2, 4, 4, 3)), mx.random.normal((8, 3, 1))
    path, config = folder(
        tmp_path,
        {
            "vision_tower.patch_embed.proj.weight": conv,
            "language_model.model.layers.0.conv.conv.weight": line,
            "language_model.lm_head.weight": mx.ones((4, 8)),
            "vision_tower.layers.0.weight": mx.zeros((2,)),
            "language_model.model.layers.0.weight": mx.ones((2,)),
        },
    )
    weights = convert_weights(
        path,
        config,
        {
            "model.visual.patch_embed.proj.weight": (8, 3, 2, 4, 4),
            "model.language_model.layers.0.conv.conv.weight": (8, 1, 3),
            "lm_head.weight": (4, 8),
            "model.visual.layers.0.weight": (2,),
            "model.language_model.layers.0.weight": (2,),
        },
    )
    assert torch.equal(weights["model.visual.patch_embed.proj.weight"], _tensor(conv).movedim(-1, 1))
    assert torch.equal(weights["model.language_model.layers.0.conv.conv.weight"], _tensor(line).movedim(-1, 1))
    assert weights["model.visual.layers.0.weight"].sum() == 0
    assert weights["model.language_model.layers.0.weight"].sum() == 2


@needs_torch
def test_layers_may_have_their_own_bits(tmp_path: Path) -> None:
    import torch

    weights: dict[str, mx.array] = {}
    expected: dict[str, Any] = {}
    for name, bits in (("a", 4), ("b", 8)):
        packed = mx.quantize(mx.random.normal((8, 64), key=mx.random.key(bits)), bits=bits)
        weights |= dict(zip((f"{name}.weight", f"{name}.scales", f"{name}.biases"), packed, strict=True))
        expected[f"{name}.weight"] = _tensor(mx.dequantize(*packed, bits=bits))
    path, config = folder(tmp_path, weights, quantization={**AFFINE, "b": {"group_size": 64, "bits": 8}})
    converted = convert_weights(path, config, {"a.weight": (8, 64), "b.weight": (8, 64)})
    assert all(torch.equal(converted[name], value) for name, value in expected.items())


@needs_torch
@pytest.mark.parametrize(
    ("quantization", "shapes", "why"),
    [
        ({**AFFINE, "mode": "mxfp4"}, {"a.weight": (8, 64)}, "quantised as mxfp4"),
        ({**AFFINE, "bits": 8}, {"a.weight": (8, 64)}, "not quantised as config.json says"),
        ({**AFFINE, "group_size": "64"}, {"a.weight": (8, 64)}, "not quantised as config.json says"),
        (AFFINE, {"a.weight": (8, 32)}, "has the shape"),
        (AFFINE, {"b.weight": (8, 64)}, "no weight like 'a.weight'"),
    ],
)
def test_unconvertible_weights_are_reported(
    quantization: dict[str, Any], shapes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    packed = mx.quantize(mx.random.normal((8, 64)))
    weights = dict(zip(("a.weight", "a.scales", "a.biases"), packed, strict=True))
    path, config = folder(tmp_path, weights, quantization=quantization)
    with pytest.raises(ModelError, match=why):
        convert_weights(path, config, shapes)


def test_mlx_folder_and_its_precision_are_recognised(tmp_path: Path, tiny: Path) -> None:
    lfm = tiny_models.lfm2_vl(tmp_path / "lfm2_vl")
    assert is_mlx_format(lfm, {})
    assert not is_mlx_format(tiny, {})
    assert is_mlx_format(tiny, {"quantization": AFFINE})
    assert mlx_quantisation({"quantization_config": {"quant_method": "awq", "group_size": 128}}) == {}
    assert (compute_dtype(tiny), compute_dtype(lfm)) == ("bfloat16", "float32")
    config = json.loads((tiny / "config.json").read_text())
    assert mlx_quantisation(config) == {}


def test_four_bit_weights_compute_in_the_type_of_their_scales(tiny_4bit: Path) -> None:
    assert compute_dtype(tiny_4bit) == "bfloat16"
