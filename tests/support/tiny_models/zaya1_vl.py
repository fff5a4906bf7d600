"""Tiny random zaya1_vl: attention with convolutions, whose state is kept, and experts. Its template is Qwen's; unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    ids = write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<image>"],
        TURNS.replace("IMAGE", "<|vision_start|><image><|vision_end|>"),
        extra_special_tokens={"image_token": "<image>"},
    )
    text = {
        "vocab_size": len(ids),
        "hidden_size": 64,
        "ffn_hidden_size": 128,
        "num_hidden_layers": 2,
        "num_experts": 4,
        "num_attention_heads": 4,
        "num_query_groups": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 32768,
        "norm_epsilon": 1e-5,
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
        "rope_theta": 1000000.0,
        "partial_rotary_factor": 0.5,
        "zaya_mlp_expansion": 64,
        "vision_lora": True,
        "vision_lora_rank_attn": 8,
        "vision_lora_rank_mlp": 8,
        "tie_word_embeddings": True,
    }
    vision = {
        "model_type": "qwen2_5_vl",
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "out_hidden_size": 64,
        "num_heads": 4,
        "in_chans": 3,
        "patch_size": 14,
        "spatial_patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": [1],
    }
    config = {
        "architectures": ["Zaya1VLForConditionalGeneration"],
        "model_type": "zaya1_vl",
        "image_token_id": ids["<image>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        **text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Zaya1VLProcessor",
        "min_pixels": 3136,
        "max_pixels": 50176,
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return write_model(folder, config, processor)
