"""Tiny random llava_next (LLaVA 1.6 with Mistral). Its template is written from memory and unverified."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """{%- for m in messages %}{{- '[INST] ' }}{%- if m.content is string %}{{- m.content }}{%- else %}\
{%- for c in m.content %}{%- if c.type == 'image' %}{{- '<image>\\n' }}{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}\
{%- endfor %}{%- endif %}{{- ' [/INST]' }}{%- endfor %}"""

RESOLUTIONS = [[56, 112], [112, 56], [112, 224], [224, 112]]


def build(folder: Path) -> Path:
    """The vision tower sees 4 x 4 patches of each tile, and of the whole image."""
    special = ["<unk>", "<s>", "</s>", "<pad>", "<image>"]
    ids = write_tokenizer(folder, special, TEMPLATE, bos="<s>", eos_token="</s>")
    text = {
        "model_type": "mistral",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e6,
        "sliding_window": None,
        "vocab_size": len(ids),
        "max_position_embeddings": 32768,
    }
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "image_size": 56,
        "patch_size": 14,
        "projection_dim": 64,
        "vocab_size": len(ids),
    }
    config = {
        "architectures": ["LlavaNextForConditionalGeneration"],
        "model_type": "llava_next",
        "image_token_index": ids["<image>"],
        "image_grid_pinpoints": RESOLUTIONS,
        "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default",
        "tie_word_embeddings": False,
        "vocab_size": len(ids),
        "eos_token_id": [ids["</s>"]],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "LlavaNextImageProcessor",
        "processor_class": "LlavaNextProcessor",
        "do_convert_rgb": True,
        "size": {"shortest_edge": 56},
        "crop_size": {"height": 56, "width": 56},
        "resample": 3,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "do_pad": True,
        "image_grid_pinpoints": RESOLUTIONS,
    }
    write_model(folder, config, processor)
    settings = {
        "processor_class": "LlavaNextProcessor",
        "image_token": "<image>",
        "patch_size": 14,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }
    (folder / "processor_config.json").write_text(json.dumps(settings))
    return folder
