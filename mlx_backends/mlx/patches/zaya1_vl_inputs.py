"""Patch of mlx-vlm: the name of the argument with which ZAYA1-VL's language model takes a prompt's tokens.

mlx-vlm hands a piece of a longer prompt over as ``inputs``, and the model takes ``input_ids``: every such prompt is an error.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_family_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "input_ids: mx.array"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    model: Any = import_module("mlx_vlm.models.zaya1_vl.language").LanguageModel
    return replace_method(model, "__call__", _FAULT, _patched)


def _patched(call: Any) -> Any:
    @wraps(call)
    def take_inputs(self: Any, *arguments: Any, inputs: Any = None, **options: Any) -> Any:
        return call(self, *(arguments if inputs is None else (inputs,)), **options)

    return take_inputs
