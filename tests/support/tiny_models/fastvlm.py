"""Tiny random fastvlm (FastVLM, ``llava_qwen2``). Its template is Qwen2's, written from memory and unverified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.support.tiny_models.base import write_model, write_tokenizer
from tests.support.tiny_models.weights import change_weights

TEMPLATE = """\
{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}\
{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


@contextmanager
def shrunk() -> Iterator[None]:
    """Make the image encoder, whose size no configuration names, a tiny one within the block."""
    from mlx_vlm.models.fastvlm.config import VisionConfig

    with mock.patch.multiple(VisionConfig, layers=[1] * 5, embed_dims=[32, 32, 64, 64, 64]):
        yield


def build(folder: Path) -> Path:
    """An image takes one token of the prompt, and 4 places among its embeddings."""
    ids = write_tokenizer(folder, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], TEMPLATE)
    config = {
        "architectures": ["LlavaQwen2ForCausalLM"],
        "model_type": "llava_qwen2",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "max_position_embeddings": 32768,
        "vocab_size": len(ids),
        "tie_word_embeddings": False,
        "mm_hidden_size": 128,
        "mm_projector_type": "mlp2x_gelu",
        "mm_vision_tower": "mobileclip_l_128",
        "image_token_index": -200,
        "tokenizer_model_max_length": 8192,
        "eos_token_id": ids["<|im_end|>"],
    }
    processor = {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "LlavaProcessor",
        "crop_size": {"height": 128, "width": 128},
        "size": {"shortest_edge": 128},
        "resample": 3,
        "image_mean": [0.0] * 3,
        "image_std": [1.0] * 3,
    }
    return change_weights(write_model(folder, config, processor), _positive)


def _positive(weights: dict[str, Any]) -> None:
    """Make the variances of batch normalisation positive."""
    for name in weights:
        if name.endswith("running_var"):
            weights[name] = abs(weights[name]) + 0.5
