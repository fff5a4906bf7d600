"""Tiny random idefics3. Its template is the published one, written down from memory and unverified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """\
<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}\
{% if message['content'] is not string and message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}\
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for line in message['content'] %}\
{% if line['type'] == 'text' %}{{line['text']}}{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}\
{% endif %}<end_of_utterance>
{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"""


def build(folder: Path, kind: str = "idefics3", vision_kind: str = "idefics3_vision") -> Path:
    """An image becomes rows of tiles and a small copy of the whole."""
    name = {"idefics3": "Idefics3", "smolvlm": "SmolVLM"}[kind]
    tiles = [f"<row_{row}_col_{col}>" for row in range(1, 7) for col in range(1, 7)]
    marks = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>", *tiles]
    ids = write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks],
        TEMPLATE,
        eos_token="<end_of_utterance>",
        pad_token="<|im_end|>",
        bos_token="<|im_start|>",
        extra_special_tokens={
            "fake_image_token": "<fake_token_around_image>",
            "image_token": "<image>",
            "end_of_utterance_token": "<end_of_utterance>",
            "global_image_token": "<global-img>",
        },
    )
    text: dict[str, Any] = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "max_position_embeddings": 32768,
        "pad_token_id": ids["<|im_end|>"],
    }
    vision = {
        "model_type": vision_kind,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "patch_size": 16,
        "image_size": 64,
    }
    config = {
        "architectures": [f"{name}ForConditionalGeneration"],
        "model_type": kind,
        "scale_factor": 2,
        "image_token_id": ids["<image>"],
        "pad_token_id": ids["<|im_end|>"],
        "eos_token_id": [ids["<end_of_utterance>"]],
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
    }
    (folder / "processor_config.json").write_text(
        json.dumps({"processor_class": f"{name}Processor", "image_seq_len": 4})
    )
    processor = {
        "image_processor_type": f"{name}ImageProcessor",
        "processor_class": f"{name}Processor",
        "do_image_splitting": True,
        "size": {"longest_edge": 256},
        "max_image_size": {"longest_edge": 64},
        "resample": 1,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
