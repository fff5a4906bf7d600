"""Patch of mlx-vlm: the activation of InternVL's image encoder and projector.

InternVL was trained with the exact GELU. mlx-vlm names MLX's approximation of it, "precise", which is the one by ``tanh``: log
probabilities of prompts with images differ by some 1e-4 from those of transformers, of texts by nothing. The patch takes the
exact one.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from importlib import import_module

from mlx_backends.mlx.patches.replace_method import replace_gelu

_FAULT = 'nn.GELU(approx="precise")'
_PARTS = (
    ("internvl_chat.vision", "MLP", "activation_fn"),
    ("internvl.internvl", "MultiModalProjector", "activation"),
)


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    repaired = [
        replace_gelu(getattr(import_module(f"mlx_vlm.models.{module}"), name), activation, _FAULT)
        for module, name, activation in _PARTS
    ]
    return any(repaired)
