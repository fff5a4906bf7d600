"""Guard of a model's image features: they must reach every image position of the prompt."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from mlx_backends.sight_check import ImageFeaturesError

_PIXELS = ("pixel_values", "pixel_values_videos")


def guard_image_features(model: Any, image_tokens: Set[int]) -> None:
    """Make ``model.get_input_embeddings`` raise ImageFeaturesError where the encoder's output is missing at an image's position.

    Such a position has the embedding of its placeholder token, or a value that is not finite. ``image_tokens`` are the
    ids of the placeholder tokens. A model that keeps image features apart from its embeddings is left as it is.
    """
    embed = model.get_input_embeddings

    def guarded(input_ids: Any = None, pixel_values: Any = None, **others: Any) -> Any:
        has_pixels = pixel_values is not None or any(others.get(name) is not None for name in _PIXELS)
        placeholders = sorted(image_tokens) if has_pixels and input_ids is not None else []
        # The text's embeddings come first, because a model may keep the positions of its last call.
        texts = _embedded_texts(model, embed, input_ids) if placeholders else None
        output = embed(input_ids, pixel_values, **others)
        if texts is not None and getattr(output, "cross_attention_states", None) is None:
            _check(input_ids, texts, output.inputs_embeds, placeholders)
        return output

    model.get_input_embeddings = guarded


def _embedded_texts(model: Any, embed: Any, input_ids: Any) -> Any:
    """Return the prompt's embeddings, of the shape (1, tokens, width), as if its placeholders were text."""
    try:
        return embed(input_ids).inputs_embeds
    except ValueError:  # MiniCPM-V 4.7 takes no placeholder without pixels
        return model.language_model.model.embed_tokens(input_ids)


def _check(input_ids: Any, texts: Any, merged: Any, placeholders: list[int]) -> None:
    import mlx.core as mx

    if merged.shape != texts.shape:
        return
    is_image = (input_ids[..., None] == mx.array(placeholders)).any(axis=-1)
    reached = (merged != texts).any(axis=-1) & mx.isfinite(merged).all(axis=-1)
    total, missing = (int(count) for count in (is_image.sum(), (is_image & ~reached).sum()))
    if missing:
        raise ImageFeaturesError(f"its image features reach {total - missing} of {total} image positions of a prompt.")


def rows_at_images(ids: Any, output: Any, image_tokens: Set[int]) -> Any | None:
    """Return what the model's embeddings of a prompt, ``output`` for the tokens ``ids``, show at the positions of its images.

    Of the type float32 and the shape (positions, width); None where they are not in place.
    """
    import mlx.core as mx
    import numpy as np

    states = getattr(output, "cross_attention_states", None)
    if states is not None:  # Llama 3.2 Vision's, beside its tokens
        return np.array(states.astype(mx.float32))[0]
    is_image = np.isin(np.array(ids)[0], sorted(image_tokens))
    rows = np.array(output.inputs_embeds.astype(mx.float32))[0]
    layers = getattr(output, "per_layer_inputs", None)
    if layers is not None and not rows[is_image].any():  # Granite Vision 4's features are in the layers' inputs alone
        rows = np.array(layers.astype(mx.float32))[0].reshape(len(rows), -1)
    return rows[is_image] if len(rows) == len(is_image) and is_image.any() else None
