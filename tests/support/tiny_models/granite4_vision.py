"""Tiny random granite4_vision (Granite Vision 4): features of several layers, added to several layers of the language model.

Its template is Granite 3's, written from memory and unverified.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer
from tests.support.tiny_models.granite_vision import TEMPLATE


def build(folder: Path) -> Path:
    """An image becomes a small copy of the whole and tiles, of 4 patches each, which windows of 16 are read into."""
    ids = write_tokenizer(
        folder,
        ["<|end_of_text|>", "<|system|>", "<|user|>", "<|assistant|>", "<image>"],
        TEMPLATE.replace("<image>\\n", "<image>"),
        eos_token="<|end_of_text|>",
        pad_token="<|end_of_text|>",
        extra_special_tokens={"image_token": "<image>"},
    )
    text = {
        "model_type": "granite4_vision_text",
        "hidden_size": 64,
        "num_hidden_layers": 6,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e7,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7},
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "embedding_multiplier": 2.0,
        "attention_multiplier": 0.25,
        "residual_multiplier": 0.5,
        "logits_scaling": 1.0,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "image_size": 64,
        "patch_size": 16,
    }
    pinpoints = [[64 * rows, 64 * columns] for rows in range(1, 5) for columns in range(1, 5) if rows * columns < 7]
    config = {
        "architectures": ["Granite4VisionForConditionalGeneration"],
        "model_type": "granite4_vision",
        "image_token_index": ids["<image>"],
        "downsample_rate": "2/4",
        "deepstack_layer_map": [[-3, 0], [-1, 1]],
        "spatial_vision_layer": -1,
        "spatial_target_layers": [2, 3, 4, 5],
        "use_spatial_sampling": True,
        "use_image_newline_parameter": True,
        "vision_feature_select_strategy": "full",
        "image_grid_pinpoints": pinpoints,
        "tie_word_embeddings": False,
        "eos_token_id": [ids["<|end_of_text|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    settings = {
        "processor_class": "Granite4VisionProcessor",
        "patch_size": 16,
        "vision_feature_select_strategy": "full",
        "downsample_rate": "2/4",
    }
    processor = {
        "image_processor_type": "LlavaNextImageProcessor",
        "processor_class": "Granite4VisionProcessor",
        "crop_size": {"height": 64, "width": 64},
        "size": {"height": 64, "width": 64},
        "image_grid_pinpoints": pinpoints,
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    write_model(folder, config, processor)
    (folder / "processor_config.json").write_text(json.dumps(settings))
    return folder
