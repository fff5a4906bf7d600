"""The CUDA shim: vision-language models in PyTorch, through transformers, on an NVIDIA GPU, on Apple's (mps) or on a CPU.

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
from mlx_backends.mlx.load import one_line
from mlx_backends.models.discovery import ModelInfo, inspect, read_config, resolve, revision
from mlx_backends.models.memory_estimate import fits
from mlx_backends.models.weights import weights_digest

PREFIX = "cuda:"
ENGINE = "transformers"

_OPTIONS = ("bf16", "fp16", "fp32", "nf4", "cpu")


@dataclass(frozen=True, slots=True)
class TorchModelName:
    """What a name like ``cuda:ID@fp32@cpu`` asks for: the model, the type to compute in (None: as stored), the device."""

    model: str
    precision: str | None
    device: str


def split(name: str) -> tuple[str, str, str]:
    """A model's name as what stands before the folder or Hub id (nothing where it is not ``cuda:``), that, and what behind it."""
    if not name.startswith(PREFIX):
        return "", name, ""
    model = name.removeprefix(PREFIX)
    while "@" in model and model.rpartition("@")[2] in _OPTIONS:
        model = model.rpartition("@")[0]
    return PREFIX, model, name[len(PREFIX) + len(model) :]


def named(name: str) -> TorchModelName:
    """The parts of a model's name that begins with ``cuda:``."""
    _, model, options = split(name)
    said = options.split("@")[1:]
    return TorchModelName(
        model, next((word for word in said if word != "cpu"), None), "cpu" if "cpu" in said else device()
    )


def device() -> str:
    """What PyTorch would compute on here, told by the machine and what is installed, without importing it."""
    if sys.platform == "darwin":
        return "mps"
    return "cuda" if gpu() and not _version("torch").endswith("+cpu") else "cpu"


def gpu() -> bool:
    """Whether this machine has an NVIDIA GPU that is not hidden by CUDA_VISIBLE_DEVICES, told by its driver's files."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    return not hidden and (Path("/proc/driver/nvidia/version").exists() or Path("/dev/dxg").exists())


def describe(name: str) -> EngineInfo:
    """What would answer as ``name``, without importing PyTorch. Raises ModelError."""
    return _described(named(name))[0]


def load(name: str, media: MediaPath, *, force: bool = False, width: int | None = None) -> Backend:
    """The backend that answers as ``name``, loaded; ``width`` bounds how many requests it takes.

    Raises ModelError without PyTorch, for a model that transformers does not know by itself, one that cannot be loaded, and
    before loading where it does not fit, unless ``force``.
    """
    asked = named(name)
    info, found = _described(asked)
    if _version("torch") == "none":
        raise ModelError("PyTorch is not installed; `pip install 'rashomon[torch]'`.")
    import torch

    from mlx_backends.pytorch import load as weights
    from mlx_backends.pytorch.backend import TorchBackend, gpu_memory

    if asked.device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            "there is an NVIDIA GPU, but PyTorch cannot use it; install a PyTorch for its driver, or name the model with @cpu."
        )
    fit = fits(_needed(found, asked), gpu_memory(asked.device))
    if not fit.ok and not force:
        raise ModelError(f"{info.model} was not loaded: {fit.sentence}; add --force to try all the same.")
    model, processor = weights.load(found.path, asked.device, asked.precision)
    try:
        return TorchBackend(info, media, model, processor, read_config(found.path), width=width)
    except Exception as error:  # a processor or template unlike any other
        raise ModelError(f"{info.model} was loaded but cannot be asked: {one_line(error)}") from error


def _described(asked: TorchModelName) -> tuple[EngineInfo, ModelInfo]:
    found = inspect(resolve(asked.model))
    if found.engine != "mlx-vlm":
        raise ModelError(f"{found.name} is a text-only model, and cuda: asks models that see; name it without cuda:.")
    stored = found.quantisation
    computed = f"{stored} in {asked.precision}" if asked.precision and asked.precision != "nf4" else stored
    return (
        EngineInfo(
            engine=ENGINE,
            model=PREFIX + found.name,
            revision=revision(found.path),
            weights=weights_digest(found.path),
            quantisation=asked.precision if asked.precision == "nf4" else computed,
            device=asked.device,
            versions={name: _version(name) for name in ("torch", ENGINE)},
            weights_bytes=found.weights_bytes,
        ),
        found,
    )


def _needed(found: ModelInfo, asked: TorchModelName) -> int:
    """Bytes of the weights once they are loaded: those of 4 and 8 bits are computed back to 16."""
    from mlx_backends.pytorch.dequantize import quantisation

    bits = quantisation(read_config(found.path)).get("bits")
    packed = found.weights_bytes * 16 // bits if isinstance(bits, int) and 0 < bits < 16 else found.weights_bytes
    times = {"fp32": 2.0, "nf4": 0.3}.get(asked.precision or "", 1.0) if found.quantisation != "fp32" else 1.0
    return int(packed * times)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
