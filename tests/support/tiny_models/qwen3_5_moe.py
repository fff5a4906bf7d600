"""Tiny random qwen3_5_moe: qwen3_5 with routed experts and a shared one in each layer."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.qwen3_5 import build as qwen3_5

EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64,
    "attention_bias": False,
    "norm_topk_prob": True,
}


def build(folder: Path) -> Path:
    return qwen3_5(folder, "qwen3_5_moe", "Qwen3_5Moe", EXPERTS)
