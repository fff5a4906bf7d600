"""Tiny random minicpmv4_6 (MiniCPM-V 4.6). Its template is Qwen3.5's, which it is likely to share; unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    """An image becomes a small copy of the whole and slices; its language model is Qwen3.5's, with a state to keep."""
    marks = [f"<{slash}{name}>" for name in ("image", "slice", "image_id") for slash in ("", "/")]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", *marks]
    ids = write_tokenizer(
        folder,
        special,
        TURNS.replace("IMAGE", "<|image_pad|>"),
        extra_special_tokens={
            "image_token": "<|image_pad|>",
            "video_token": "<|video_pad|>",
            **{f"{name}_start_token": f"<{name}>" for name in ("image", "slice", "image_id")},
            **{f"{name}_end_token": f"</{name}>" for name in ("image", "slice", "image_id")},
        },
    )
    text = {
        "model_type": "qwen3_5_text",
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
    }
    vision = {
        "model_type": "minicpmv4_6_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": 56,
        "patch_size": 14,
        "insert_layer_id": 1,
    }
    config = {
        "architectures": ["MiniCPMV4_6ForConditionalGeneration"],
        "model_type": "minicpmv4_6",
        "insert_layer_id": 1,
        "image_size": 112,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "eos_token_id": ids["<|im_end|>"],
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "MiniCPMV4_6ImageProcessor",
        "processor_class": "MiniCPMV4_6Processor",
        "max_slice_nums": 9,
        "scale_resolution": 112,
        "patch_size": 14,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
