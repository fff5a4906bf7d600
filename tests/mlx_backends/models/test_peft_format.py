"""Adapters of peft: what changes more than a plain LoRA layer can carry out is refused, the rest is read as peft means it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from benchmarks.errors import ModelError
from mlx_backends.models.peft_format import read_peft

LAYER = "base_model.model.model.language_model.layers.0.self_attn.q_proj"
AS_SAVED: dict[str, Any] = {
    "alora_invocation_tokens": None,
    "alpha_pattern": {},
    "arrow_config": None,
    "auto_mapping": {"base_model_class": "Qwen3VLForConditionalGeneration", "parent_library": "transformers"},
    "base_model_name_or_path": "Qwen/Qwen3-VL-4B-Instruct",
    "bias": "none",
    "corda_config": None,
    "ensure_weight_tying": False,
    "eva_config": None,
    "exclude_modules": None,
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "layer_replication": None,
    "layers_pattern": None,
    "layers_to_transform": None,
    "loftq_config": {},
    "lora_alpha": 8,
    "lora_bias": False,
    "lora_dropout": 0.05,
    "megatron_config": None,
    "megatron_core": "megatron.core",
    "modules_to_save": None,
    "peft_type": "LORA",
    "peft_version": "0.21.2",
    "qalora_group_size": 16,
    "r": 4,
    "rank_pattern": {},
    "revision": None,
    "target_modules": ["q_proj"],
    "target_parameters": None,
    "task_type": "CAUSAL_LM",
    "trainable_token_indices": None,
    "use_dora": False,
    "use_qalora": False,
    "use_rslora": False,
}
"""The settings that peft 0.21.2 writes for a plain adapter."""


def saved(folder: Path, /, extra: tuple[str, ...] = (), **changes: Any) -> Path:
    """Write an adapter of one layer as peft does, with ``extra`` tensors."""
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(AS_SAVED | changes))
    tensors = {f"{LAYER}.lora_A.weight": (4, 64), f"{LAYER}.lora_B.weight": (64, 4), **dict.fromkeys(extra, (64,))}
    save_file(
        {name: np.zeros(shape, np.float32) for name, shape in tensors.items()}, folder / "adapter_model.safetensors"
    )
    return folder


@pytest.mark.parametrize(
    "start", ["pissa", "pissa_niter_16", "PiSSA", "olora", "OLoRA", "corda", "corda_kpm", "loftq", "lora_ga", "new-one"]
)
def test_an_adapter_whose_base_was_changed_is_refused(start: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read_peft(saved(tmp_path / "peft", init_lora_weights=start))


@pytest.mark.parametrize("start", [True, False, None, "gaussian", "eva", "orthogonal", "mica"])
def test_an_adapter_on_the_unchanged_base_is_read(start: object, tmp_path: Path) -> None:
    adapter = read_peft(saved(tmp_path / "peft", init_lora_weights=start))
    assert (adapter.rank, adapter.scale) == (4, 2.0)


def test_a_pissa_adapter_that_peft_converted_is_read(tmp_path: Path) -> None:
    """``save_pretrained(path_initial_model_for_weight_conversion=...)`` sets ``init_lora_weights`` to true."""
    assert read_peft(saved(tmp_path / "peft", init_lora_weights=True, lora_alpha=16)).scale == 4.0


def test_rslora_divides_by_the_root_of_the_rank(tmp_path: Path) -> None:
    assert read_peft(saved(tmp_path / "peft", use_rslora=True)).scale == 4.0


@pytest.mark.parametrize(
    "changes",
    [
        {"use_dora": True},
        {"fan_in_fan_out": True},
        {"rank_pattern": {"q_proj": 8}},
        {"alpha_pattern": {"q_proj": 8}},
        {"modules_to_save": ["lm_head"]},
        {"layer_replication": [[0, 1], [0, 2]]},
        {"use_qalora": True},
        {"lora_bias": True},
        {"alora_invocation_tokens": [1, 2]},
        {"trainable_token_indices": [5]},
        {"target_parameters": ["mlp.experts.gate_up_proj"]},
        {"use_bdlora": {"nblocks": 2}},
        {"arrow_config": {"top_k": 2}},
        {"kasa_config": {"beta": 1e-4}},
        {"monteclora_config": {"num_samples": 4}},
        {"ensure_weight_tying": True},
        {"use_something_of_2027": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_a_plain_layer_cannot_carry_out_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read_peft(saved(tmp_path / "peft", **changes))


def test_biases_that_were_trained_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read_peft(saved(tmp_path / "peft", extra=(f"{LAYER}.base_layer.bias",), bias="lora_only"))
