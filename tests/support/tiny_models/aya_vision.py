"""Tiny random aya_vision. Its template is written from memory and unverified."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """{{- bos_token }}{%- for m in messages %}{{- '<|START_OF_TURN_TOKEN|>' }}\
{{- '<|USER_TOKEN|>' if m.role == 'user' else '<|SYSTEM_TOKEN|>' if m.role == 'system' else '<|CHATBOT_TOKEN|>' }}\
{%- if m.content is string %}{{- m.content }}{%- else %}{%- for c in m.content %}{%- if c.type == 'image' %}{{- '<image>' }}\
{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}{{- '<|END_OF_TURN_TOKEN|>' }}{%- endfor %}\
{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>' }}"""

TURNS = ["START_OF_TURN_TOKEN", "END_OF_TURN_TOKEN", "USER_TOKEN", "SYSTEM_TOKEN", "CHATBOT_TOKEN"]
IMAGES = ["START_RESPONSE", "END_RESPONSE", "START_OF_IMG", "END_OF_IMG", "IMG_LINE_BREAK", "IMG_PATCH"]


def build(folder: Path) -> Path:
    """A tile of 4 x 4 patches becomes four tokens. Three layers of four have a sliding window."""
    marks = [*(f"<|{name}|>" for name in (*TURNS, *IMAGES)), "<image>"]
    tiles = ["TILE_GLOBAL", *(f"TILE_{number}" for number in range(1, 13)), "TILE"]
    special = ["<UNK>", "<BOS_TOKEN>", "<EOS>", "<PAD>", *marks, *tiles]
    ids = write_tokenizer(folder, special, TEMPLATE, bos="<BOS_TOKEN>", eos_token="<|END_OF_TURN_TOKEN|>")
    text = {
        "model_type": "cohere2",
        "hidden_size": 64,
        "head_dim": 16,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": len(ids),
        "rope_theta": 50000.0,
        "layer_norm_eps": 1e-5,
        "logit_scale": 0.25,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        "max_position_embeddings": 16384,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "image_size": 56,
        "patch_size": 14,
        "vision_use_head": False,
    }
    config = {
        "architectures": ["AyaVisionForConditionalGeneration"],
        "model_type": "aya_vision",
        "image_token_index": ids["<|IMG_PATCH|>"],
        "downsample_factor": 2,
        "alignment_intermediate_size": 128,
        "max_splits_per_img": 12,
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
        "eos_token_id": [ids["<|END_OF_TURN_TOKEN|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "GotOcr2ImageProcessor",
        "processor_class": "AyaVisionProcessor",
        "crop_to_patches": True,
        "do_convert_rgb": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "min_patches": 1,
        "max_patches": 12,
        "resample": 3,
        "size": {"height": 56, "width": 56},
    }
    write_model(folder, config, processor)
    settings = {
        "processor_class": "AyaVisionProcessor",
        "image_token": "<image>",
        "patch_size": 28,
        "img_size": 56,
        "downsample_factor": 1,
    }
    (folder / "processor_config.json").write_text(json.dumps(settings))
    return folder
