"""Requantisation of a changed layer: what stays as it was, and what a small change leaves in the layer's output."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

from mlx_backends.mlx.adapters.requantise import Quantisation, changed_codes, requantise

RANK, SIZE = 8, 256


def layers(strength: float, bits: int = 4) -> SimpleNamespace:
    """A quantised layer, an adapter with changes of ``strength`` half steps, and the layer that is their sum."""
    keys = mx.random.split(mx.random.key(1), 3)
    base = nn.Linear(SIZE, SIZE, bias=False)
    base.weight = mx.random.normal((SIZE, SIZE), key=keys[0]) / 16
    base = base.to_quantized(64, bits)
    first, second = (
        mx.random.normal(shape, key=key) for shape, key in zip(((SIZE, RANK), (RANK, SIZE)), keys[1:], strict=True)
    )
    change = (first @ second).T
    change *= strength * float(mx.abs(base.scales).mean()) / 2 / float(change.std())
    fused = nn.Linear(SIZE, SIZE, bias=False)
    fused.weight = weights(base) + change
    return SimpleNamespace(base=base, inputs=first, change=change, fused=fused, settings=Quantisation.of(base))


def weights(layer: Any) -> mx.array:
    return mx.dequantize(layer.weight, layer.scales, layer.biases, group_size=64, bits=layer.bits)


def test_without_a_change_every_code_and_scale_is_as_before() -> None:
    """With scales of its own, every eighth code of the demo's model would change."""
    state = layers(0)
    same = requantise(state.fused, state.base, state.inputs, state.settings)
    assert changed_codes(state.base, same) == (0, SIZE * SIZE)
    assert mx.array_equal(same.scales, state.base.scales)
    count, total = changed_codes(state.base, state.settings.apply(state.fused))
    assert count > total / 50


@pytest.mark.parametrize(("strength", "share"), [(0.2, 0.5), (0.5, 0.3), (1.0, 0.2), (4.0, 0.2)])
def test_the_inputs_that_the_adapter_reads_get_its_change(strength: float, share: float) -> None:
    """Of changes below half a step, the nearest codes lose more than half; those beyond the old range need new scales."""
    state = layers(strength)

    def lost(layer: Any) -> float:
        error = (weights(layer) - state.fused.weight) @ state.inputs
        return float(mx.sqrt(mx.square(error).sum() / mx.square(state.change @ state.inputs).sum()))

    now = lost(requantise(state.fused, state.base, state.inputs, state.settings))
    assert now < share
    assert now < lost(state.settings.apply(state.fused))


@pytest.mark.parametrize("bits", [2, 3, 4, 6, 8])
def test_every_number_of_bits_is_taken(bits: int) -> None:
    state = layers(1.0, bits)
    now = requantise(state.fused, state.base, state.inputs, state.settings)
    assert now.bits == bits
    assert float(mx.abs(weights(now) - state.fused.weight).max()) < 3 * float(mx.abs(state.base.scales).max())
    assert 0 < changed_codes(state.base, now)[0] <= SIZE * SIZE
