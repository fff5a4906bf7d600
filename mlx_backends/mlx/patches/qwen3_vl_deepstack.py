"""A repair of mlx-vlm: prompts of Qwen3-VL that hold images, read together.

mlx-vlm keeps Qwen3-VL's deepstack features in a list, an array a layer, and where it puts the prompts of several rows together
(``_merge_prefill_prompt_kwargs``) it takes the first row's list for all of them. Rows with images are then answered wrongly,
without any error. Here the rows' features are joined row by row, as the model wants them.

The fault was found in 0.7.10 and is there in every version named in ``NEEDED_BY``.
``tests/mlx_backends/mlx/test_patches.py`` fails as
soon as the installed version is right without this module; then delete it, with that test and the one call in
:mod:`mlx_backends.mlx.vlm_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from typing import Any

NEEDED_BY = ("0.7.10",)
"""The versions of mlx-vlm that are known to need it. Others are left as they are: what they do is for the canary to find."""

_FEATURES, _MASK = "deepstack_visual_embeds", "visual_pos_masks"

Merge = Callable[[Sequence[Any], Sequence[Sequence[int]]], tuple[Any, dict[str, Any]]]


def repair() -> bool:
    """Repair the installed mlx-vlm, in this process; whether it needed that."""
    if version("mlx-vlm") not in NEEDED_BY:
        return False
    ar: Any = import_module("mlx_vlm.generate.ar")
    if not hasattr(ar._merge_prefill_prompt_kwargs, "__wrapped__"):
        ar._merge_prefill_prompt_kwargs = _repaired(ar._merge_prefill_prompt_kwargs)
    return True


def _repaired(merge: Merge) -> Merge:
    import mlx.core as mx

    @wraps(merge)
    def merged(rows: Sequence[Any], ids: Sequence[Sequence[int]]) -> tuple[Any, dict[str, Any]]:
        features = [row[_FEATURES] for row in rows if row and row.get(_FEATURES) is not None]
        if not features:
            return merge(rows, ids)
        others = []
        for row, tokens in zip(rows, ids, strict=True):
            other = {name: value for name, value in (row or {}).items() if name != _FEATURES}
            if other.get(_MASK) is None:
                other[_MASK] = mx.zeros((1, len(tokens)), dtype=mx.bool_)
            others.append(other)
        embeddings, together = merge(others, ids)
        together[_FEATURES] = [mx.concatenate(list(layer), axis=0) for layer in zip(*features, strict=True)]
        return embeddings, together

    return merged
