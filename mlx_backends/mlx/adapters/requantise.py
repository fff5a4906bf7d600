"""Requantisation: weights that were quantised once, and changed by less than a step, in the same number of bits.

Weights of a quantised base are on its steps, so rounding takes back every change of less than half a step, and an adapter may
consist of nothing else. What counts is not each weight, but the layer's output, to which the changes add up. So the rounding
error of a column is passed on to the columns after it, as GPTQ (arXiv:2210.17323) does with its inputs' second moments; here
these are assumed to be even, but for the inputs that the adapter reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

_WORD = 32
"""The bits of a word of codes."""
_WEIGHT = 1000.0
"""The weight of the adapter's inputs in the error, against that of all inputs together."""


@dataclass(frozen=True, slots=True)
class Quantisation:
    """Settings of a quantised layer."""

    group_size: int
    bits: int
    mode: str

    @classmethod
    def of(cls, layer: Any) -> Self | None:
        """Return the settings of ``layer``; None for one that is not quantised."""
        if not (hasattr(layer, "bits") and hasattr(layer, "group_size")):
            return None
        return cls(layer.group_size, layer.bits, getattr(layer, "mode", "affine"))

    def to_json(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": self.mode}

    def apply(self, layer: Any) -> Any:
        """Return ``layer`` quantised, each weight to the nearest step of new scales."""
        return layer.to_quantized(self.group_size, self.bits, mode=self.mode)


def requantise(fused: Any, base: Any, inputs: Any, settings: Quantisation) -> Any:
    """Return ``fused`` quantised as ``base``, whose weights it has but for an adapter's change.

    ``inputs`` is the adapter's matrix of the shape (inputs, rank). A group of weights keeps the scale and zero point of ``base``
    unless new ones are nearer to its weights, as after a change beyond the old range. The layers of a mixture of experts,
    embeddings, 3, 5 or 6 bits, and modes without zero points are rounded to new scales, each weight by itself.
    """
    import mlx.core as mx
    import numpy as np

    fresh = settings.apply(fused)
    is_linear = fused.weight.ndim == 2 and inputs.shape[0] == fused.weight.shape[1]
    if settings.mode != "affine" or _WORD % settings.bits or not is_linear:
        return fresh
    target = fused.weight.astype(mx.float32)
    scales, biases = base.scales, base.biases
    # They are stored in the type of the base's, so the codes have to be those of the rounded ones.
    new_scales, new_biases = fresh.scales.astype(scales.dtype), fresh.biases.astype(biases.dtype)
    is_nearer = _errors(target, new_scales, new_biases, settings) < _errors(target, scales, biases, settings)
    scales, biases = mx.where(is_nearer, new_scales, scales), mx.where(is_nearer, new_biases, biases)
    weights, scale, bias, read = (np.array(part.astype(mx.float32)) for part in (target, scales, biases, inputs))
    codes = mx.array(_rounded(weights, scale, bias, read, settings))
    shifts = mx.arange(0, _WORD, settings.bits, dtype=mx.uint32)
    fresh.weight = (mx.unflatten(codes, -1, (-1, _WORD // settings.bits)) << shifts).sum(-1).astype(mx.uint32)
    fresh.scales, fresh.biases = scales, biases
    return fresh


def _rounded(target: Array, scales: Array, biases: Array, inputs: Array, settings: Quantisation) -> NDArray[np.uint32]:
    """Return codes of ``target``, column by column, each column with what corrects the error of those before.

    With e the errors and V the scaled ``inputs``, this goes for the least ``|e|^2 + |e V|^2``: of a column's weights t, with the
    errors so far, ``t - (e V) (I + V' V)^-1 v`` is rounded, where v is the column's row of V, and ``V' V`` is over it and all
    columns that follow.
    """
    import numpy as np

    scaled = inputs.astype(np.float64) * np.sqrt(
        _WEIGHT / max(np.square(inputs).sum(0).mean(), np.finfo(np.float32).tiny)
    )
    inverse = np.linalg.inv(np.eye(scaled.shape[1]) + scaled.T @ scaled)
    error = np.zeros((len(target), scaled.shape[1]), np.float32)
    codes = np.empty(target.shape, np.uint32)
    for column, row in enumerate(scaled):
        group = column // settings.group_size
        scale, bias, weights = scales[:, group], biases[:, group], target[:, column]
        step = inverse @ row
        corrected = weights - error @ step.astype(np.float32)
        steps = np.divide(corrected - bias, scale, out=np.zeros_like(scale), where=scale != 0)
        rounded = np.clip(np.rint(steps), 0, 2**settings.bits - 1)
        codes[:, column] = rounded
        error += np.outer(rounded * scale + bias - weights, row.astype(np.float32))
        inverse += np.outer(step, step) / (1 - row @ step)  # without this column
    return codes


def _errors(target: Any, scales: Any, biases: Any, settings: Quantisation) -> Any:
    """Return the sum of the squared errors of each group of weights, each rounded to the nearest step."""
    import mlx.core as mx

    weights = mx.unflatten(target, -1, (-1, settings.group_size))
    scale, bias = (part.astype(mx.float32)[..., None] for part in (scales, biases))
    steps = mx.where(scale == 0, 0, (weights - bias) / mx.where(scale == 0, 1, scale))
    rounded = mx.clip(mx.round(steps), 0, 2**settings.bits - 1) * scale + bias
    return mx.square(rounded - weights).sum(-1)


def changed_codes(before: Any, after: Any) -> tuple[int, int]:
    """Return the number of codes that differ between two layers of one quantisation, and of all their codes."""
    import mlx.core as mx

    differing = before.weight ^ after.weight
    bits = mx.flatten((differing[..., None] >> mx.arange(_WORD, dtype=mx.uint32)) & 1)
    codes = mx.unflatten(bits, 0, (-1, before.bits)).any(-1)
    return int(codes.sum()), codes.size
