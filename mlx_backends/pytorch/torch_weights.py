"""A model's weights as PyTorch takes them, also from folders made for MLX: dequantised, renamed, in PyTorch's layout.

Thus one set of weights can run in both frameworks, which separates the gap between frameworks from that of quantisation.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import parse_json
from mlx_backends.models.plain_weight_names import by_plain_name
from mlx_backends.models.torch_layer_names import is_offset_norm, renamed_parts
from mlx_backends.models.weight_files import weight_files

_TYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_ROWS = 4096  # of a matrix that are unpacked at a time

_EXPERTS = {"glm4v_moe": "switch_mlp.", "llama4": "experts.", "qwen3_5_moe": "switch_mlp."}
"""The name in MLX of the experts whose weights PyTorch joins, by the model's type."""

_TRANSPOSED_EXPERTS = ("llama4",)
"""Types whose experts PyTorch keeps as (experts, inputs, outputs), and MLX as (experts, outputs, inputs)."""

_QUERIES_KEYS_VALUES = "self_attn.qkv."
"""The name in MLX of three layers that PaddleOCR-VL's encoder keeps apart in PyTorch."""


def is_mlx_format(path: Path, config: Mapping[str, Any]) -> bool:
    """Return whether the model in folder ``path`` was made for MLX, by its file's metadata or its quantisation."""
    if mlx_quantisation(config):
        return True
    return any((_header(file).get("__metadata__") or {}).get("format") == "mlx" for file in weight_files(path))


