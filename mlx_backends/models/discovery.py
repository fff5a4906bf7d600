"""Where models lie and what they are, read from their folders without loading anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import Modality
from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.models.config_limits import check_config, check_folder
from mlx_backends.models.modalities import takes
from mlx_backends.models.weights import stored_type, weight_files

_TOKENIZERS = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tekken.json")
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_EVERY_LIBRARY_FETCHES = ["model*.safetensors", "*.json", "tokenizer.model", "*.tiktoken", "*.jinja"]
"""What a snapshot has whichever library fetched it: without saying so, one that lacks its README counts as incomplete."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model's folder at a glance; ``weights_bytes`` is the size of its weight files.

    ``quantisation`` is "4-bit g64", "mixed 4/6-bit g64", "bf16" ... ``problem`` says why the model cannot be run,
    in a sentence, and is None where it can. ``engine`` is "mlx-vlm", or "mlx-lm" for a text-only model; ``takes`` are the
    media it is shown as they are.
    """

    name: str
    path: Path
    weights_bytes: int
    quantisation: str | None
    architecture: str | None
    problem: str | None = None
    engine: str = "mlx-vlm"
    takes: tuple[Modality, ...] = ()


def hub_cache() -> Path:
    """The Hugging Face cache, by the variables that move it; looked up at every call, without importing the library."""
    for variable, below in (("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser() / below
    return Path.home() / ".cache" / "huggingface" / "hub"


def resolve(model: str) -> Path:
    """The folder of ``model``, which is a local folder or a Hub id that is in the Hugging Face cache.

    Nothing is ever downloaded. Raises ModelError where there is no such folder and the cache does not hold it.
    """
    try:
        folder = Path(model).expanduser()
        return Path(os.path.abspath(folder)) if folder.is_dir() else _snapshot(model)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{model!r} is neither a folder nor a Hub id; name one like org/name or a folder.") from error


def _snapshot(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                model, cache_dir=hub_cache(), local_files_only=True, allow_patterns=_EVERY_LIBRARY_FETCHES
            )
        )
    except LocalEntryNotFoundError as error:
        raise ModelError(
            f"there is no folder {model!r}, nor does the Hugging Face cache hold it; `rashomon models get {model}` fetches it."
        ) from error


def model_name(path: Path) -> str:
    """What a model's folder is called: its Hub id where it lies in a Hugging Face cache, else the folder's name."""
    return _id(path.parent.parent) if _is_snapshot(path) else path.name


def revision(path: Path) -> str | None:
    """The commit of a snapshot in a Hugging Face cache; None for any other folder."""
    return path.name if _is_snapshot(path) else None


def _is_snapshot(path: Path) -> bool:
    return path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--")


def _id(repository: Path) -> str:
    return repository.name.removeprefix("models--").replace("--", "/")


def read_config(path: Path) -> dict[str, Any]:
    """``config.json`` of a model's folder. Raises ModelError where it is missing, not JSON, or asks to run code."""
    try:
        config = read_json_file(path / "config.json")
    except FileNotFoundError as error:
        raise ModelError(f"{path} holds no config.json, so it is no model; name the folder that does.") from error
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{path}/config.json cannot be read as JSON; fetch the model again.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path}/config.json is not a JSON object; fetch the model again.")
    if config.get("model_file"):
        raise ModelError(f"{path}/config.json asks to run code of its own (model_file), and Rashomon runs none.")
    check_config(config, path / "config.json")
    return config


def inspect(path: Path) -> ModelInfo:
    """What the model in folder ``path`` is. Raises ModelError where the folder cannot be run, saying why."""
    check_folder(path)
    config = read_config(path)
    files = weight_files(path)
    taken = takes(config)
    if not any(file.is_file() for pattern in _TOKENIZERS for file in path.glob(pattern)):
        raise ModelError(
            f"{path} holds no tokenizer, and one made up in its place would be wrong; fetch the whole model."
        )
    if taken and not any((path / name).is_file() for name in _PROCESSORS):
        raise ModelError(
            f"{path} does not say how images are prepared ({' or '.join(_PROCESSORS)}), and a default would change "
            "its answers; fetch the whole model."
        )
    return ModelInfo(
        name=model_name(path),
        path=path,
        weights_bytes=sum(file.stat().st_size for file in files),
        quantisation=_quantisation(config, files),
        architecture=_architecture(config),
        engine="mlx-vlm" if taken else "mlx-lm",
        takes=taken,
    )


def cached_models() -> list[ModelInfo]:
    """Every model of the Hugging Face cache, by name. One that cannot be run is listed with its ``problem``."""
    return [_cached(folder) for folder in sorted(hub_cache().glob("models--*"))]


def _cached(folder: Path) -> ModelInfo:
    name = _id(folder)
    try:
        return inspect(resolve(name))
    except ModelError as error:
        return ModelInfo(name, folder, 0, None, None, problem=str(error))


def _architecture(config: Mapping[str, Any]) -> str | None:
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else config.get("model_type")
    return first if isinstance(first, str) else None


def _quantisation(config: Mapping[str, Any], files: Sequence[Path]) -> str | None:
    found = config.get("quantization") or config.get("quantization_config")
    if not isinstance(found, dict):
        return stored_type(files)
    if not isinstance(found.get("bits"), int):
        method = found.get("quant_method")
        return method if isinstance(method, str) else stored_type(files)
    layers = [layer.get("bits") for layer in found.values() if isinstance(layer, dict)]
    bits = sorted({found["bits"], *(own for own in layers if isinstance(own, int))})
    group = f" g{found['group_size']}" if isinstance(found.get("group_size"), int) else ""
    mode = found.get("mode", "affine")
    kind = f" {mode}" if isinstance(mode, str) and mode != "affine" else ""
    return f"{'mixed ' if len(bits) > 1 else ''}{'/'.join(map(str, bits))}-bit{group}{kind}"
