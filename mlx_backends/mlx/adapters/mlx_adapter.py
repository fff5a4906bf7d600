"""Adapters in a loaded MLX model: applied by mlx-vlm, after a check that they are of this model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.models.adapter_folder import CONFIG, Adapter, lora_pairs

_LOW_RANK = re.compile(r"lora_[ab]|[AB]|m")


def apply_adapter(model: Any, adapter: Adapter, name: str) -> None:
    """Apply ``adapter`` to the loaded ``model``, whose name is ``name``. Raises ModelError if it is of another model."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_vlm.trainer.peft import apply_lora_layers

    misfit = f"the adapter {adapter.name} is of another base model than {name}"
    expected = _expected_shapes(model, adapter)
    for tensor, shape in adapter.shapes.items():
        if tensor not in expected:
            raise ModelError(f"{misfit}, which has no layer for {tensor!r}; name the model that it was trained on.")
        if expected[tensor] != shape:
            raise ModelError(
                f"{misfit}: {tensor!r} has the shape {shape}, and the model wants {expected[tensor]}; name the model that "
                "it was trained on."
            )
    try:
        with contained():
            apply_lora_layers(model, adapter.path)
    except Exception as error:  # settings unlike any that the trainer writes can raise anything
        raise ModelError(f"the adapter {adapter.name} could not be applied to {name}: {one_line(error)}") from error
    model.eval()
    applied = dict(tree_flatten(model.parameters()))
    unread = [tensor for tensor in adapter.shapes if tensor not in applied]
    lacking = [tensor for tensor in applied if tensor.endswith((".lora_a", ".lora_b")) and tensor not in adapter.shapes]
    if unread or lacking:
        raise ModelError(
            f"the tensors of the adapter {adapter.name} are not the ones that its {CONFIG} names "
            f"({(unread or lacking)[0]!r}); copy the adapter again."
        )
    if not all(bool(mx.all(mx.isfinite(applied[tensor]))) for tensor in adapter.shapes):
        raise ModelError(
            f"the adapter {adapter.name} holds values that are no numbers: its training diverged; use another."
        )


def changes_nothing(adapter: Adapter) -> bool:
    """Return whether every product of low-rank weights is zero, and there is nothing else; computed on the CPU."""
    import mlx.core as mx

    paired = {name for pair in lora_pairs(adapter.shapes).values() for name in pair.values()}
    if adapter.kind != "lora" or paired != set(adapter.shapes):
        return False
    with mx.stream(mx.cpu):
        weights: Any = mx.load(str(adapter.weights))
        return not any(
            all(bool(mx.any(weights[name])) for name in pair.values()) for pair in lora_pairs(adapter.shapes).values()
        )


def _expected_shapes(model: Any, adapter: Adapter) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the adapter's tensors must have in ``model``, without those of layers that it lacks."""
    from mlx.utils import tree_flatten

    modules: Mapping[str, Any] = dict(model.named_modules())
    parameters = {name: tuple(value.shape) for name, value in tree_flatten(model.parameters())}
    shapes = {}
    for tensor in adapter.shapes:
        module, _, part = tensor.rpartition(".")
        layer = modules.get(module)
        if tensor in parameters:  # trained in full, next to the low-rank ones
            shapes[tensor] = parameters[tensor]
        elif layer is not None and "weight" in layer and _LOW_RANK.fullmatch(part):
            shapes[tensor] = _low_rank_shape(layer, part, adapter.rank)
    return shapes


def _low_rank_shape(layer: Any, part: str, rank: int) -> tuple[int, ...]:
    import mlx.nn as nn

    *experts, outputs, inputs = layer.weight.shape
    if hasattr(layer, "bits"):
        inputs = inputs * 32 // layer.bits
    if part == "m":
        return (outputs,)
    is_first = part in ("lora_a", "A")
    if experts:
        return (*experts, rank, inputs) if is_first else (*experts, outputs, rank)
    if isinstance(layer, nn.Embedding | nn.QuantizedEmbedding):
        inputs, outputs = outputs, inputs
    return (inputs, rank) if is_first else (rank, outputs)