def mlx_quantisation(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return MLX's quantisation settings from a model's configuration; empty where MLX did not quantise it."""
    settings = config.get("quantization") or config.get("quantization_config") or {}
    return (
        settings
        if isinstance(settings, Mapping) and "group_size" in settings and "quant_method" not in settings
        else {}
    )


def compute_dtype(path: Path) -> str:
    """Return the floating-point type of the weights, or of their scales: "bfloat16", "float16" or "float32"."""
    sizes: Counter[str] = Counter()
    for file in weight_files(path):
        for name, tensor in _header(file).items():
            if name != "__metadata__" and tensor.get("dtype") in _TYPES:
                first, last = tensor["data_offsets"]
                sizes[_TYPES[tensor["dtype"]]] += last - first
    return sizes.most_common(1)[0][0] if sizes else "float32"


def convert_weights(path: Path, config: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the weights of the folder ``path``, made for MLX, as tensors under the names that the PyTorch model knows.

    ``shapes`` are those of the PyTorch model's tensors, by name. Quantised weights are dequantised (affine, by groups: scale
    times number plus bias, in the type of the scales); the channels of convolutions, which MLX keeps last, move to their place.
    Raises ModelError for any other quantisation and for names or shapes that do not match.
    """
    stored_tensors = _dequantised(_stored(path), mlx_quantisation(config))
    kind = config.get("model_type")
    if kind in _EXPERTS:
        stored_tensors = _with_joined_experts(stored_tensors, _EXPERTS[kind], is_transposed=kind in _TRANSPOSED_EXPERTS)
    if kind == "paddleocr_vl":
        stored_tensors = _with_split_attention(stored_tensors)
    stored_tensors = {renamed_parts(kind, name): value for name, value in stored_tensors.items()}
    targets = by_plain_name(shapes)
    weights: dict[str, Any] = {}
    for plain_name, name in by_plain_name(stored_tensors).items():
        if plain_name not in targets:
            raise _conversion_error(f"the PyTorch model has no weight like {name!r}")
        value, shape = stored_tensors[name], tuple(shapes[targets[plain_name]])
        if value.ndim > 2 and ".experts." not in name and tuple(value.movedim(-1, 1).shape) == shape:
            value = value.movedim(-1, 1).contiguous()
        if tuple(value.shape) != shape:
            raise _conversion_error(f"{name!r} has the shape {tuple(value.shape)}, and PyTorch wants {shape}")
        weights[targets[plain_name]] = value - 1 if is_offset_norm(kind, plain_name) else value
    return weights


def dequantise(weight: Any, scales: Any, biases: Any, *, bits: int) -> Any:
    """Return weights in MLX's affine quantisation as floats of the shape (rows, columns), in the type of ``scales``.

    ``weight`` holds numbers of ``bits`` bits one after the other, the first in the lowest bits, in uint32 of the shape
    (rows, columns x bits / 32); ``scales`` and ``biases`` are of the shape (rows, groups).
    """
    import torch

    *outer, packed = weight.shape
    columns = packed * 32 // bits
    values = torch.empty((weight.numel() // packed, columns), dtype=scales.dtype)
    groups = scales.shape[-1]
    flat = weight.reshape(-1, packed), scales.reshape(-1, groups, 1), biases.reshape(-1, groups, 1)
    for start in range(0, len(values), _ROWS):
        packed_rows, scale, bias = (part[start : start + _ROWS] for part in flat)
        integers = _unpacked(packed_rows, bits).to(scales.dtype).reshape(len(packed_rows), groups, columns // groups)
        values[start : start + _ROWS] = (integers * scale + bias).reshape(len(packed_rows), columns)
    return values.reshape(*outer, columns)


def _unpacked(weight: Any, bits: int) -> Any:
    """Return numbers of ``bits`` bits as a uint8 tensor of the shape (rows, columns)."""
    import numpy as np
    import torch

    packed = np.ascontiguousarray(weight.numpy()).astype("<u4", copy=False).view(np.uint8)
    if bits == 8:
        return torch.from_numpy(packed.copy())
    if bits == 4:
        return torch.from_numpy(np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1))
    stream = np.unpackbits(packed, axis=-1, bitorder="little").reshape(len(packed), -1, bits)
    return torch.from_numpy(stream @ (1 << np.arange(bits, dtype=np.uint8)))


def _with_joined_experts(stored: Mapping[str, Any], part: str, *, is_transposed: bool) -> dict[str, Any]:
    """Return the weights with each layer's experts, ``part`` of a name, as PyTorch names and joins them."""
    import torch

    weights: dict[str, Any] = {}
    for name, value in stored.items():
        layer, is_expert, matrix = name.partition(part)
        if not is_expert or matrix.startswith("up_proj"):
            weights |= {} if is_expert else {name: value}
            continue
        joined, target = value, "down_proj"
        if matrix.startswith("gate_proj"):
            joined, target = torch.cat([value, stored[f"{layer}{part}up_proj.weight"]], 1), "gate_up_proj"
        weights[f"{layer}experts.{target}"] = joined.swapaxes(1, 2).contiguous() if is_transposed else joined
    return weights


def _with_split_attention(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights with queries, keys and values of the image encoder apart."""
    weights: dict[str, Any] = {}
    for name, value in stored.items():
        layer, is_joined, ending = name.partition(_QUERIES_KEYS_VALUES)
        if is_joined:
            for part, matrix in zip("qkv", value.chunk(3), strict=True):
                weights[f"{layer}self_attn.{part}_proj.{ending}"] = matrix.contiguous()
        else:
            weights[name] = value
    return weights


def _dequantised(stored: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    weights = {}
    for name, value in stored.items():
        base, _, kind = name.rpartition(".")
        if kind in ("scales", "biases") and f"{base}.scales" in stored:
            continue
        if kind == "weight" and f"{base}.scales" in stored:
            value = _layer(base, stored, settings)
        weights[name] = value
    return weights


def _layer(base: str, stored: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
    own_settings = settings.get(base)
    merged_settings = {**settings, **own_settings} if isinstance(own_settings, Mapping) else settings
    bits, size, mode = (
        merged_settings.get("bits"),
        merged_settings.get("group_size"),
        merged_settings.get("mode", "affine"),
    )
    weight, scales = stored[f"{base}.weight"], stored[f"{base}.scales"]
    if mode != "affine" or f"{base}.biases" not in stored:
        raise ModelError(
            f"its weights are quantised as {mode}, and only affine ones can be dequantised for PyTorch; "
            "name the model in bf16, or its affine 4-bit or 8-bit version."
        )
    if (
        bits not in (2, 3, 4, 5, 6, 8)
        or not isinstance(size, int)
        or weight.shape[-1] * 32 != scales.shape[-1] * size * bits
    ):
        raise _conversion_error(f"{base!r} is not quantised as config.json says ({bits} bits in groups of {size})")
    return dequantise(weight, scales, stored[f"{base}.biases"], bits=bits)


def _stored(path: Path) -> dict[str, Any]:
    from safetensors import safe_open

    weights = {}
    for file in weight_files(path):
        with safe_open(file, framework="pt") as tensors:
            weights.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118 - it is no mapping
    return weights


def _conversion_error(reason: str) -> ModelError:
    return ModelError(f"its weights for MLX cannot be loaded into PyTorch: {reason}; name the original model.")


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header: dict[str, Any] = parse_json(stream.read(length), length)
    return header
