"""Tiny random gemma4_unified, which has no vision tower. Its template is that of the tiny gemma4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.tiny_models.base import write_model
from tests.support.tiny_models.gemma4 import ROPE, write_gemma_tokenizer


def build(folder: Path) -> Path:
    ids = write_gemma_tokenizer(folder)
    text = {
        "model_type": "gemma4_unified_text",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 16,
        "num_kv_shared_layers": 0,
        "attention_k_eq_v": True,
        "hidden_size_per_layer_input": 0,
        "vocab_size": len(ids),
        "vocab_size_per_layer_input": len(ids),
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 1024,
        "use_bidirectional_attention": "vision",
        "final_logit_softcapping": 30.0,
        "rope_parameters": ROPE,
    }
    vision = {
        "model_type": "gemma4_unified_vision",
        "patch_size": 16,
        "pooling_kernel_size": 3,
        "model_patch_size": 48,
        "mm_embed_dim": 64,
        "mm_posemb_size": 64,
        "num_soft_tokens": 70,
        "output_proj_dims": 64,
    }
    audio = {
        "model_type": "gemma4_unified_audio",
        "audio_embed_dim": 640,
        "hidden_size": 640,
        "output_proj_dims": 640,
    }
    config = {
        "architectures": ["Gemma4UnifiedForConditionalGeneration"],
        "model_type": "gemma4_unified",
        "vocab_size": len(ids),
        "hidden_size": 64,
        "eos_token_id": [ids["<|im_end|>"]],
        "pad_token_id": ids["<|endoftext|>"],
        "image_token_id": ids["<|image|>"],
        "audio_token_id": ids["<|audio|>"],
        "video_token_id": ids["<|video|>"],
        "boi_token_id": ids["<boi>"],
        "eoi_token_id": ids["<eoi>"],
        "boa_token_id": ids["<boa>"],
        "eoa_token_index": ids["<eoa>"],
        "vision_soft_tokens_per_image": 70,
        "text_config": text,
        "vision_config": vision,
        "audio_config": audio,
    }
    images = {"patch_size": 16, "max_soft_tokens": 70, "pooling_kernel_size": 3, "model_patch_size": 48}
    processor = {
        "image_processor_type": "Gemma4UnifiedImageProcessor",
        "processor_class": "Gemma4UnifiedProcessor",
        "image_processor": images,
    }
    write_model(folder, config, processor, ["audio"])
    _publish(folder / "model.safetensors")
    return folder


def _publish(file: Path) -> None:
    """Give the weights the names of the published checkpoints."""
    import mlx.core as mx

    stored: Any = mx.load(str(file))
    weights = {f"model.{name.replace('language_model.model.', 'language_model.')}": stored[name] for name in stored}
    mx.eval(list(weights.values()))  # they are read from the file that is written over
    mx.save_safetensors(str(file), weights, metadata={"format": "pt"})
