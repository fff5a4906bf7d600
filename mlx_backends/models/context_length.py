"""Context length: how many tokens of a prompt a model was made for, from its folder's ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlx_backends.models.request_memory import number, text_config

_STRETCHED = ("linear", "dynamic", "yarn")
"""Kinds of RoPE scaling by which a configuration's own number of positions may grow."""


@dataclass(frozen=True, slots=True)
class ContextLength:
    """The longest prompt of a model.

    ``counts_media`` is False where a medium takes few positions however many tokens it has, as in M-RoPE.
    """

    tokens: int
    counts_media: bool = True


def context_length(config: Mapping[str, Any]) -> ContextLength | None:
    """Return the context length that ``config.json`` states; None if it states none.

    A file that leaves it to defaults has none here: those of a library may not be the model's. Where the file can be read in two
    ways, the longer one counts, so that no model is denied a prompt that it takes.
    """
    text = text_config(config)
    positions = number(text, "max_position_embeddings") or number(config, "max_position_embeddings")
    if positions is None:
        return None
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(scaling, Mapping):
        return ContextLength(positions)
    kind, factor = scaling.get("rope_type") or scaling.get("type"), scaling.get("factor")
    if kind in _STRETCHED and isinstance(factor, int | float) and 1 < factor < 1000:
        original = number(scaling, "original_max_position_embeddings") or positions
        positions = max(positions, int(original * factor))
    return ContextLength(positions, counts_media="mrope_section" not in scaling and kind != "mrope")
