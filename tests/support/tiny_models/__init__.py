"""Tiny random models of the real architectures, with the real layouts of image tokens and processors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.tiny_models.aya_vision import build as aya_vision
from tests.support.tiny_models.base import TEXTS
from tests.support.tiny_models.deepseek_vl_v2 import build as deepseek_vl_v2
from tests.support.tiny_models.fastvlm import build as fastvlm
from tests.support.tiny_models.gemma3 import build as gemma3
from tests.support.tiny_models.gemma3n import build as gemma3n
from tests.support.tiny_models.gemma4 import build as gemma4
from tests.support.tiny_models.gemma4_unified import build as gemma4_unified
from tests.support.tiny_models.glm4v import build as glm4v
from tests.support.tiny_models.glm4v_moe import build as glm4v_moe
from tests.support.tiny_models.granite4_vision import build as granite4_vision
from tests.support.tiny_models.granite_vision import build as granite_vision
from tests.support.tiny_models.hunyuan_vl import build as hunyuan_vl
from tests.support.tiny_models.idefics3 import build as idefics3
from tests.support.tiny_models.internvl import build as internvl
from tests.support.tiny_models.internvl_chat import build as internvl_chat
from tests.support.tiny_models.kimi_vl import build as kimi_vl
from tests.support.tiny_models.lfm2_vl import build as lfm2_vl
from tests.support.tiny_models.llama4 import build as llama4
from tests.support.tiny_models.llava import build as llava
from tests.support.tiny_models.llava_next import build as llava_next
from tests.support.tiny_models.llava_onevision import build as llava_onevision
from tests.support.tiny_models.minicpmo import build as minicpmo
from tests.support.tiny_models.minicpmv4_6 import build as minicpmv4_6
from tests.support.tiny_models.minicpmv4_7 import build as minicpmv4_7
from tests.support.tiny_models.mistral3 import build as mistral3
from tests.support.tiny_models.mllama import build as mllama
from tests.support.tiny_models.paddleocr_vl import build as paddleocr_vl
from tests.support.tiny_models.paligemma import build as paligemma
from tests.support.tiny_models.phi3_v import build as phi3_v
from tests.support.tiny_models.pixtral import build as pixtral
from tests.support.tiny_models.qwen2_5_vl import build as qwen2_5_vl
from tests.support.tiny_models.qwen2_vl import build as qwen2_vl
from tests.support.tiny_models.qwen3_5 import build as qwen3_5
from tests.support.tiny_models.qwen3_5_moe import build as qwen3_5_moe
from tests.support.tiny_models.qwen3_vl import build as qwen3_vl
from tests.support.tiny_models.qwen3_vl_moe import build as qwen3_vl_moe
from tests.support.tiny_models.smolvlm import build as smolvlm
from tests.support.tiny_models.zaya1_vl import build as zaya1_vl

__all__ = [
    "FAMILIES",
    "TEXTS",
    "aya_vision",
    "deepseek_vl_v2",
    "fastvlm",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4_unified",
    "glm4v",
    "glm4v_moe",
    "granite4_vision",
    "granite_vision",
    "hunyuan_vl",
    "idefics3",
    "internvl",
    "internvl_chat",
    "kimi_vl",
    "lfm2_vl",
    "llama4",
    "llava",
    "llava_next",
    "llava_onevision",
    "minicpmo",
    "minicpmv4_6",
    "minicpmv4_7",
    "mistral3",
    "mllama",
    "paddleocr_vl",
    "paligemma",
    "phi3_v",
    "pixtral",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_vl",
    "qwen3_vl_moe",
    "smolvlm",
    "zaya1_vl",
]

FAMILIES: Mapping[str, Callable[[Path], Path]] = {
    "aya_vision": aya_vision,
    "deepseek_vl_v2": deepseek_vl_v2,
    "fastvlm": fastvlm,
    "gemma3": gemma3,
    "gemma3n": gemma3n,
    "gemma4": gemma4,
    "gemma4_unified": gemma4_unified,
    "glm4v": glm4v,
    "glm4v_moe": glm4v_moe,
    "granite4_vision": granite4_vision,
    "hunyuan_vl": hunyuan_vl,
    "idefics3": idefics3,
    "internvl": internvl,
    "internvl_chat": internvl_chat,
    "kimi_vl": kimi_vl,
    "lfm2_vl": lfm2_vl,
    "llama4": llama4,
    "llava": llava,
    "llava_next": llava_next,
    "llava_onevision": llava_onevision,
    "minicpmo": minicpmo,
    "minicpmv4_6": minicpmv4_6,
    "minicpmv4_7": minicpmv4_7,
    "mistral3": mistral3,
    "mllama": mllama,
    "paddleocr_vl": paddleocr_vl,
    "paligemma": paligemma,
    "phi3_v": phi3_v,
    "pixtral": pixtral,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen2_vl": qwen2_vl,
    "qwen3_5": qwen3_5,
    "qwen3_5_moe": qwen3_5_moe,
    "qwen3_vl": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl_moe,
    "smolvlm": smolvlm,
    "zaya1_vl": zaya1_vl,
    # of CMC-Bench's paper and of assets/models.json
    # others
}
"""The function that builds a tiny model of each family in a folder."""
