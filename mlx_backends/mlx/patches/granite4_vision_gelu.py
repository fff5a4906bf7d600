"""Patch of mlx-vlm: the activation of Granite Vision 4's image encoder.

SigLIP was trained with the GELU by ``tanh``. mlx-vlm takes MLX's "fast" one, by a sigmoid, which moves logprobs of prompts with
images by some 1e-2, of texts by nothing. The patch takes the one by ``tanh``, which MLX calls "precise".

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_gelu

_FAULT = 'nn.GELU(approx="fast")'


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    block: Any = import_module("mlx_vlm.models.granite4_vision.vision").MLP
    return replace_gelu(block, "activation_fn", _FAULT, approx="precise")
