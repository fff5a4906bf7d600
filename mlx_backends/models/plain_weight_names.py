"""Names of weights without the wrappers in which MLX and PyTorch differ."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.errors import ModelError

_WRAPPERS = frozenset({"model", "language_model", "text_model", "vision_tower", "visual", "vision_model"})
_VISION_PARTS = frozenset({"vit_merger"})
"""Parts that one library keeps in the image encoder, and the other beside it."""


def by_plain_name(names: Iterable[str]) -> dict[tuple[bool, str], str]:
    """Return names by whether they belong to the image encoder and by what is left without the libraries' wrapper parts.

    ``language_model.model.layers.0.mlp.up_proj.weight`` and ``model.language_model.layers.0.mlp.up_proj.weight`` are one.
    """
    plain_names: dict[tuple[bool, str], str] = {}
    for name in names:
        parts = name.split(".")
        start = next((number for number, part in enumerate(parts) if part not in _WRAPPERS), len(parts) - 1)
        is_vision = parts[start] in _VISION_PARTS or any(part.startswith("vis") for part in parts[:start])
        plain_name = is_vision, ".".join(parts[start:]).replace("in_proj.", "in_proj_")
        if plain_name in plain_names:
            raise ModelError(
                f"{name!r} and {plain_names[plain_name]!r} would be one weight in the other framework; name the original model."
            )
        plain_names[plain_name] = name
    return plain_names
