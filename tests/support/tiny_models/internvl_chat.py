"""Tiny random internvl_chat, laid out as InternVL3: tiles and a thumbnail, 4 tokens each instead of 256."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    """mlx-vlm's template for it puts every image before every text."""
    ids = write_tokenizer(folder, ["<|endoftext|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>"], TURNS)
    text = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "intern_vit_6b",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "patch_size": 14,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "image_size": 56,
    }
    config = {
        "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
        "force_image_size": 56,
        "downsample_ratio": 0.5,
        "min_dynamic_patch": 1,
        "max_dynamic_patch": 6,
        "use_thumbnail": True,
        "image_token_index": ids["<IMG_CONTEXT>"],
        "eos_token_id": [ids["<|im_end|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    return write_model(folder, config, {"processor_class": "InternVLChatProcessor"})
