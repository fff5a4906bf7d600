"""Tiny random gemma3n: per-layer inputs, shared key-value layers, sliding windows, and an image encoder of MobileNet's blocks.

Its template and its special tokens are written from memory of the published ones; the published tokenizer is sentencepiece's,
this one byte-level BPE. An image takes 4 tokens instead of 256. In mlx-vlm the image encoder has a fixed size of 295 M
parameters; :func:`shrunk` builds its class with few small blocks of every kind. There is no audio processor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_models.base import write_model, write_tokenizer

_WIDTH = 64
_IMAGE = 64
_SIDE = 2
_TEMPLATE = (
    "{{ bos_token }}{%- for message in messages -%}{%- if message['role'] == 'assistant' -%}{%- set role = 'model' -%}"
    "{%- else -%}{%- set role = message['role'] -%}{%- endif -%}{{ '<start_of_turn>' + role + '\n' }}"
    "{%- if message['content'] is string -%}{{ message['content'] | trim }}{%- else -%}"
    "{%- for item in message['content'] -%}{%- if item['type'] == 'audio' -%}{{ '<audio_soft_token>' }}"
    "{%- elif item['type'] == 'image' -%}{{ '<image_soft_token>' }}"
    "{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}{%- endfor -%}{%- endif -%}"
    "{{ '<end_of_turn>\n' }}{%- endfor -%}{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}"
)


@contextmanager
def shrunk() -> Iterator[None]:
    """Build mlx-vlm's image encoder with few small blocks within the block; all else of its class stays."""
    from mlx import nn
    from mlx_vlm.models.gemma3n import vision

    def blocks() -> list[list[Any]]:
        return [
            [vision._er(3, 16, 2)],
            [vision._uir(3, 5, 16, 2, 2.0)],
            [vision._uir(5, 5, 32, 2, 2.0), vision._mmqa(2, 16, 2), vision._uir(0, 0, 32, 1, 2.0)],
            [vision._uir(5, 5, 32, 2, 2.0), vision._mmqa(2, 16, 1), vision._uir(0, 0, 32, 1, 2.0)],
        ]

    def build_small(self: Any, config: Any) -> None:
        nn.Module.__init__(self)
        self.conv_stem = vision.ConvNormAct(
            vision.Conv2dSame, in_chs=3, out_chs=16, kernel_size=3, stride=2, padding=0, eps=1e-05, bias=True
        )
        self.num_features, self.blocks = self.build()
        self.head_hidden_size = self.num_features
        self.msfa_indices, self.msfa_output_resolution = (3, 4), (_SIDE, _SIDE)
        self.msfa = vision.MobileNetV5MultiScaleFusionAdapter(
            in_chs=[64], out_chs=config.hidden_size, output_resolution=self.msfa_output_resolution
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vision, "gemma3n_mobilenet_def", blocks)
        patch.setattr(vision.VisionTower, "__init__", build_small)
        yield


def build(folder: Path) -> Path:
    turns = [
        "<start_of_turn>",
        "<end_of_turn>",
        "<start_of_image>",
        "<end_of_image>",
        "<start_of_audio>",
        "<end_of_audio>",
    ]
    special = ["<eos>", "<bos>", "<unk>", "<pad>", *turns, "<image_soft_token>", "<audio_soft_token>"]
    names = {
        "image_token": "<image_soft_token>",
        "audio_token": "<audio_soft_token>",
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "boa_token": "<start_of_audio>",
        "eoa_token": "<end_of_audio>",
    }
    ids = write_tokenizer(folder, special, _TEMPLATE, bos="<bos>", eos_token="<eos>", extra_special_tokens=names)
    image, audio = ids["<image_soft_token>"], ids["<audio_soft_token>"]
    text = {
        "model_type": "gemma3n_text",
        "hidden_size": _WIDTH,
        "num_hidden_layers": 4,
        "intermediate_size": [128] * 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "vocab_size": len(ids),
        "vocab_size_per_layer_input": image,
        "hidden_size_per_layer_input": 16,
        "laurel_rank": 16,
        "altup_num_inputs": 2,
        "altup_active_idx": 0,
        "altup_coef_clip": 120.0,
        "altup_correct_scale": True,
        "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
        "num_kv_shared_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 512,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "final_logit_softcapping": 30.0,
        "max_position_embeddings": 32768,
    }
    vision = {
        "model_type": "gemma3n_vision",
        "hidden_size": _WIDTH,
        "vocab_size": audio - image,
        "vocab_offset": image,
        "rms_norm_eps": 1e-6,
    }
    sound = {
        "model_type": "gemma3n_audio",
        "hidden_size": 64,
        "input_feat_size": 80,  # mlx-vlm's default; transformers has 128
        "conf_num_hidden_layers": 1,
        "conf_num_attention_heads": 4,
        "sscp_conv_channel_size": [8, 4],
        "vocab_size": len(ids) - audio,
        "vocab_offset": audio,
    }
    config = {
        "architectures": ["Gemma3nForConditionalGeneration"],
        "model_type": "gemma3n",
        "vocab_size": len(ids),
        "hidden_size": _WIDTH,
        "image_token_id": image,
        "audio_token_id": audio,
        "image_token_index": image,
        "vision_soft_tokens_per_image": _SIDE * _SIDE,
        "eos_token_id": [ids["<eos>"], ids["<end_of_turn>"]],
        "text_config": text,
        "vision_config": vision,
        "audio_config": sound,
    }
    images = {
        "image_processor_type": "SiglipImageProcessor",
        "processor_class": "Gemma3nProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"height": _IMAGE, "width": _IMAGE},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": False,
    }
    with shrunk():
        write_model(folder, config, images, ["audio"])
    sizes = {"processor_class": "Gemma3nProcessor", "image_seq_length": _SIDE * _SIDE, "audio_seq_length": 188}
    (folder / "processor_config.json").write_text(json.dumps(sizes))
    return folder
