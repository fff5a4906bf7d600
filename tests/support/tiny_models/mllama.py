"""Tiny random mllama (Llama 3.2 Vision). Its template is written from memory and unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """{{- bos_token }}{%- for m in messages %}{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}\
{%- if m.content is string %}{{- m.content }}{%- else %}{%- for c in m.content %}{%- if c.type == 'image' %}{{- '<|image|>' }}\
{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}{{- '<|eot_id|>' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""


def build(folder: Path) -> Path:
    """Two of four layers attend to the images; an image is one token, whatever its size."""
    special = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|finetune_right_pad_id|>"]
    special += ["<|eot_id|>", "<|image|>"]
    ids = write_tokenizer(folder, special, TEMPLATE, bos="<|begin_of_text|>", eos_token="<|eot_id|>")
    text = {
        "model_type": "mllama_text_model",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "cross_attention_layers": [1, 3],
        "max_position_embeddings": 32768,
        "pad_token_id": ids["<|finetune_right_pad_id|>"],
    }
    vision = {
        "model_type": "mllama_vision_model",
        "image_size": 56,
        "patch_size": 14,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "attention_heads": 4,
        "max_num_tiles": 4,
        "num_global_layers": 2,
        "intermediate_layers_indices": [0, 1],
        "vision_output_dim": 192,
    }
    config = {
        "architectures": ["MllamaForConditionalGeneration"],
        "model_type": "mllama",
        "image_token_index": ids["<|image|>"],
        "vocab_size": len(ids),
        "eos_token_id": [ids["<|eot_id|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "MllamaImageProcessor",
        "processor_class": "MllamaProcessor",
        "do_convert_rgb": True,
        "do_pad": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "max_image_tiles": 4,
        "resample": 2,
        "size": {"height": 56, "width": 56},
    }
    return write_model(folder, config, processor)
