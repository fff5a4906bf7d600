"""Backends by the name a user gives a model."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from benchmarks.errors import ModelError
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.memory import fits
from mlx_backends.models import ModelInfo, inspect, resolve, revision
from mlx_backends.policy import PREFIX, Policy
from mlx_backends.weights import weights_digest

_LIBRARIES = ("mlx", "mlx-vlm", "transformers")


def describe(model: str) -> EngineInfo:
    """What would answer as ``model``, without loading it or importing MLX.

    ``model`` is ``policy:NAME``, a local folder, or a Hub id that is in the Hugging Face cache. Raises SpecError for
    an unknown policy and ModelError for a model that is not there or cannot be run.
    """
    if model.startswith(PREFIX):
        return Policy(model).info
    return _describe(inspect(resolve(model)))


def load_backend(model: str, media: MediaPath, *, force: bool = False) -> Backend:
    """The backend that answers as ``model`` (see :func:`describe`), loaded; ``media`` finds a medium's file.

    Raises ModelError where the model cannot be loaded, and before loading where it does not fit in this machine's
    memory, unless ``force``.
    """
    if model.startswith(PREFIX):
        return Policy(model)
    found = inspect(resolve(model))
    from mlx_backends.loading import load, one_line, supported
    from mlx_backends.memory import device_info
    from mlx_backends.vlm import VLM

    supported(found.path)
    fit = fits(found.weights_bytes, device_info())
    if not fit.ok and not force:
        raise ModelError(
            f"{found.name} was not loaded: {fit.sentence}; "
            "choose a smaller quantisation, or add --force to try all the same."
        )
    info = _describe(found)
    loaded = load(found.path)
    try:
        return VLM(info, media, *loaded)
    except Exception as error:  # a processor or template unlike any that mlx-vlm's others are
        raise ModelError(f"{found.name} was loaded but cannot be asked: {one_line(error)}") from error


def _describe(found: ModelInfo) -> EngineInfo:
    return EngineInfo(
        engine="mlx-vlm",
        model=found.name,
        revision=revision(found.path),
        weights=weights_digest(found.path),
        quantisation=found.quantisation,
        device=_device(),
        versions={name: _version(name) for name in _LIBRARIES},
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
