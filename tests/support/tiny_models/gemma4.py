"""Tiny random gemma4."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer

ROPE = {  # mlx-vlm's own default turns all of a head, and transformers' a quarter
    "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}


def write_gemma_tokenizer(folder: Path) -> dict[str, int]:
    marks = ["<|image|>", "<|audio|>", "<|video|>", "<boi>", "<eoi>", "<boa>", "<eoa>"]
    branches = "".join(f"{{%- elif c.type == '{kind}' %}}{{{{- '<|{kind}|>' }}}}" for kind in ("audio", "video"))
    template = TURNS.replace("IMAGE", "<|image|>").replace(
        "{%- elif c.type == 'text' %}", branches + "{%- elif c.type == 'text' %}"
    )
    return write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks],
        template,
        extra_special_tokens={
            "image_token": "<|image|>",
            "audio_token": "<|audio|>",
            "video_token": "<|video|>",
            "boi_token": "<boi>",
            "eoi_token": "<eoi>",
            "boa_token": "<boa>",
            "eoa_token": "<eoa>",
        },
    )


def build(folder: Path) -> Path:
    """It takes images, sounds and videos; before each frame of a video its processor writes when it is."""
    ids = write_gemma_tokenizer(folder)
    text = {
        "model_type": "gemma4_text",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "global_head_dim": 16,
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 16,
        "vocab_size": len(ids),
        "vocab_size_per_layer_input": len(ids),
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "use_double_wide_mlp": False,
        "final_logit_softcapping": 30.0,
        "rope_parameters": ROPE,
    }
    vision = {
        "model_type": "gemma4_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "global_head_dim": 16,
        "position_embedding_size": 64,
    }
    audio = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "subsampling_conv_channels": [8, 4],
        "output_proj_dims": 64,
    }
    config = {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "eos_token_id": [ids["<|im_end|>"]],
        "image_token_id": ids["<|image|>"],
        "audio_token_id": ids["<|audio|>"],
        "video_token_id": ids["<|video|>"],
        "text_config": text,
        "vision_config": vision,
        "audio_config": audio,
    }
    return write_model(folder, config, {"patch_size": 16, "max_soft_tokens": 70, "pooling_kernel_size": 3}, ["audio"])
