"""Quantisation of a bfloat16 folder for MLX."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def quantise(source: Path, folder: Path, bits: int = 4) -> None:
    """Write ``source``, a bf16 folder, in MLX ``bits``-bit, groups of 64; the vision encoder stays bf16. Needs mlx-vlm.

    What the language model keeps beside its quantised weights (scales, biases, norms) has the same values as fp32, so that it
    computes in fp32: without a GPU, MLX multiplies quantised weights with bf16 three times more slowly.
    """
    import mlx.core as mx

    from mlx_backends.core.library_isolation import contained

    with contained():
        convert = import_module("mlx_vlm.convert").convert
        convert(str(source), str(folder), quantize=True, q_bits=bits, q_group_size=64, trust_remote_code=False)
    path = str(folder / "model.safetensors")
    loaded: Any = mx.load(path)
    weights = {
        name: value.astype(mx.float32) if name.startswith("language_model.") and value.dtype == mx.bfloat16 else value
        for name, value in loaded.items()
    }
    mx.eval(weights)
    mx.save_safetensors(path, weights, metadata={"format": "mlx"})
    for needless in ("README.md", "model.safetensors.index.json"):
        (folder / needless).unlink(missing_ok=True)
