"""Tiny random llava, laid out as LLaVA 1.5: CLIP's encoder at one size, an image token for each patch.

Its template is written from memory of the published one (``USER:`` and ``ASSISTANT:``). The published tokenizer is
sentencepiece's, this one byte-level BPE; its images are 56 pixels wide instead of 336.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] != 'system' %}{{ message['role'].upper() + ': '}}{% endif %}"
    "{# Render all images first #}{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}"
    "{{ '<image>\n' }}{% endfor %}{# Render all text next #}{% if message['role'] != 'assistant' %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{{ content['text'] + ' '}}{% endfor %}"
    "{% else %}{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}{% generation %}"
    "{{ content['text'] + ' '}}{% endgeneration %}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)


def build(folder: Path) -> Path:
    ids = write_tokenizer(folder, ["<unk>", "<s>", "</s>", "<pad>", "<image>"], _TEMPLATE, bos="<s>", eos_token="</s>")
    text = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-5,
        "vocab_size": len(ids),
        "max_position_embeddings": 4096,
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
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "image_token_index": ids["<image>"],
        "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default",
        "vocab_size": len(ids),
        "eos_token_id": [ids["</s>"]],
        "text_config": text,
        "vision_config": vision,
    }
    images = {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "LlavaProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": 56},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": 56, "width": 56},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    write_model(folder, config, images)
    processor = {
        "processor_class": "LlavaProcessor",
        "image_token": "<image>",
        "num_additional_image_tokens": 1,
        "patch_size": 14,
        "vision_feature_select_strategy": "default",
    }
    (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder
