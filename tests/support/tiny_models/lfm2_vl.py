"""Tiny random lfm2_vl."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    """Its template opens with the token that its tokenizer adds as well, and an image may become several tiles."""
    tiles = [f"<|img_row_{row}_col_{col}|>" for row in range(1, 4) for col in range(1, 4)]
    marks = ["<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", *tiles]
    template = "{{- bos_token }}" + TURNS.replace("IMAGE", "<image>")
    ids = write_tokenizer(
        folder,
        ["<|startoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>", *marks],
        template,
        bos="<|startoftext|>",
        image_token="<image>",
        image_start_token="<|image_start|>",
        image_end_token="<|image_end|>",
        image_thumbnail="<|img_thumbnail|>",
    )
    text = {
        "model_type": "lfm2",
        "hidden_size": 64,
        "intermediate_size": 128,
        "block_ff_dim": 128,
        "block_auto_adjust_ff_dim": False,
        "block_dim": 64,
        "conv_dim": 64,
        "conv_dim_out": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "layer_types": ["conv", "full_attention"],
        "vocab_size": len(ids),
        "eos_token_id": ids["<|im_end|>"],
    }
    vision = {
        "model_type": "siglip2_vision_model",
        "vision_use_head": False,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "patch_size": 16,
        "num_patches": 64,
    }
    config = {
        "architectures": ["Lfm2VlForConditionalGeneration"],
        "model_type": "lfm2_vl",
        "image_token_id": ids["<image>"],
        "projector_hidden_size": 64,
        "eos_token_id": ids["<|im_end|>"],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Lfm2VlImageProcessorFast",
        "processor_class": "Lfm2VlProcessor",
        "encoder_patch_size": 16,
        "downsample_factor": 2,
        "tile_size": 64,
        "min_image_tokens": 1,
        "max_image_tokens": 4,
        "resample": 2,  # mlx-vlm and transformers do not have the same one where it is left out
    }
    return write_model(folder, config, processor)
