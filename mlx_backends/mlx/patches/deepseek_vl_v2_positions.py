"""Patch of mlx-vlm: positions in DeepSeek-VL2's latent attention, which DeepSeek-VL2 Small and the largest one have.

The authors' model rotates neighbouring pairs of a query's and a key's dimensions there, and pairs of halves only in the plain
attention of the smallest one (DeepSeek-VL2 Tiny). mlx-vlm once did the former in both and now does the latter in both
(https://github.com/Blaizzy/mlx-vlm/pull/2323). The patch rotates neighbouring pairs in the latent attention.

Found in 0.7.10; the opposite fault was https://github.com/Blaizzy/mlx-vlm/issues/2315.
``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "traditional=self.config.rope_traditional"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    attention: Any = import_module("mlx_vlm.models.deepseek_vl_v2.language").DeepseekV2Attention
    config: Any = import_module("mlx_vlm.models.deepseek_vl_v2.config").TextConfig
    return not config.rope_traditional and replace_method(attention, "__init__", _FAULT, _patched)


def _patched(build: Any) -> Any:
    from mlx import nn

    @wraps(build)
    def build_interleaved(self: Any, config: Any) -> None:
        build(self, config)
        if isinstance(getattr(self, "rope", None), nn.RoPE):
            self.rope.traditional = True

    return build_interleaved
