"""Tiny random glm4v_moe (GLM-4.5V): glm4v's images before a language model of experts."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer
from tests.support.tiny_models.glm4v import TEMPLATE


def build(folder: Path) -> Path:
    marks = ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"]
    images = ["<|begin_of_image|>", "<|image|>", "<|end_of_image|>"]
    videos = ["<|begin_of_video|>", "<|video|>", "<|end_of_video|>", "<|begin_of_box|>", "<|end_of_box|>"]
    ids = write_tokenizer(
        folder,
        ["<|endoftext|>", *marks, *images, *videos],
        TEMPLATE,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        extra_special_tokens={"image_token": "<|image|>", "video_token": "<|video|>"},
    )
    ends = [ids["<|endoftext|>"], ids["<|user|>"]]
    text = {
        "model_type": "glm4v_moe_text",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "intermediate_size": 128,
        "moe_intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-5,
        "attention_bias": True,
        "use_qk_norm": False,
        "n_group": 1,
        "topk_group": 1,
        "n_shared_experts": 1,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
        "routed_scaling_factor": 1.0,
        "norm_topk_prob": True,
        "partial_rotary_factor": 0.5,
        "rope_theta": 10000.0,
        "rope_scaling": {"rope_type": "default", "type": "default", "mrope_section": [2, 1, 1]},
        "eos_token_id": ends,
        "pad_token_id": ids["<|endoftext|>"],
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "glm4v_moe_vision",
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "out_hidden_size": 64,
        "num_heads": 4,
        "patch_size": 14,
        "image_size": 112,
        "in_channels": 3,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    config = {
        "architectures": ["Glm4vMoeForConditionalGeneration"],
        "model_type": "glm4v_moe",
        "image_token_id": ids["<|image|>"],
        "video_token_id": ids["<|video|>"],
        "image_start_token_id": ids["<|begin_of_image|>"],
        "image_end_token_id": ids["<|end_of_image|>"],
        "vision_start_token_id": ids["<|begin_of_image|>"],
        "vision_end_token_id": ids["<|end_of_image|>"],
        "video_start_token_id": ids["<|begin_of_video|>"],
        "video_end_token_id": ids["<|end_of_video|>"],
        "eos_token_id": ends,
        "tie_word_embeddings": False,
        "vocab_size": len(ids),
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Glm4vImageProcessor",
        "processor_class": "Glm4vProcessor",
        "size": {"shortest_edge": 3136, "longest_edge": 50176},
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return write_model(folder, config, processor)
