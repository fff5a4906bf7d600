"""Tiny random deepseek_vl_v2, laid out as DeepSeek-VL2 Small: latent attention, routed experts, tiles with a thumbnail.

Its template is mlx-vlm's; its special tokens and its configuration are written from memory of the published ones. Its tiles
are 56 pixels wide instead of 384.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

_TILE = 56


def build(folder: Path) -> Path:
    special = [
        "<｜begin▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        "<image>",
        "<｜▁pad▁｜>",
        "<|User|>",
        "<|Assistant|>",
    ]
    grounding = ["<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<|grounding|>"]
    template = (
        "{% for message in messages %}{% if message['role'] == 'user' %}<|User|>:{% elif message['role'] == 'assistant' %}"
        "<|Assistant|>{% endif %} {{message['content']}}\n\n{% endfor %}"
        "{% if add_generation_prompt %}<|Assistant|>:{% endif %}"
    )
    ids = write_tokenizer(folder, [*special, *grounding], template, bos=special[0], eos_token=special[1])
    language = {
        "model_type": "deepseek_v2",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "intermediate_size": 128,
        "moe_intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "n_shared_experts": 2,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
        "kv_lora_rank": 32,
        "q_lora_rank": None,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "topk_method": "greedy",
        "n_group": 1,
        "topk_group": 1,
        "max_position_embeddings": 4096,
    }
    config = {
        "architectures": ["DeepseekVLV2ForCausalLM"],
        "model_type": "deepseek_vl_v2",
        "tile_tag": "2D",
        "global_view_pos": "head",
        "image_token_index": ids["<image>"],
        "pad_id": ids["<｜▁pad▁｜>"],
        "vocab_size": len(ids),
        "eos_token_id": [ids[special[1]]],
        "language_config": language,
        "vision_config": {
            "model_type": "vision",
            "layers": 2,
            "width": 64,
            "intermediate_size": 128,
            "num_attention_heads": 4,
            "image_size": _TILE,
            "patch_size": 14,
        },
        "projector_config": {
            "model_type": "mlp_projector",
            "projector_type": "downsample_mlp_gelu",
            "input_dim": 64,
            "n_embed": 64,
            "depth": 2,
            "mlp_ratio": 1,
            "downsample_ratio": 2,
        },
    }
    tiles = [(width, height) for width in range(1, 10) for height in range(1, 10) if width * height <= 9]
    processor = {
        "processor_class": "DeepseekVLV2Processor",
        "candidate_resolutions": [(width * _TILE, height * _TILE) for width, height in tiles],
        "patch_size": 14,
        "downsample_ratio": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "normalize": True,
        "image_token": "<image>",
        "pad_token": "<｜▁pad▁｜>",
        "add_special_token": False,
        "sft_format": "deepseek",
        "mask_prompt": False,
        "ignore_id": -100,
    }
    write_model(folder, config, processor, ["projector"])
    (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder
