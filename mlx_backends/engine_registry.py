"""Registry of engines: each by the prefix of its models' names, and MLX for folders and Hub ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.errors import SpecError
from benchmarks.plugins.find_plugins import Registry
from benchmarks.untrusted.typed_paths import folder_exists
from benchmarks.vocabulary import Modality
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.mlx.mlx_engine import MLXEngine
from mlx_backends.options import LoadOptions, RemoteOptions
from mlx_backends.remote.remote_names_and_media import ENGINES as REMOTE

GROUP = "rashomon.engines"
"""The group of entry points: the prefix of an engine's model names to a class that derives from :class:`Engine`."""

BUILT_IN: Mapping[str, str] = {
    "policy": "mlx_backends.policy_engine:PolicyEngine",
    "ocr": "mlx_backends.ocr_engine:OCREngine",
    "imported": "mlx_backends.imported_engine:ImportedEngine",
    "baseline": "mlx_backends.baseline_engine:BaselineEngine",
    "person": "mlx_backends.person_engine:PersonEngine",
    "cuda": "mlx_backends.pytorch.torch_engine:TorchEngine",
    **dict.fromkeys(REMOTE, "mlx_backends.remote.remote_engine:RemoteEngine"),
}


def _accept(name: str, engine: Any) -> Engine:
    """Return a plugin's engine. Raises SpecError if it is none."""
    if not isinstance(engine, Engine):
        raise SpecError(f"{type(engine).__name__} does not derive from mlx_backends.base.Engine")
    return engine


REGISTRY: Registry[Engine] = Registry(GROUP, BUILT_IN, _accept)


def get_engine(model: str) -> Engine:
    """Return the engine that ``model`` names by its prefix (``policy:``, ``openai:`` ...); MLX for a folder or a Hub id."""
    engine = _prefixed(model)
    return MLXEngine() if engine is None else engine


def has_prefix(model: str) -> bool:
    """Return whether ``model`` names its engine by a prefix."""
    return _prefixed(model) is not None


def _prefixed(model: str) -> Engine | None:
    prefix, colon, _ = model.partition(":")
    return REGISTRY.get(prefix) if colon else None


def describe(model: str) -> EngineInfo:
    """Return what answers as ``model``, without loading it; see :meth:`mlx_backends.base.Engine.describe`."""
    return get_engine(model).describe(model)


def modalities(model: str) -> tuple[Modality, ...]:
    """Return the media that ``model`` takes as they are, without reading its weights. Raises as :func:`describe`."""
    return get_engine(model).modalities(model)


def refusal(model: str) -> str:
    """Return why ``model`` answers no requests, and what to do; see :meth:`mlx_backends.base.Engine.refusal`."""
    return get_engine(model).refusal(model)


def engine_name(model: str) -> str:
    """Return :attr:`EngineInfo.engine` of ``model``, without reading its weights. Raises as :func:`describe`."""
    return get_engine(model).engine_name(model)


def training_records(model: str) -> Sequence[Mapping[str, Any]]:
    """Return what the trainings of ``model`` recorded; see :meth:`mlx_backends.base.Engine.training_records`."""
    return get_engine(model).training_records(model)


def import_libraries(model: str) -> None:
    """Import what :func:`load_backend` will need for ``model``. Raises as :func:`describe`, or what an import raises."""
    get_engine(model).import_libraries(model)


def required_memory(model: str) -> int:
    """Return the bytes of memory that ``model`` needs; see :meth:`mlx_backends.base.Engine.required_memory`."""
    return get_engine(model).required_memory(model)


def available_memory(model: str) -> int:
    """Return the bytes of this machine's memory for ``model``; see :meth:`mlx_backends.base.Engine.available_memory`."""
    return get_engine(model).available_memory(model)


def load_backend(
    model: str,
    media: MediaPath,
    *,
    force: bool = False,
    remote: RemoteOptions | None = None,
    max_in_flight: int | None = None,
    kv_bits: int | None = None,
) -> Backend:
    """Return the backend that answers as ``model``, loaded; ``media`` finds the file of a medium.

    For the options see :class:`mlx_backends.options.LoadOptions`. Raises as :meth:`mlx_backends.base.Engine.load`.
    """
    check_kv_bits(model, kv_bits)
    options = LoadOptions(force, max_in_flight, remote or RemoteOptions(), kv_bits)
    return get_engine(model).load(model, media, options)


def check_kv_bits(model: str, bits: int | None) -> None:
    """Raise ModelError if ``model`` cannot answer with a key-value cache of ``bits`` bits, without loading it."""
    if bits is not None:
        get_engine(model).check_kv_bits(model, bits)


def looks_like_model(name: str) -> bool:
    """Return whether ``name`` can only be a model's: an engine's prefix, ORG/NAME, or an existing folder."""
    return ":" in name or "/" in name or folder_exists(name)
