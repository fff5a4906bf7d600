"""Tiny random llava_onevision (LLaVA-OneVision with Qwen2): a small copy of the whole image, and tiles if it is the only one.

Its template is written from memory of the published one; its images are 42 pixels wide instead of 384.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

_TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + ' '}}"
    "{# Render all images first #}{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}"
    "{{ '<image>' }}{% endfor %}{# Render all text next #}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{{ '\n' + content['text'] }}{% endfor %}"
    "{{'<|im_end|>'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def build(folder: Path) -> Path:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"]
    ids = write_tokenizer(folder, special, _TEMPLATE)
    text = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "image_size": 42,
        "patch_size": 14,
        "vision_use_head": False,
    }
    pinpoints = [[42 * rows, 42 * columns] for rows in range(1, 7) for columns in range(1, 7)]
    config = {
        "architectures": ["LlavaOnevisionForConditionalGeneration"],
        "model_type": "llava_onevision",
        "image_token_index": ids["<image>"],
        "video_token_index": ids["<video>"],
        "image_grid_pinpoints": pinpoints,
        "vision_aspect_ratio": "anyres_max_9",
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
        "use_image_newline_parameter": True,
        "tie_word_embeddings": False,
        "eos_token_id": [ids["<|im_end|>"]],
        "vocab_size": len(ids),
        "text_config": text,
        "vision_config": vision,
    }
    images = {
        "image_processor_type": "LlavaOnevisionImageProcessor",
        "processor_class": "LlavaOnevisionProcessor",
        "image_grid_pinpoints": pinpoints,
        "size": {"height": 42, "width": 42},
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    write_model(folder, config, images)
    processor = {
        "processor_class": "LlavaOnevisionProcessor",
        "num_image_tokens": 9,
        "vision_feature_select_strategy": "full",
        "image_token": "<image>",
        "video_token": "<video>",
    }
    (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder
