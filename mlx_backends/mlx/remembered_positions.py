"""Positions of a prompt that some models of mlx-vlm remember in the language model instead of returning them.

A token of an image has positions of its own in time, height and width, and those of the text behind an image follow from them.
GLM-4V, GLM-4.5V and PaddleOCR-VL leave them in attributes of the language model, where those of the next prompt replace them: the
rows of a batch would be read at each other's positions.
"""

from __future__ import annotations

from typing import Any


def remembered_positions(language_model: Any, ids: Any) -> dict[str, Any]:
    """Return the arguments with the positions of the prompt that was embedded last, as Qwen2-VL's embeddings have them.

    ``ids`` are its tokens, of the shape (1, tokens). ``position_ids`` are of the shape (3, 1, tokens); ``rope_deltas``, of the
    shape (1, 1), is added to the number of a later token. The result is empty for a model without such positions.
    """
    if not hasattr(language_model, "_rope_deltas") or not hasattr(language_model, "get_rope_index"):
        return {}
    positions, deltas = language_model._position_ids, language_model._rope_deltas
    if positions is None:
        positions, deltas = language_model.get_rope_index(ids)
    return {"position_ids": positions, "rope_deltas": deltas.reshape(1, 1)}
