"""Tiny random paddleocr_vl. Its template is the published one, shortened and written from memory; unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

TEMPLATE = """\
{{- '<|begin_of_sentence|>' }}{%- for m in messages %}{%- if m.role == 'user' %}{{- 'User: ' }}\
{%- elif m.role == 'assistant' %}{{- 'Assistant:\\n' }}{%- endif %}{%- if m.content is string %}{{- m.content }}{%- else %}\
{%- for c in m.content %}{%- if c.type == 'image' %}{{- '<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>' }}\
{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}\
{{- '</s>' if m.role == 'assistant' else '\\n' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- 'Assistant:\\n' }}{%- endif %}"""


def build(folder: Path) -> Path:
    images = ["<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>", "<|video_pad|>"]
    ids = write_tokenizer(
        folder,
        ["<unk>", "<s>", "</s>", "<|begin_of_sentence|>", *images],
        TEMPLATE,
        eos_token="</s>",
        pad_token="<unk>",
        extra_special_tokens={"image_token": "<|IMAGE_PLACEHOLDER|>"},
    )
    text = {
        "vocab_size": len(ids),
        "hidden_size": 1024,  # mlx-vlm's projector has no other width
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": {"mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"},
        "max_position_embeddings": 32768,
        "hidden_act": "silu",
        "use_bias": False,
        "tie_word_embeddings": False,
        "eos_token_id": ids["</s>"],
        "bos_token_id": ids["<s>"],
        "pad_token_id": ids["<unk>"],
    }
    vision = {
        "model_type": "paddleocr_vl",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_channels": 3,
        "image_size": 56,
        "patch_size": 14,
        "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-6,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    config = {
        "architectures": ["PaddleOCRVLForConditionalGeneration"],
        "model_type": "paddleocr_vl",
        "image_token_id": ids["<|IMAGE_PLACEHOLDER|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|IMAGE_START|>"],
        "vision_end_token_id": ids["<|IMAGE_END|>"],
        **text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "PaddleOCRVLImageProcessor",
        "processor_class": "PaddleOCRVLProcessor",
        "min_pixels": 3136,
        "max_pixels": 50176,
        "patch_size": 14,
        "temporal_patch_size": 1,
        "merge_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "resample": 3,
        "rescale_factor": 1 / 255,
    }
    return write_model(folder, config, processor)
