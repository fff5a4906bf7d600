"""Tiny random qwen2_5_vl."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    template = TURNS.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    ids = write_tokenizer(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks], template)
    config = {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "tie_word_embeddings": True,
        "rope_scaling": {"type": "mrope", "mrope_section": [4, 2, 2]},
        "eos_token_id": [ids["<|im_end|>"]],
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "vision_config": {
            "model_type": "qwen2_5_vl",
            "depth": 2,
            "hidden_size": 64,
            "intermediate_size": 128,
            "out_hidden_size": 64,
            "num_heads": 4,
            "patch_size": 14,
            "in_channels": 3,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
    }
    processor = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen2_5_VLProcessor",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 784,
        "max_pixels": 12544,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],  # the published ones; left out, the libraries differ
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return write_model(folder, config, processor)
