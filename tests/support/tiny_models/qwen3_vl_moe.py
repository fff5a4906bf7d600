"""Tiny random qwen3_vl_moe: Qwen3-VL with routed experts in its second layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support import tiny_qwen3
from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    marks = ["<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
    template = TURNS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    ids = write_tokenizer(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks], template)
    text = {
        "model_type": "qwen3_vl_moe_text",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "moe_intermediate_size": 128,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [0],
        "norm_topk_prob": True,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "rope_theta": 5e6,
        "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True},
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "attention_bias": False,
        "hidden_act": "silu",
    }
    vision = {
        "model_type": "qwen3_vl_moe",
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "out_hidden_size": 64,
        "num_heads": 4,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "in_channels": 3,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
        "hidden_act": "gelu_pytorch_tanh",
    }
    config = {
        "architectures": ["Qwen3VLMoeForConditionalGeneration"],
        "model_type": "qwen3_vl_moe",
        "tie_word_embeddings": False,
        "vocab_size": len(ids),
        "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "size": {"shortest_edge": 1024, "longest_edge": 65536},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "processor_class": "Qwen3VLProcessor",
    }
    write_model(folder, config, {**processor, "image_processor_type": "Qwen2VLImageProcessorFast"})
    video = {**processor, "video_processor_type": "Qwen3VLVideoProcessor"}
    (folder / "video_preprocessor_config.json").write_text(json.dumps(video))
    _publish(folder / "model.safetensors")
    return folder


def _publish(file: Path) -> None:
    """Give the weights the names and the layout of the published checkpoints."""
    import mlx.core as mx

    stored: Any = mx.load(str(file))
    weights: dict[str, Any] = {}
    for name, value in stored.items():
        base, found, part = name.partition("switch_mlp.")
        if found and part == "gate_proj.weight":
            up = stored[f"{base}switch_mlp.up_proj.weight"]
            name, value = f"{base}experts.gate_up_proj", mx.concatenate([value, up], axis=1).transpose(0, 2, 1)
        elif found and part == "down_proj.weight":
            name, value = f"{base}experts.down_proj", value.transpose(0, 2, 1)
        elif found:
            continue
        weights[tiny_qwen3._published(name)] = value.transpose(0, 4, 1, 2, 3) if value.ndim == 5 else value
    weights = {name: mx.contiguous(value) for name, value in weights.items()}
    mx.eval(list(weights.values()))  # they are read from the file that is written over
    mx.save_safetensors(str(file), weights, metadata={"format": "pt"})
