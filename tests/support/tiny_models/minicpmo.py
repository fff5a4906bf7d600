"""Tiny random minicpmo (MiniCPM-o): a language model of Qwen3's, without its speech. Its template is Qwen's; unverified."""

from __future__ import annotations

from pathlib import Path

from tests.support.tiny_models.base import TURNS, write_model, write_tokenizer


def build(folder: Path) -> Path:
    marks = [f"<{slash}{name}>" for name in ("image", "slice", "unit") for slash in ("", "/")]
    sounds = ["<|audio_start|>", "<|audio|>", "<|audio_end|>", "<|spk_bos|>", "<|spk|>", "<|spk_eos|>", "<|tts_bos|>"]
    ids = write_tokenizer(
        folder,
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>", *marks, *sounds, "<|tts_eos|>", "<|listen|>"],
        TURNS.replace("IMAGE", "<image>./</image>"),
        unk_token="<unk>",
        tokenizer_class="Qwen2Tokenizer",
    )
    text = {
        "vocab_size": len(ids),
        "hidden_size": 256,  # that of all heads together, as in the real model
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 128,  # mlx-vlm's sections of positions fill it
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "hidden_act": "silu",
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_channels": 3,
        "image_size": 56,
        "patch_size": 14,
        "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-6,
    }
    config = {
        "architectures": ["MiniCPMO"],
        "model_type": "minicpmo",
        "version": "4.5",
        "query_num": 4,
        "image_size": 56,
        "patch_size": 14,
        "init_vision": True,
        "init_audio": False,
        "init_tts": False,
        "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        **text,
        "vision_config": vision,
        "slice_config": {"model_type": "minicpmv", "max_slice_nums": 9, "scale_resolution": 56, "patch_size": 14},
    }
    processor = {
        "image_processor_type": "MiniCPMVImageProcessor",
        "processor_class": "MiniCPMOProcessor",
        "feature_extractor_type": "WhisperFeatureExtractor",
        "image_feature_size": 4,
        "scale_resolution": 56,
        "patch_size": 14,
        "norm_mean": [0.5] * 3,
        "norm_std": [0.5] * 3,
    }
    return write_model(folder, config, processor)
