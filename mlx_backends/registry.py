"""Backends by the name a user gives a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol, cast

from benchmarks.base import Modality
from benchmarks.errors import ModelError
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.models.discovery import ModelInfo, inspect, resolve, revision
from mlx_backends.models.memory_estimate import fits
from mlx_backends.models.modalities import ALL, IMAGES
from mlx_backends.models.weights import weights_digest
from mlx_backends.pytorch import spec
from mlx_backends.remote.model_names import ENGINES as REMOTE
from mlx_backends.remote.options import RemoteOptions

_ENGINES: Mapping[str, str] = {
    "policy": "mlx_backends.policy",
    **dict.fromkeys(REMOTE, "mlx_backends.remote"),
}
"""What the name of an engine's models begins with, before a colon, and its :class:`Engine`, imported when it is asked."""

IMPORTED = "imported:"
"""What the name of a model begins with whose answers were produced elsewhere."""

_LIBRARIES = ("mlx", "transformers")  # and the engine itself


class Engine(Protocol):
    """What the module of an engine has that is called by a name of its own."""

    def describe(self, model: str) -> EngineInfo:
        """What would answer as ``model``, loading nothing. Raises SpecError, ModelError."""

    def load(self, model: str, media: MediaPath, terms: RemoteOptions) -> Backend:
        """The backend that answers as ``model``; ``media`` finds a medium's file. Raises as :meth:`describe`."""


def engine_of(model: str) -> Engine | None:
    """The engine that ``model`` names by what stands before its colon; None for a folder or a Hub id."""
    name, colon, _ = model.partition(":")
    return cast(Engine, import_module(_ENGINES[name])) if colon and name in _ENGINES else None


def describe(model: str) -> EngineInfo:
    """What would answer as ``model``, without loading it or importing MLX.

    ``model`` is ``policy:NAME``, a remote one (``openai:MODEL`` ..., see :mod:`mlx_backends.remote`), a local folder, a Hub
    id that is in the Hugging Face cache, or either of these in PyTorch (``cuda:ID``, see
    :mod:`mlx_backends.pytorch.spec`). Raises
    SpecError for an unknown policy or a remote name that says too little, and ModelError for a model that is not there or
    cannot be run.
    """
    if engine := engine_of(model):
        return engine.describe(model)
    if model.startswith(IMPORTED):
        return EngineInfo("imported", model.removeprefix(IMPORTED), device="elsewhere", needs_device=False, takes=ALL)
    if model.startswith(spec.PREFIX):
        return spec.describe(model)
    return _describe(inspect(resolve(model)))


def takes_of(model: str) -> tuple[Modality, ...]:
    """The media that ``model`` is shown as they are, without a look at its weights. Otherwise as :func:`describe`."""
    if model.startswith(spec.PREFIX):
        return IMAGES
    if model.startswith(IMPORTED) or engine_of(model):
        return describe(model).takes
    return inspect(resolve(model)).takes


def engine_name(model: str) -> str:
    """What :attr:`EngineInfo.engine` of ``model`` is, without a look at its weights. Otherwise as :func:`describe`."""
    if model.startswith(spec.PREFIX):
        return spec.ENGINE
    if model.startswith(IMPORTED) or engine_of(model):
        return describe(model).engine
    return inspect(resolve(model)).engine


def load_backend(
    model: str,
    media: MediaPath,
    *,
    force: bool = False,
    terms: RemoteOptions | None = None,
    under_way: int | None = None,
) -> Backend:
    """The backend that answers as ``model`` (see :func:`describe`), loaded; ``media`` finds a medium's file.

    ``under_way`` bounds how many requests a model of this machine takes; None leaves it to the backend.
    ``terms`` are for remote engines, which raise KeyMissingError without their key. Raises ModelError where the model
    cannot be loaded, and before loading where it does not fit in this machine's memory, unless ``force``.
    """
    if engine := engine_of(model):
        return engine.load(model, media, terms or RemoteOptions())
    if model.startswith(IMPORTED):
        raise ModelError(f"the answers of {model} were produced elsewhere; import those that are missing as well.")
    if model.startswith(spec.PREFIX):
        return spec.load(model, media, force=force, width=under_way)
    found = inspect(resolve(model))
    from mlx_backends.mlx.lm import LMBackend
    from mlx_backends.mlx.load import load, load_text, one_line, supported, supported_text
    from mlx_backends.mlx.memory_limits import MemoryLimits
    from mlx_backends.mlx.vlm import AHEAD, VLMBackend
    from mlx_backends.models.memory_estimate import device_info

    sees = found.engine == "mlx-vlm"
    (supported if sees else supported_text)(found.path)
    fit = fits(found.weights_bytes, device_info())
    if not fit.ok and not force:
        raise ModelError(
            f"{found.name} was not loaded: {fit.sentence}; "
            "choose a smaller quantisation, or add --force to try all the same."
        )
    MemoryLimits.here().set()
    info = _describe(found)
    loaded = (load if sees else load_text)(found.path)
    try:
        if sees:
            return VLMBackend(info, media, *loaded, width=under_way and max(1, under_way // AHEAD))
        return LMBackend(info, *loaded, width=under_way)
    except Exception as error:  # a processor or template unlike any other
        raise ModelError(f"{found.name} was loaded but cannot be asked: {one_line(error)}") from error


def _describe(found: ModelInfo) -> EngineInfo:
    return EngineInfo(
        engine=found.engine,
        model=found.name,
        revision=revision(found.path),
        weights=weights_digest(found.path),
        quantisation=found.quantisation,
        device=_device(),
        versions={name: _version(name) for name in sorted({*_LIBRARIES, found.engine})},
        weights_bytes=found.weights_bytes,
        takes=found.takes,
    )


def _device() -> str:
    """The device MLX computes on by default, told by what is installed."""
    if sys.platform == "darwin":
        return "metal"
    return "cuda" if any(_version(name) != "none" for name in ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13")) else "cpu"


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"


def looks_like_model(name: str) -> bool:
    """Whether ``name`` can only be meant as a model's: an engine's prefix, ORG/NAME, or a folder that is there."""
    return ":" in name or "/" in name or Path(name).is_dir()
