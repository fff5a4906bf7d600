"""Tiny random internvl (InternVL3 and 3.5 in the format of transformers).

Its template is the published ChatML one, written from memory and unverified.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    """An image becomes up to 4 tiles and a small copy of the whole."""
    template = TURNS.replace("IMAGE", "<IMG_CONTEXT>\\n")
    marks = ["<img>", "</img>", "<IMG_CONTEXT>", "<video>"]
    ids = write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks],
        template,
        extra_special_tokens={
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
    )
    text = {
        "model_type": "qwen3",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "internvl_vision",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": [56, 56],
        "patch_size": [14, 14],
        "attention_bias": True,
        "use_qk_norm": False,
        "norm_type": "layer_norm",
        "use_mean_pooling": True,
    }
    config = {
        "architectures": ["InternVLForConditionalGeneration"],
        "model_type": "internvl",
        "downsample_ratio": 0.5,
        "image_token_id": ids["<IMG_CONTEXT>"],
        "image_seq_length": 4,
        "max_dynamic_patch": 4,
        "eos_token_id": [ids["<|im_end|>"]],
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default",
        "text_config": text,
        "vision_config": vision,
    }
    (folder / "processor_config.json").write_text(
        json.dumps({"processor_class": "InternVLProcessor", "image_seq_length": 4})
    )
    processor = {
        "image_processor_type": "GotOcr2ImageProcessor",
        "processor_class": "InternVLProcessor",
        "crop_to_patches": True,
        "min_patches": 1,
        "max_patches": 4,
        "size": {"height": 56, "width": 56},
        "resample": 3,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    }
    return write_model(folder, config, processor)
