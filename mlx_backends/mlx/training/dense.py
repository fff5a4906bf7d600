"""Dense copies of a small model's quantised layers, for trainings on a CPU.

MLX multiplies quantised matrices on a CPU with loops of its own, the dense ones with the system's BLAS, which is faster by far
if it is an optimised one. The products are the same but for the order of their sums.
"""

from __future__ import annotations

from typing import Any

_MOST_BYTES = 256 << 20
"""The most memory of all copies: it is part of what the estimate allows for MLX."""


def multiply_densely(model: Any) -> bool:
    """Replace the quantised layers of the language model, also those within an adapter's; return False if they are too large."""
    import mlx.nn as nn

    layers = [
        (module, name, layer)
        for _, module in model.language_model.named_modules()
        for name, layer in module.children().items()
        if isinstance(layer, nn.QuantizedLinear)
    ]
    if sum(4 * layer.weight.size * 32 // layer.bits for _, _, layer in layers) > _MOST_BYTES:
        return False
    for module, name, layer in layers:
        setattr(module, name, _dense(layer))
    return True


def _dense(layer: Any) -> Any:
    import mlx.core as mx
    import mlx.nn as nn

    weight = mx.dequantize(
        layer.weight, layer.scales, layer.get("biases"), group_size=layer.group_size, bits=layer.bits, mode=layer.mode
    )
    dense = nn.Linear(weight.shape[1], weight.shape[0], bias="bias" in layer)
    dense.weight = weight
    if "bias" in layer:
        dense.bias = layer.bias
    dense.freeze()
    return dense
