"""Tiny random granite_vision (Granite Vision 3.x; ``llava_next`` with Granite's language model).

Its template is written from memory and unverified.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """\
{%- for m in messages %}{{- '<|' + m.role + '|>\\n' }}{%- if m.content is string %}{{- m.content }}{%- else %}\
{%- for c in m.content %}{%- if c.type == 'image' %}{{- '<image>\\n' }}{%- elif c.type == 'text' %}{{- c.text }}\
{%- endif %}{%- endfor %}{%- endif %}{{- '\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|assistant|>\\n' }}{%- endif %}"""


def build(folder: Path) -> Path:
    """An image becomes a small copy of the whole, and tiles of 4 patches each."""
    ids = write_tokenizer(
        folder,
        ["<|end_of_text|>", "<|system|>", "<|user|>", "<|assistant|>", "<image>"],
        TEMPLATE,
        eos_token="<|end_of_text|>",
        pad_token="<|end_of_text|>",
        extra_special_tokens={"image_token": "<image>"},
    )
    text = {
        "model_type": "granite",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 300000.0,
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": True,
        "embedding_multiplier": 1.0,
        "attention_multiplier": 0.25,
        "residual_multiplier": 1.0,
        "logits_scaling": 1.0,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "image_size": 28,
        "patch_size": 14,
    }
    pinpoints = [[28, 28 * n] for n in range(1, 5)] + [[28 * n, 28] for n in range(2, 5)] + [[56, 56]]
    config = {
        "architectures": ["LlavaNextForConditionalGeneration"],
        "model_type": "granite_vision",
        "image_token_index": ids["<image>"],
        "vision_feature_select_strategy": "full",
        "vision_feature_layer": [-3, -1],
        "image_grid_pinpoints": pinpoints,
        "use_image_newline_parameter": True,
        "eos_token_id": [ids["<|end_of_text|>"]],
        "tie_word_embeddings": True,
        "text_config": text,
        "vision_config": vision,
    }
    settings = {"processor_class": "LlavaNextProcessor", "patch_size": 14, "vision_feature_select_strategy": "full"}
    (folder / "processor_config.json").write_text(json.dumps(settings))
    processor = {
        "image_processor_type": "LlavaNextImageProcessor",
        "processor_class": "LlavaNextProcessor",
        "crop_size": {"height": 28, "width": 28},
        "size": {"height": 28, "width": 28},
        "image_grid_pinpoints": pinpoints,
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
