"""Tiny random models of the real architectures, with the real layouts of image tokens and processors."""

from __future__ import annotations

from tests.support.tiny_models.base import TEXTS
from tests.support.tiny_models.gemma4 import build as gemma4
from tests.support.tiny_models.internvl_chat import build as internvl_chat
from tests.support.tiny_models.lfm2_vl import build as lfm2_vl
from tests.support.tiny_models.qwen2_5_vl import build as qwen2_5_vl

__all__ = ["TEXTS", "gemma4", "internvl_chat", "lfm2_vl", "qwen2_5_vl"]
