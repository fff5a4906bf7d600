"""Patch of mlx-vlm: the activation of Llama 4's image encoder.

The encoder and its projector were trained with the exact GELU (``hidden_act`` is "gelu"). mlx-vlm takes MLX's fast approximation,
the one by the sigmoid. The patch takes the exact one.

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
    layer: Any = import_module("mlx_vlm.models.llama4.vision").Llama4VisionMLP
    return replace_gelu(layer, "activation_fn", _FAULT)
