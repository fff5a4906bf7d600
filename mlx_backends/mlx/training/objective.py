"""Objective: the mean loss of an answer's tokens, computed with mlx-vlm's loss over a forward pass like generation's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.mlx.training.inputs import PreparedRow
from mlx_backends.mlx.vision_cache import CachedVisionTower

_CHANGE = 1e-3
"""The greatest change of logits, as a share of their range, that is no sign of attention to later tokens."""


def embedded(model: Any, row: PreparedRow, tower: CachedVisionTower | None = None) -> dict[str, Any]:
    """Return the language model's inputs for a row, evaluated: the encoder of images is frozen and has no gradient.

    With ``tower``, an image that was encoded before is not encoded again.
    """
    import mlx.core as mx

    tensors = dict(row.tensors)
    pixels, mask = tensors.pop("pixel_values", None), tensors.pop("attention_mask")
    # The last token predicts nothing.
    ids, mask = row.ids[:, :-1], mask[:, :-1]
    for name, value in tensors.items():
        if isinstance(value, mx.array) and value.ndim == 2 and value.shape == row.ids.shape:
            tensors[name] = value[:, :-1]
    embed = partial(model.get_input_embeddings, ids, pixels, mask=mask, **tensors)
    output = embed() if tower is None else tower.embed(embed, row.images)
    features = {name: value for name, value in output.to_dict().items() if value is not None}
    inputs = {**tensors, **features, "ids": ids}
    mx.eval([value for value in inputs.values() if isinstance(value, mx.array | list)])
    return inputs


def logits(model: Any, inputs: dict[str, Any], count: int) -> Any:
    """Return the logits of the last ``count`` tokens, in 32 bits. Few models compute those of others too."""
    import mlx.core as mx

    others = {name: value for name, value in inputs.items() if name not in ("ids", "inputs_embeds")}
    output = model.language_model(inputs["ids"], inputs_embeds=inputs["inputs_embeds"], logits_to_keep=count, **others)
    return getattr(output, "logits", output)[:, -count:].astype(mx.float32)


def answer_loss(model: Any, inputs: dict[str, Any], row: PreparedRow) -> Any:
    """Return the sum of the loss over the answer's tokens."""
    import mlx.core as mx
    from mlx_vlm.trainer.losses.cross_entropy import token_cross_entropy

    scores = logits(model, inputs, row.answer)
    return mx.sum(token_cross_entropy(scores, row.ids[:, -row.answer :], ignore_index=None))


def preference_loss(
    model: Any, chosen: dict[str, Any], rejected: dict[str, Any], rows: Sequence[PreparedRow], beta: float
) -> tuple[Any, Any]:
    """Return the loss of ORPO, and that of the answer's tokens alone.

    ORPO's is the answer's mean loss, and the odds of it against the rejected one, weighted by ``beta``.
    """
    import mlx.core as mx
    from mlx_vlm.trainer.losses.preference import orpo_objective

    means = [
        -answer_loss(model, inputs, row) / row.answer for inputs, row in zip((chosen, rejected), rows, strict=True)
    ]
    losses, _ = orpo_objective(*means, beta=beta)
    return mx.sum(losses), -means[0]


def check_causal(model: Any, row: PreparedRow, name: str) -> None:
    """Raise ModelError if the model sees an answer's tokens before it predicts them, as prefix attention does."""
    import mlx.core as mx

    inputs = embedded(model, row)
    changed_ids = mx.concatenate([row.ids[:, :-2], row.ids[:, :1], row.ids[:, -1:]], axis=1)
    changed = embedded(model, PreparedRow(changed_ids, row.tensors, row.answer))
    count = min(8, row.ids.shape[1] - 1)
    before, after = (logits(model, prompt, count)[:, :-1] for prompt in (inputs, changed))
    span = mx.max(before) - mx.min(before)
    if bool(mx.max(mx.abs(before - after)) > _CHANGE * span):
        raise ModelError(
            f"{name} cannot be trained: its attention sees the answer that it is to predict; train another model."
        )
