"""Tiny random qwen3_5. Its template is Qwen3-VL's, which it is likely to share; unverified."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path, kind: str = "qwen3_5", architecture: str = "Qwen3_5", more: Mapping[str, Any] = {}) -> Path:
    """One layer of linear attention, whose state cannot be trimmed, and one of full attention; ``more`` is of the text."""
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    template = TURNS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    ids = write_tokenizer(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks], template)
    text = {
        "model_type": f"{kind}_text",
        "hidden_size": 64,
        "intermediate_size": 128,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "max_position_embeddings": 32768,
        "full_attention_interval": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "tie_word_embeddings": False,
        "eos_token_id": ids["<|im_end|>"],
        "rope_parameters": {
            "rope_type": "default",
            "type": "default",
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.25,
        },
        **more,
    }
    vision = {
        "model_type": kind,
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 4,
        "out_hidden_size": 64,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "in_channels": 3,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [],
        "hidden_act": "gelu_pytorch_tanh",
    }
    config = {
        "architectures": [f"{architecture}ForConditionalGeneration"],
        "model_type": kind,
        "tie_word_embeddings": False,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "eos_token_id": [ids["<|im_end|>"]],
        "vocab_size": len(ids),
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": 1024, "longest_edge": 65536},
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
