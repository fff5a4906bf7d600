"""Objective: the mean loss of an answer's tokens, computed with mlx-vlm's loss over a forward pass like generation's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.mlx.training.training_inputs import PreparedRow
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower
from mlx_backends.training_settings import MOST_EXAMPLES

_CHANGE = 1e-3
"""The greatest change of logits, as a share of their range, that is no sign of attention to later tokens."""


def embedded(model: Any, row: PreparedRow, tower: CachedVisionTower | None = None) -> dict[str, Any]:
    """Return the language model's inputs for a row, evaluated: the encoder of images is frozen and has no gradient.

    Nor has it dropout, which some encoders have of their own. With ``tower``, an image that was encoded before is not encoded
    again.
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
    was_training, text_was_training = model.training, model.language_model.training
    model.eval()
    try:
        output = embed() if tower is None else tower.embed(embed, row.images)
        features = {name: value for name, value in output.to_dict().items() if value is not None}
        inputs = {**tensors, **features, "ids": ids}
        mx.eval([value for value in inputs.values() if isinstance(value, mx.array | list)])
    finally:
        model.train(was_training)
        model.language_model.train(text_was_training)
    return inputs


def logits(model: Any, inputs: dict[str, Any], count: int) -> Any:
    """Return the logits of the last ``count`` tokens, in 32 bits; those of others are not computed."""
    import mlx.core as mx

    others = {name: value for name, value in inputs.items() if name not in ("ids", "inputs_embeds")}
    with _last_positions(model.language_model, count):
        output = model.language_model(inputs["ids"], inputs_embeds=inputs["inputs_embeds"], **others)
    return getattr(output, "logits", output)[:, -count:].astype(mx.float32)


@contextmanager
def _last_positions(language_model: Any, count: int) -> Iterator[None]:
    """Let the output layer see the last ``count`` tokens only.

    No family of mlx-vlm has an argument for it. The output layer is ``lm_head``, or the embedding where the two share weights;
    for the time being its class is one that drops the other tokens first. A model with neither computes the logits of all.
    """
    layers = dict(language_model.named_modules())
    head, call = layers.get("lm_head"), "__call__"
    if head is None:
        head, call = next((layers[name] for name in layers if name.endswith("embed_tokens")), None), "as_linear"
    if head is None:
        yield
        return
    kind = type(head)
    compute = getattr(kind, call)
    head.__class__ = type(kind.__name__, (kind,), {call: lambda self, hidden: compute(self, hidden[:, -count:])})
    try:
        yield
    finally:
        head.__class__ = kind


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


@dataclass
class Losses:
    """Sums of the losses of rows, that of what is minimised and that of the answers' tokens.

    ``rows`` are the sum of what is minimised and the weight of each row, in their order.
    """

    loss: float = 0.0
    answers: float = 0.0
    weight: int = 0
    rows: list[tuple[float, int]] = field(default_factory=list)

    def add(self, values: tuple[Any, Any], weight: int) -> None:
        """Add those of a row."""
        self.loss += float(values[0])
        self.answers += float(values[1])
        self.weight += weight
        self.rows.append((float(values[0]), weight))

    @property
    def mean(self) -> float:
        """The mean of what is minimised."""
        return self.loss / self.weight

    @property
    def answer_mean(self) -> float:
        """The mean of the answers' tokens alone."""
        return self.answers / self.weight

    def by_example(self, examples: Sequence[str]) -> tuple[float, ...]:
        """Return the mean losses of the examples that rows are of, of at most ``MOST_EXAMPLES`` of them, spread evenly."""
        sums: dict[str, tuple[float, int]] = {}
        for example, (loss, weight) in zip(examples, self.rows, strict=True):
            total, count = sums.get(example, (0.0, 0))
            sums[example] = total + loss, count + weight
        means = [loss / weight for loss, weight in sums.values()]
        return tuple(means[:: max(1, -(-len(means) // MOST_EXAMPLES))])

    def is_finite(self) -> bool:
        """Return whether all losses are numbers."""
        return math.isfinite(self.loss) and math.isfinite(self.answers)
