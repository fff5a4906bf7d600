"""A model's weights as PyTorch takes them, also from folders made for MLX: dequantised, renamed, in PyTorch's layout.

So that one set of weights can be asked in both frameworks, and the gap between frameworks be told from that of quantisation.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import parse_json
from mlx_backends.models.weights import weight_files

_WRAPPERS = frozenset({"model", "language_model", "vision_tower", "visual", "vision_model"})
_TYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_ROWS = 4096  # of a matrix that are unpacked at a time


def for_mlx(path: Path, config: Mapping[str, Any]) -> bool:
    """Whether the model in folder ``path`` was made for MLX: its file says so, or it is quantised as MLX does it."""
    if quantisation(config):
        return True
    return any((_header(file).get("__metadata__") or {}).get("format") == "mlx" for file in weight_files(path))


def quantisation(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """How MLX quantised a model, by its configuration; empty where it did not."""
    found = config.get("quantization") or config.get("quantization_config") or {}
    return found if isinstance(found, Mapping) and "group_size" in found and "quant_method" not in found else {}


def computed_in(path: Path) -> str:
    """The floating-point type of the weights, or of the scales they are multiplied by: "bfloat16", "float16" or "float32"."""
    numbers: Counter[str] = Counter()
    for file in weight_files(path):
        for name, tensor in _header(file).items():
            if name != "__metadata__" and tensor.get("dtype") in _TYPES:
                first, last = tensor["data_offsets"]
                numbers[_TYPES[tensor["dtype"]]] += last - first
    return numbers.most_common(1)[0][0] if numbers else "float32"


def converted(path: Path, config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The weights of the folder ``path``, made for MLX, as tensors under the names that the PyTorch model knows.

    ``shapes``: of every tensor of that model, by its name. Quantised weights are computed back (affine, by groups: scale
    times number plus bias, in the type of the scales); the channels of convolutions, which MLX keeps last, go to their place.
    Raises ModelError for another way of quantising and where names or shapes do not meet.
    """
    stored = _dequantised(_stored(path), quantisation(config))
    known = _by_plain_name(shapes)
    found: dict[str, Any] = {}
    for plain, name in _by_plain_name(stored).items():
        if plain not in known:
            raise _strange(f"the PyTorch model has no weight like {name!r}")
        value, shape = stored[name], tuple(shapes[known[plain]])
        if value.ndim > 2 and tuple(value.movedim(-1, 1).shape) == shape:
            value = value.movedim(-1, 1).contiguous()
        if tuple(value.shape) != shape:
            raise _strange(f"{name!r} has the shape {tuple(value.shape)}, and PyTorch wants {shape}")
        found[known[plain]] = value
    return found


def dequantised(weight: Any, scales: Any, biases: Any, *, bits: int) -> Any:
    """MLX's affine quantisation computed back, of the shape (rows, columns), in the type of ``scales``.

    ``weight`` holds numbers of ``bits`` bits one after the other, the first in the lowest bits, in uint32 of the shape
    (rows, columns x bits / 32); ``scales`` and ``biases`` are of the shape (rows, groups).
    """
    import torch

    *outer, packed = weight.shape
    columns = packed * 32 // bits
    found = torch.empty((weight.numel() // packed, columns), dtype=scales.dtype)
    groups = scales.shape[-1]
    flat = weight.reshape(-1, packed), scales.reshape(-1, groups, 1), biases.reshape(-1, groups, 1)
    for start in range(0, len(found), _ROWS):
        numbers, scale, bias = (each[start : start + _ROWS] for each in flat)
        whole = _unpacked(numbers, bits).to(scales.dtype).reshape(len(numbers), groups, columns // groups)
        found[start : start + _ROWS] = (whole * scale + bias).reshape(len(numbers), columns)
    return found.reshape(*outer, columns)


def _unpacked(weight: Any, bits: int) -> Any:
    """Numbers of ``bits`` bits, as a uint8 tensor of the shape (rows, columns)."""
    import numpy as np
    import torch

    packed = np.ascontiguousarray(weight.numpy()).astype("<u4", copy=False).view(np.uint8)
    if bits == 8:
        return torch.from_numpy(packed.copy())
    if bits == 4:
        return torch.from_numpy(np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1))
    stream = np.unpackbits(packed, axis=-1, bitorder="little").reshape(len(packed), -1, bits)
    return torch.from_numpy(stream @ (1 << np.arange(bits, dtype=np.uint8)))


def _dequantised(stored: dict[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in stored.items():
        base, _, kind = name.rpartition(".")
        if kind in ("scales", "biases") and f"{base}.scales" in stored:
            continue
        if kind == "weight" and f"{base}.scales" in stored:
            value = _layer(base, stored, how)
        found[name] = value
    return found


def _layer(base: str, stored: Mapping[str, Any], how: Mapping[str, Any]) -> Any:
    own = how.get(base)
    settings = {**how, **own} if isinstance(own, Mapping) else how
    bits, size, mode = settings.get("bits"), settings.get("group_size"), settings.get("mode", "affine")
    weight, scales = stored[f"{base}.weight"], stored[f"{base}.scales"]
    if mode != "affine" or f"{base}.biases" not in stored:
        raise ModelError(
            f"its weights are quantised as {mode}, and only affine ones are computed back for PyTorch; "
            "name the model in bf16, or its affine 4-bit or 8-bit version."
        )
    if (
        bits not in (2, 3, 4, 5, 6, 8)
        or not isinstance(size, int)
        or weight.shape[-1] * 32 != scales.shape[-1] * size * bits
    ):
        raise _strange(f"{base!r} is not quantised as config.json says ({bits} bits in groups of {size})")
    return dequantised(weight, scales, stored[f"{base}.biases"], bits=bits)


def _stored(path: Path) -> dict[str, Any]:
    from safetensors import safe_open

    found = {}
    for file in weight_files(path):
        with safe_open(file, framework="pt") as tensors:
            found.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118 - it is no mapping
    return found


def _by_plain_name(names: Iterable[str]) -> dict[tuple[bool, str], str]:
    """Names by whether they are of the image encoder and by what is left without the words that libraries wrap parts in.

    ``language_model.model.layers.0.mlp.up_proj.weight`` and ``model.language_model.layers.0.mlp.up_proj.weight`` are one.
    """
    found: dict[tuple[bool, str], str] = {}
    for name in names:
        parts = name.split(".")
        kept = next((number for number, part in enumerate(parts) if part not in _WRAPPERS), len(parts) - 1)
        plain = any(part.startswith("vis") for part in parts[:kept]), ".".join(parts[kept:])
        if plain in found:
            raise _strange(f"{name!r} and {found[plain]!r} would be one weight")
        found[plain] = name
    return found


def _strange(why: str) -> ModelError:
    return ModelError(f"its weights for MLX cannot be put into PyTorch: {why}; name the original model.")


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header: dict[str, Any] = parse_json(stream.read(length), length)
    return header
