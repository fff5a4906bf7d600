"""Patch of mlx-vlm: the activation of MiniCPM-V 4.6's merger.

The merger, which hands the image encoder's output to the language model, was trained with the exact GELU. mlx-vlm names MLX's
approximation of it, "precise", which is the one by ``tanh``: logprobs of prompts with images differ slightly from those of
transformers, of texts by nothing. The patch takes the exact one. The encoder's own activations are approximate in both.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_gelu

_FAULT = 'nn.GELU(approx="precise")'


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    block: Any = import_module("mlx_vlm.models.minicpmv4_6.minicpmv4_6").MergerBlock
    return replace_gelu(block, "act", _FAULT)
