"""Names of PyTorch models: vision-language models through transformers, on an NVIDIA GPU, on Apple's (mps) or on a CPU.

A model is named ``cuda:ID``. Nothing here imports MLX or mlx-vlm, which changes transformers for the whole process.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.errors import ModelError
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.error_text import one_line
from mlx_backends.models.adapter_folder import (
    Adapter,
    check_base,
    check_outputs,
    fused_digests,
    read_adapter,
    split_adapter,
    with_adapter_name,
)
from mlx_backends.models.memory_and_cache_sizes import memory_fit, required_memory
from mlx_backends.models.model_discovery import ModelInfo, inspect, read_config, resolve, revision
from mlx_backends.models.weight_files import weight_files, weights_digest

PREFIX = "cuda:"
ENGINE = "transformers"

_OPTIONS = ("bf16", "fp16", "fp32", "nf4", "cpu")


@dataclass(frozen=True, slots=True)
class TorchModelName:
    """The parts of a name like ``cuda:ID@fp32@cpu``: the model, the type to compute in (None: as stored), the device."""

    model: str
    precision: str | None
    device: str


def split_name(name: str) -> tuple[str, str, str]:
    """Return a model's name as three parts: the prefix (empty unless ``cuda:``), the folder or Hub id, and the options."""
    if not name.startswith(PREFIX):
        return "", name, ""
    model = name.removeprefix(PREFIX)
    while "@" in model and model.rpartition("@")[2] in _OPTIONS:
        model = model.rpartition("@")[0]
    return PREFIX, model, name[len(PREFIX) + len(model) :]


def wants_gpu(name: str) -> bool:
    """Return whether ``name`` is a PyTorch model that is to compute on a GPU where there is one."""
    return name.startswith(PREFIX) and "cpu" not in split_name(name)[2].split("@")


def parse_name(name: str) -> TorchModelName:
    """Return the parts of a model's name that begins with ``cuda:``."""
    _, model, options = split_name(name)
    words = options.split("@")[1:]
    return TorchModelName(
        model, next((word for word in words if word != "cpu"), None), "cpu" if "cpu" in words else default_device()
    )


def default_device() -> str:
    """Return the device PyTorch would compute on here, from the machine and what is installed, without importing it."""
    if sys.platform == "darwin":
        return "mps"
    return "cuda" if has_gpu() and not _version("torch").endswith("+cpu") else "cpu"


def has_gpu() -> bool:
    """Return whether this machine has an NVIDIA GPU that CUDA_VISIBLE_DEVICES does not hide, from its driver's files."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    return not hidden and (Path("/proc/driver/nvidia/version").exists() or Path("/dev/dxg").exists())


def describe(name: str) -> EngineInfo:
    """Return the engine that would answer as ``name``, without importing PyTorch. Raises ModelError."""
    return _described(parse_name(name))[0]


def required(name: str) -> int:
    """Return the bytes of memory that ``name`` needs to answer. Raises ModelError if it is not there."""
    parsed = parse_name(name)
    return required_memory(_needed(inspect(resolve(parsed.model)), parsed))


def available(name: str) -> int:
    """Return the bytes of the memory of the device that ``name`` would compute on. Raises ModelError without PyTorch."""
    if _version("torch") == "none":
        raise ModelError("PyTorch is not installed; `pip install 'rashomon[torch]'`.")
    from mlx_backends.pytorch.torch_backend import gpu_memory

    return memory_fit(0, gpu_memory(parse_name(name).device)).available


def load(name: str, media: MediaPath, *, force: bool = False, width: int | None = None) -> Backend:
    """Return the backend that answers as ``name``, loaded; ``width`` bounds how many requests it takes.

    Raises ModelError without PyTorch, for a model that transformers does not know by itself, one that cannot be loaded, and
    before loading where it does not fit, unless ``force``.
    """
    parsed = parse_name(name)
    info, model_info, adapter = _described(parsed)
    if _version("torch") == "none":
        raise ModelError("PyTorch is not installed; `pip install 'rashomon[torch]'`.")
    import torch

    from mlx_backends.pytorch import torch_load as weights
    from mlx_backends.pytorch.torch_adapter import apply_adapter
    from mlx_backends.pytorch.torch_backend import TorchBackend, gpu_memory

    if parsed.device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            "PyTorch cannot use this machine's NVIDIA GPU; install a PyTorch for its driver, or name the model with @cpu."
        )
    fit = memory_fit(_needed(model_info, parsed), gpu_memory(parsed.device))
    if not fit.ok and not force:
        raise ModelError(f"{info.model} was not loaded: {fit.sentence}; add --force to try all the same.")
    model, processor = weights.load(model_info.path, parsed.device, parsed.precision)
    if adapter is not None:
        apply_adapter(model, adapter, model_info.name)
    try:
        return TorchBackend(info, media, model, processor, read_config(model_info.path), width=width)
    except Exception as error:  # an unusual processor or template can raise anything
        raise ModelError(f"{info.model} was loaded but cannot answer requests: {one_line(error)}") from error


def _described(parsed: TorchModelName) -> tuple[EngineInfo, ModelInfo, Adapter | None]:
    model_info = inspect(resolve(parsed.model))
    if model_info.engine != "mlx-vlm":
        raise ModelError(
            f"{model_info.name} is a text-only model, and cuda: takes vision-language models; name it without cuda:."
        )
    _, folder = split_adapter(parsed.model)
    adapter = None if folder is None else read_adapter(folder)
    weights = weights_digest(model_info.path)
    if adapter is not None:
        check_base(adapter, model_info.name, weights)
        check_outputs(adapter, model_info.name, weight_files(model_info.path))
    fused, base_weights = (None, None) if adapter else fused_digests(model_info.path)
    stored_quantisation = model_info.quantisation
    computed = (
        f"{stored_quantisation} in {parsed.precision}"
        if parsed.precision and parsed.precision != "nf4"
        else stored_quantisation
    )
    return (
        EngineInfo(
            engine=ENGINE,
            model=PREFIX + with_adapter_name(model_info.name, adapter),
            revision=revision(model_info.path),
            weights=weights,
            adapter=adapter.digest if adapter else fused,
            base_weights=base_weights,
            quantisation=parsed.precision if parsed.precision == "nf4" else computed,
            device=parsed.device,
            versions={name: _version(name) for name in ("torch", ENGINE)},
            weights_bytes=model_info.weights_bytes,
        ),
        model_info,
        adapter,
    )


def _needed(model_info: ModelInfo, parsed: TorchModelName) -> int:
    """Return the bytes of the weights once loaded: those of 4 and 8 bits are dequantised to 16."""
    from mlx_backends.pytorch.torch_weights import mlx_quantisation

    bits = mlx_quantisation(read_config(model_info.path)).get("bits")
    packed = (
        model_info.weights_bytes * 16 // bits if isinstance(bits, int) and 0 < bits < 16 else model_info.weights_bytes
    )
    factor = {"fp32": 2.0, "nf4": 0.3}.get(parsed.precision or "", 1.0) if model_info.quantisation != "fp32" else 1.0
    return int(packed * factor)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
