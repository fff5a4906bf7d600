"""Tiny random paligemma (PaliGemma 2). It has no chat template: its processor writes all images before the text."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer


def build(folder: Path) -> Path:
    """An image is one square of 4 tokens, whatever its size; a prompt is read without a causal mask."""
    extra = [*(f"<loc{number:04}>" for number in range(1024)), *(f"<seg{number:03}>" for number in range(128))]
    ids = write_tokenizer(
        folder,
        ["<pad>", "<eos>", "<bos>", "<unk>", "<image>", *extra],
        "",
        bos="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        extra_special_tokens={"image_token": "<image>"},
    )
    text = {
        "model_type": "gemma2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": len(ids),
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 16,
        "sliding_window": 4096,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "patch_size": 14,
        "image_size": 28,
        "projection_dim": 64,
        "vision_use_head": False,
    }
    config = {
        "architectures": ["PaliGemmaForConditionalGeneration"],
        "model_type": "paligemma",
        "hidden_size": 64,
        "projection_dim": 64,
        "image_token_index": ids["<image>"],
        "pad_token_id": ids["<pad>"],
        "eos_token_id": [ids["<eos>"]],
        "vocab_size": len(ids),
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "SiglipImageProcessor",
        "processor_class": "PaliGemmaProcessor",
        "image_seq_length": 4,
        "size": {"height": 28, "width": 28},
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
