"""Tiny random llama4: chunked attention, layers without positions, experts, tiles. Its template is written from memory."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """\
{{- bos_token }}{%- for m in messages %}{{- '<|header_start|>' + m.role + '<|header_end|>\\n\\n' }}\
{%- if m.content is string %}{{- m.content }}{%- else %}{%- for c in m.content %}\
{%- if c.type == 'image' %}{{- '<|image|>' }}{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}\
{{- '<|eot|>' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|header_start|>assistant<|header_end|>\\n\\n' }}{%- endif %}"""


def build(folder: Path) -> Path:
    tiles = ["<|image_start|>", "<|image_end|>", "<|patch|>", "<|tile_x_separator|>", "<|tile_y_separator|>"]
    ids = write_tokenizer(
        folder,
        [
            "<|begin_of_text|>",
            "<|eot|>",
            "<|header_start|>",
            "<|header_end|>",
            "<|finetune_right_pad|>",
            "<|image|>",
            *tiles,
        ],
        TEMPLATE,
        bos="<|begin_of_text|>",
        eos_token="<|eot|>",
        pad_token="<|finetune_right_pad|>",
    )
    text = {
        "model_type": "llama4_text",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "intermediate_size": 64,
        "intermediate_size_mlp": 128,
        "num_hidden_layers": 4,  # the fourth has no positions
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "max_position_embeddings": 32768,
        "num_experts_per_tok": 1,
        "num_local_experts": 4,
        "interleave_moe_layer_step": 2,
        "moe_layers": [1, 3],
        "no_rope_layers": [1, 1, 1, 0],
        "attention_chunk_size": 16,  # shorter than prompts
        "attn_temperature_tuning": True,
        "floor_scale": 16,
        "attn_scale": 0.1,
        "use_qk_norm": True,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": ids["<|begin_of_text|>"],
        "eos_token_id": [ids["<|eot|>"]],
        "pad_token_id": ids["<|finetune_right_pad|>"],
    }
    vision = {
        "model_type": "llama4_vision_model",
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_channels": 3,
        "image_size": 56,
        "patch_size": 14,
        "pixel_shuffle_ratio": 0.5,
        "projector_input_dim": 64,
        "projector_output_dim": 64,
        "vision_output_dim": 64,
        "projector_dropout": 0.0,
        "initializer_range": 0.02,
        "norm_eps": 1e-5,
        "rope_theta": 10000,
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default",
        "hidden_act": "gelu",
    }
    config = {
        "architectures": ["Llama4ForConditionalGeneration"],
        "model_type": "llama4",
        "boi_token_index": ids["<|image_start|>"],
        "eoi_token_index": ids["<|image_end|>"],
        "image_token_index": ids["<|patch|>"],
        "eos_token_id": [ids["<|eot|>"]],
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "Llama4ImageProcessorFast",
        "processor_class": "Llama4Processor",
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "max_patches": 16,
        "resample": 2,
        "rescale_factor": 1 / 255,
        "resize_to_max_canvas": False,
        "size": {"height": 56, "width": 56},
    }
    write_model(folder, config, processor)
    settings = {"processor_class": "Llama4Processor", "patch_size": 14, "pixel_shuffle_ratio": 0.5}
    (folder / "processor_config.json").write_text(json.dumps(settings))
    return folder
