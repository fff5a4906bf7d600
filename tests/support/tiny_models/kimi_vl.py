"""Tiny random kimi_vl. Its template is written from memory and unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import write_model, write_tokenizer

IMAGE = "<|media_start|>image<|media_content|><|media_pad|><|media_end|>"
TEMPLATE = (
    """{%- for m in messages %}{{- '<|im_' + m.role + '|>' + m.role + '<|im_middle|>' }}{%- if m.content is string %}\
{{- m.content }}{%- else %}{%- for c in m.content %}{%- if c.type == 'image' %}{{- 'IMAGE' }}{%- elif c.type == 'text' %}\
{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}{{- '<|im_end|>' }}{%- endfor %}\
{%- if add_generation_prompt %}{{- '<|im_assistant|>assistant<|im_middle|>' }}{%- endif %}"""
).replace("IMAGE", IMAGE)

ROLES = ["im_user", "im_system", "im_assistant", "im_middle", "im_end"]
MEDIA = ["media_start", "media_content", "media_end", "media_pad"]


def build(folder: Path) -> Path:
    """Latent attention; the second layer has routed experts and a shared one."""
    ids = write_tokenizer(folder, ["[PAD]", "[EOS]", "[UNK]", *(f"<|{name}|>" for name in (*ROLES, *MEDIA))], TEMPLATE)
    text = {
        "model_type": "deepseek_v3",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "intermediate_size": 128,
        "moe_intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "n_shared_experts": 1,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "routed_scaling_factor": 2.4,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "kv_lora_rank": 32,
        "q_lora_rank": None,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "max_position_embeddings": 32768,
        "rope_theta": 800000.0,
    }
    vision = {
        "model_type": "moonvit",
        "depth": 2,
        "num_hidden_layers": 2,
        "embed_dim": 64,
        "hidden_size": 64,
        "num_heads": 4,
        "num_attention_heads": 4,
        "patch_size": 14,
        "intermediate_size": 128,
        "init_pos_emb_height": 16,
        "init_pos_emb_width": 16,
        "merge_kernel_size": [2, 2],
    }
    config = {
        "architectures": ["KimiVLForConditionalGeneration"],
        "model_type": "kimi_vl",
        "vocab_size": len(ids),
        "media_placeholder_token_id": ids["<|media_pad|>"],
        "eos_token_id": [ids["<|im_end|>"]],
        "text_config": text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "KimiVLImageProcessor",
        "processor_class": "KimiVLProcessor",
        "in_token_limit": 256,
        "patch_size": 14,
        "num_pooled_tokens": 1024,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "pad_input": True,
        "merge_kernel_size": [2, 2],
    }
    return write_model(folder, config, processor)
