"""A tiny Qwen3-Omni, built in a second: random weights that see images and videos and hear sounds, with the real layout.

As with :mod:`tests.support.tiny_qwen3`, its answers are noise. It has no part that speaks, and is in fp32: MLX computes the
products of experts in nothing else on a CPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support import tiny_qwen3

_AUDIO = {"audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>", "audio_token": "<|audio_pad|>"}
_NAMED = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    **_AUDIO,
}
_VIDEO = "{%- elif item.type == 'video' %}"
_TEMPLATE = tiny_qwen3._TEMPLATE.replace(
    _VIDEO, "{%- elif item.type == 'audio' %}{{- '<|audio_start|><|audio_pad|><|audio_end|>' }}\n" + _VIDEO
)
_MEL_BINS = 128
_WIDTH = 64


def build_tiny_omni(folder: Path, texts: Iterable[str], *, seed: int = 0) -> Path:
    """Build a random Qwen3-Omni in ``folder``, its tokenizer trained on ``texts``, in fp32; about half a million parameters.

    The same texts and seed give the same weights. The folder appears whole or not at all. Raises ModelError where it is
    there already.
    """
    with tiny_qwen3._whole(folder) as scratch:
        built = scratch / "fp32"
        built.mkdir()
        special = [*tiny_qwen3._SPECIAL, *_AUDIO.values()]
        config = _config(tiny_qwen3._tokenizer(built, texts, special, _TEMPLATE, _NAMED))
        tiny_qwen3._processor(built, "Qwen3OmniMoeProcessor", _EXTRACTOR)
        tiny_qwen3._json(built / "config.json", config)
        _weights(built, config, seed)
        os.rename(built, folder)
    return folder


_EXTRACTOR = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "feature_size": _MEL_BINS,
    "sampling_rate": 16000,
    "hop_length": 160,
    "chunk_length": 30,
    "n_fft": 400,
    "padding_value": 0.0,
    "return_attention_mask": True,
}


def _config(vocabulary: dict[str, int]) -> dict[str, Any]:
    text = {
        **tiny_qwen3._text_config(len(vocabulary)),
        "model_type": "qwen3_omni_moe_text",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    vision = {**tiny_qwen3._config(vocabulary)["vision_config"], "model_type": "qwen3_omni_moe_vision_encoder"}
    audio = {
        "model_type": "qwen3_omni_moe_audio_encoder",
        "d_model": _WIDTH,
        "encoder_layers": 2,
        "num_hidden_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "num_mel_bins": _MEL_BINS,
        "output_dim": _WIDTH,
        "downsample_hidden_size": 8,
        "n_window": 50,
        "n_window_infer": 800,
    }
    thinker = {
        "model_type": "qwen3_omni_moe_thinker",
        "text_config": text,
        "vision_config": vision,
        "audio_config": audio,
        "image_token_id": vocabulary["<|image_pad|>"],
        "video_token_id": vocabulary["<|video_pad|>"],
        "audio_token_id": vocabulary["<|audio_pad|>"],
        "audio_start_token_id": vocabulary["<|audio_start|>"],
        "audio_end_token_id": vocabulary["<|audio_end|>"],
        "vision_start_token_id": vocabulary["<|vision_start|>"],
        "vision_end_token_id": vocabulary["<|vision_end|>"],
    }
    return {
        "architectures": ["Qwen3OmniMoeForConditionalGeneration"],
        "model_type": "qwen3_omni_moe",
        "dtype": "float32",
        "enable_audio_output": False,
        "eos_token_id": vocabulary["<|im_end|>"],
        "im_start_token_id": vocabulary["<|im_start|>"],
        "im_end_token_id": vocabulary["<|im_end|>"],
        "thinker_config": thinker,
        # Of the part that speaks, which is not there.
        "talker_config": {"text_config": text, "code_predictor_config": {}},
        "code2wav_config": {},
    }


def _weights(folder: Path, config: dict[str, Any], seed: int) -> None:
    import copy

    import mlx.core as mx
    import numpy as np
    from mlx.utils import tree_flatten
    from mlx_vlm.utils import get_model_and_args

    module, _ = get_model_and_args(config)
    model = module.Model(module.ModelConfig.from_dict(copy.deepcopy(config)))
    values_by_name = tiny_qwen3._random(tree_flatten(model.parameters()), seed)
    weights = {name: mx.array(values.astype(np.float32)) for name, values in values_by_name}
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
