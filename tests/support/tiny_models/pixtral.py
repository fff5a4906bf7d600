"""Tiny random pixtral. Its template is the published one, shortened and written from memory; unverified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """\
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}\
{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}\
{{- bos_token }}{%- for message in loop_messages %}{%- if message['role'] == 'user' %}{{- '[INST]' }}\
{%- if loop.last and system_message is defined %}{{- system_message + '\\n\\n' }}{%- endif %}\
{%- if message['content'] is not string %}{%- for chunk in message['content'] %}{%- if chunk['type'] == 'text' %}\
{{- chunk['text'] }}{%- elif chunk['type'] == 'image' %}{{- '[IMG]' }}{%- endif %}{%- endfor %}\
{%- else %}{{- message['content'] }}{%- endif %}{{- '[/INST]' }}\
{%- elif message['role'] == 'assistant' %}{{- message['content'] + eos_token }}{%- endif %}{%- endfor %}"""


def build(folder: Path, kind: str = "pixtral", merge: int = 1) -> Path:
    """An image becomes rows of patches, with a break after each row; images of one prompt differ in size."""
    name = {"pixtral": "Llava", "mistral3": "Mistral3"}[kind]
    marks = ["[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"]
    ids = write_tokenizer(
        folder,
        ["<unk>", "<s>", "</s>", "<pad>", *marks],
        TEMPLATE,
        bos="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        processor_class="PixtralProcessor",
    )
    text: dict[str, Any] = {
        "model_type": "mistral",
        "hidden_size": 64,
        "head_dim": 16,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e6,
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "sliding_window": None,
    }
    vision = {
        "model_type": "pixtral",
        "hidden_size": 64,
        "head_dim": 16,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "image_size": 96,
        "patch_size": 16,
        "rope_theta": 10000.0,
    }
    config = {
        "architectures": [f"{name}ForConditionalGeneration"],
        "model_type": kind,
        "image_token_index": ids["[IMG]"],
        "eos_token_id": [ids["</s>"]],
        "vocab_size": len(ids),
        "vision_feature_layer": -1,
        "projector_hidden_act": "gelu",
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
    }
    config |= {"spatial_merge_size": merge, "multimodal_projector_bias": False} if kind == "mistral3" else {}
    config |= {"vision_feature_select_strategy": "full", "image_seq_length": 1} if kind == "pixtral" else {}
    settings = {"processor_class": "PixtralProcessor", "patch_size": 16, "spatial_merge_size": merge}
    (folder / "processor_config.json").write_text(json.dumps(settings))
    processor = {
        "image_processor_type": "PixtralImageProcessor",
        "processor_class": "PixtralProcessor",
        "patch_size": {"height": 16, "width": 16},
        "size": {"longest_edge": 96},
        "resample": 3,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return write_model(folder, config, processor)
