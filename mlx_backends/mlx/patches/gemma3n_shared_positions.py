"""Patch of mlx-vlm: positions in the layers of Gemma 3n that share the keys and values of an earlier layer.

These layers read the position of their queries from the shared cache after the earlier layer has put the current tokens into
it. Their queries are then as many positions late as tokens are read in one pass, and an answer depends on how a prompt is
divided. The patch gives these layers the position before.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = """\
            keys, values = state[0], state[1]
            offset = cache.offset
"""


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    attention: Any = import_module("mlx_vlm.models.gemma3n.language").Gemma3nAttention
    return replace_method(attention, "__call__", _FAULT, _patched)


def _patched(attend: Any) -> Any:
    @wraps(attend)
    def attend_in_place(self: Any, x: Any, mask: Any = None, cache: Any = None) -> Any:
        if self.is_kv_shared_layer and cache is not None:
            cache = _Before(cache, x.shape[1])
        return attend(self, x, mask, cache)

    return attend_in_place


class _Before:
    """A cache whose offset is what it was before its last ``count`` tokens."""

    def __init__(self, cache: Any, count: int) -> None:
        self._cache = cache
        self.offset = cache.offset - count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)
