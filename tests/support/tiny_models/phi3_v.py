"""Tiny random phi3_v: CLIP's encoder on a thumbnail and on tiles of 336 pixels, numbered image placeholders.

Its template is written from memory of the published one. The published tokenizer is sentencepiece's, this one byte-level BPE. In
mlx-vlm the encoder has a fixed size of 300 M parameters; :func:`shrunk` makes it small.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tiny_models.base import write_model, write_tokenizer

_WIDTH = 64
_TEMPLATE = (
    "{% for message in messages %}{{'<|' + message['role'] + '|>' + '\n' + message['content'] + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt and messages[-1]['role'] != 'assistant' %}{{- '<|assistant|>\n' -}}{% endif %}"
)


@contextmanager
def shrunk() -> Iterator[None]:
    """Build mlx-vlm's image encoder 64 wide and two layers deep within the block; all else of its class stays."""
    import mlx.core as mx
    from mlx import nn
    from mlx_vlm.models.phi3_v import vision

    clip = {
        **vars(vision.VisionModel.CLIP_VIT_LARGE_PATCH14_336_CONFIG),
        "hidden_size": _WIDTH,
        "num_attention_heads": 4,
    }

    def build_small(self: Any, config: Any) -> None:
        nn.Module.__init__(self)
        self.model_type = config.model_type
        small = SimpleNamespace(**{**clip, "num_hidden_layers": 2, "intermediate_size": 128})
        self.img_processor = vision.ClipVModel(small)
        self.image_dim_out = _WIDTH
        self.glb_GN = mx.zeros([1, 1, 4 * _WIDTH])
        self.sub_GN = mx.zeros([1, 1, 1, 4 * _WIDTH])
        hidden = config.hidden_size
        self.img_projection = [nn.Linear(4 * _WIDTH, hidden), nn.GELU(), nn.Linear(hidden, hidden)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vision.VisionModel, "__init__", build_small)
        yield


def build(folder: Path) -> Path:
    marks = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    special = ["<unk>", "<s>", "</s>", "<|endoftext|>", *marks]
    ids = write_tokenizer(folder, special, _TEMPLATE, bos="<s>", eos_token="<|endoftext|>")
    config = {
        "architectures": ["Phi3VForCausalLM"],
        "model_type": "phi3_v",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "rms_norm_eps": 1e-5,
        "vocab_size": len(ids),
        "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "su", "short_factor": [1.1] * 8, "long_factor": [2.0] * 8},
        "eos_token_id": [ids["<|endoftext|>"], ids["<|end|>"]],
        "img_processor": {"name": "clip_vision_model", "num_img_tokens": 144},
    }
    processor = {"processor_class": "Phi3VProcessor", "num_crops": 2, "num_img_tokens": 144}
    with shrunk():
        return write_model(folder, config, processor)
