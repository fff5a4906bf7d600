"""Tiny random hunyuan_vl (HunyuanOCR): positions of four dimensions. Its template is written from memory; unverified.

mlx-vlm's processor has the ids of the published vocabulary of 120,818 tokens and sizes of images fixed; :func:`shrunk` gives it
those of this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_models.base import write_model, write_tokenizer

_SPECIAL = (
    "<｜hy_begin▁of▁sentence｜>",
    "<｜hy_Assistant｜>",
    "<｜hy_User｜>",
    "<｜hy_▁pad▁｜>",
    "<｜hy_place▁holder▁no▁3｜>",
)
_IMAGE = ("<｜hy_place▁holder▁no▁100｜>", "<｜hy_place▁holder▁no▁101｜>", "<｜hy_place▁holder▁no▁102｜>")
_IDS: dict[str, int] = {}
TEMPLATE = """\
{{- '<｜hy_begin▁of▁sentence｜>' }}{%- for m in messages %}{%- if m.content is string %}{{- m.content }}{%- else %}\
{%- for c in m.content %}{%- if c.type == 'image' %}\
{{- '<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>' }}\
{%- elif c.type == 'text' %}{{- c.text }}{%- endif %}{%- endfor %}{%- endif %}\
{%- if m.role == 'user' %}{{- '<｜hy_User｜>' }}{%- elif m.role == 'system' %}{{- '<｜hy_place▁holder▁no▁3｜>' }}\
{%- else %}{{- '<｜hy_Assistant｜>' }}{%- endif %}{%- endfor %}"""


@contextmanager
def shrunk() -> Iterator[None]:
    """Give mlx-vlm's processor this vocabulary's ids and small images within the block."""
    from mlx_vlm.models.hunyuan_vl import processing_hunyuan_vl as processing

    build_images = processing.HunYuanVLImageProcessor.__init__

    def build_small(self: Any, *arguments: Any, **options: Any) -> None:
        build_images(self, *arguments, **{"min_pixels": 64 * 64, "max_pixels": 160 * 160, **options})

    def build(self: Any, image_processor: Any = None, tokenizer: Any = None, **options: Any) -> None:
        for name, token in zip(("IM_START", "IM_END", "IMAGE"), _IMAGE, strict=True):
            setattr(self, f"{name}_TOKEN_ID", tokenizer.convert_tokens_to_ids(token))
        self.PAD_TOKEN_ID = tokenizer.pad_token_id
        construct(self, image_processor, tokenizer, **options)

    construct = processing.HunYuanVLProcessor.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processing.HunYuanVLImageProcessor, "__init__", build_small)
        patch.setattr(processing.HunYuanVLProcessor, "__init__", build)
        yield


def build(folder: Path) -> Path:
    ids = write_tokenizer(
        folder,
        [*_SPECIAL, *_IMAGE],
        TEMPLATE,
        eos_token="<｜hy_Assistant｜>",
        pad_token="<｜hy_▁pad▁｜>",
        extra_special_tokens=dict(zip(("image_start_token", "image_end_token", "image_token"), _IMAGE, strict=True)),
    )
    end = ids["<｜hy_Assistant｜>"]
    text = {
        "vocab_size": len(ids),
        "org_vocab_size": len(ids),
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "attention_head_dim": 16,
        "intermediate_size": 128,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "use_qk_norm": True,
        "rope_theta": 10000.0,
        "rope_scaling": {
            "alpha": 1000.0,
            "beta_fast": 32,
            "beta_slow": 1,
            "factor": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "type": "xdrope",
            "xdrope_section": [2, 2, 2, 2],
        },
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "bos_token_id": ids["<｜hy_begin▁of▁sentence｜>"],
        "eos_token_id": end,
        "eod_token_id": end,
        "pad_token_id": -1,
        "pad_id": ids["<｜hy_▁pad▁｜>"],
        "image_start_token_id": ids[_IMAGE[0]],
        "image_end_token_id": ids[_IMAGE[1]],
        "image_token_id": ids[_IMAGE[2]],
    }
    vision = {
        "model_type": "hunyuan_vl",
        "hidden_size": 64,
        "out_hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "patch_size": 16,
        "num_channels": 3,
        "spatial_merge_size": 2,
        "rms_norm_eps": 1e-5,
        "interpolate_mode": "bilinear",
        "cat_extra_token": 1,
        "img_max_token_num": 64,
        "max_vit_seq_len": 256,
        "add_patchemb_bias": True,
        "max_image_size": 64,
    }
    config = {
        "architectures": ["HunYuanVLForConditionalGeneration"],
        "model_type": "hunyuan_vl",
        **text,
        "vision_config": vision,
    }
    processor = {
        "image_processor_type": "HunYuanVLImageProcessor",
        "processor_class": "HunYuanVLProcessor",
        "min_pixels": 64 * 64,
        "max_pixels": 160 * 160,
        "patch_size": 16,
        "temporal_patch_size": 1,
        "merge_size": 2,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    return write_model(folder, config, processor)
