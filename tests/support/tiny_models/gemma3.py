"""Tiny random gemma3. Its template is the published one, written down from memory and unverified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.tiny_models.base import write_model, write_tokenizer
from tests.support.tiny_models.weights import change_weights

TEMPLATE = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = '' -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else '') }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\\n' }}
{%- endif -%}
"""


def build(folder: Path) -> Path:
    """Every image is one square of 4 tokens, whatever its size; a prompt is longer than the sliding window of 24."""
    marks = ["<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>"]
    ids = write_tokenizer(
        folder,
        ["<pad>", "<eos>", "<bos>", "<unk>", *marks],
        TEMPLATE,
        bos="<bos>",
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens={
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
    )
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "query_pre_attn_scalar": 16,
        "vocab_size": len(ids),
        "sliding_window": 24,
        "sliding_window_pattern": 2,
        "mm_tokens_per_image": 4,
        "rope_scaling": None,
        "max_position_embeddings": 32768,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "patch_size": 14,
        "image_size": 56,
        "vision_use_head": False,
    }
    config = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "hidden_size": 64,
        "mm_tokens_per_image": 4,
        "boi_token_index": ids["<start_of_image>"],
        "eoi_token_index": ids["<end_of_image>"],
        "image_token_index": ids["<image_soft_token>"],
        "pad_token_id": ids["<pad>"],
        "eos_token_id": [ids["<eos>"], ids["<end_of_turn>"]],
        "vocab_size": len(ids),
        "text_config": text,
        "vision_config": vision,
    }
    (folder / "processor_config.json").write_text(
        json.dumps({"processor_class": "Gemma3Processor", "image_seq_length": 4})
    )
    processor = {
        "image_processor_type": "Gemma3ImageProcessor",
        "processor_class": "Gemma3Processor",
        "size": {"height": 56, "width": 56},
        "resample": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "do_pan_and_scan": None,
    }
    return change_weights(write_model(folder, config, processor), _tie)


def _tie(weights: dict[str, Any]) -> None:
    """Make the output layer the same as the embeddings, as published: mlx-vlm takes these for both, whatever is stored."""
    weights["language_model.lm_head.weight"] = weights["language_model.model.embed_tokens.weight"]
