"""Patch of mlx-vlm: prompts of Qwen3-VL that hold images, read in a batch.

mlx-vlm keeps Qwen3-VL's deepstack features in a list, an array for each layer, and where it joins the prompts of several rows
(``_merge_prefill_prompt_kwargs``) it takes the first row's list for all of them. Rows with images are then answered wrongly,
without any error. The patch joins the rows' features row by row, as the model expects them.

The bug was found in 0.7.10 and is in every version named in ``AFFECTED_VERSIONS``.
``tests/mlx_backends/mlx/test_patches.py`` fails as soon as the installed version is right without this module; then delete it,
with that test and the one call in :mod:`mlx_backends.mlx.vlm_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from typing import Any

AFFECTED_VERSIONS = ("0.7.10",)
"""Versions of mlx-vlm known to need the patch. Others are left as they are, and checked for batch invariance."""

_FEATURES, _MASK = "deepstack_visual_embeds", "visual_pos_masks"

Merge = Callable[[Sequence[Any], Sequence[Sequence[int]]], tuple[Any, dict[str, Any]]]


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    if version("mlx-vlm") not in AFFECTED_VERSIONS:
        return False
    ar: Any = import_module("mlx_vlm.generate.ar")
    if not hasattr(ar._merge_prefill_prompt_kwargs, "__wrapped__"):
        ar._merge_prefill_prompt_kwargs = _patched(ar._merge_prefill_prompt_kwargs)
    return True


def _patched(merge: Merge) -> Merge:
    import mlx.core as mx

    @wraps(merge)
    def merge_rows(rows: Sequence[Any], ids: Sequence[Sequence[int]]) -> tuple[Any, dict[str, Any]]:
        features = [row[_FEATURES] for row in rows if row and row.get(_FEATURES) is not None]
        if not features:
            return merge(rows, ids)
        rest = []
        for row, tokens in zip(rows, ids, strict=True):
            without_features = {name: value for name, value in (row or {}).items() if name != _FEATURES}
            if without_features.get(_MASK) is None:
                without_features[_MASK] = mx.zeros((1, len(tokens)), dtype=mx.bool_)
            rest.append(without_features)
        embeddings, joined_kwargs = merge(rest, ids)
        joined_kwargs[_FEATURES] = [mx.concatenate(list(layer), axis=0) for layer in zip(*features, strict=True)]
        return embeddings, joined_kwargs

    return merge_rows
