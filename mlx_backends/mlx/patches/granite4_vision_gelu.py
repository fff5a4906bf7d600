"""Patch of mlx-vlm: the activation of Granite Vision 4's image encoder.

SigLIP was trained with the GELU by ``tanh``. mlx-vlm takes MLX's "fast" one, by a sigmoid, which moves logprobs of prompts with
images by some 1e-2, of texts by nothing. The patch takes the one by ``tanh``, which MLX calls "precise".

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

_FAULT = 'nn.GELU(approx="fast")'


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    block: Any = import_module("mlx_vlm.models.granite4_vision.vision").MLP
    build = inspect.unwrap(block.__init__)
    if _FAULT not in inspect.getsource(build):
        return False
    if block.__init__ is build:
        block.__init__ = _patched(build)
    return True


def _patched(build: Any) -> Any:
    from mlx import nn

    @wraps(build)
    def construct(self: Any, *arguments: Any, **options: Any) -> None:
        build(self, *arguments, **options)
        self.activation_fn = nn.GELU(approx="precise")

    return construct
