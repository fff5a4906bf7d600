"""Discovery of models on this machine, and their properties, read from their folders without loading anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.fetch.hub_cache import hub_cache, repository_folder
from benchmarks.fetch.hub_repository import is_id
from benchmarks.untrusted.finder_files import folder_entries, is_finder_file
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.vocabulary import Modality
from mlx_backends.models.adapter_folder import split_adapter
from mlx_backends.models.broken_file_advice import fetch_again
from mlx_backends.models.config_limits import check_config, check_folder
from mlx_backends.models.model_folder_check import check_weights
from mlx_backends.models.model_modalities import supported_modalities
from mlx_backends.models.model_types import folder_problem
from mlx_backends.models.weight_files import IncompleteModelError, incomplete, stored_dtype, weight_files

_GGUF = ".gguf"
_TOKENIZERS = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken", "tekken.json")
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_SNAPSHOT_FILES = ["model*.safetensors", "*.json", "tokenizer.model", "*.tiktoken", "*.jinja"]
"""Files of a snapshot that every library fetches; without this list, one that lacks its README counts as incomplete."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Properties of a model's folder; ``weights_bytes`` is the size of its weight files.

    ``quantisation`` is "4-bit g64", "mixed 4/6-bit g64", "bf16" ... ``problem`` is a sentence on why the model cannot be run,
    None where it can. ``engine`` is "mlx-vlm", or "mlx-lm" for a text-only model; ``supported_modalities`` are the
    modalities it supports.
    """

    name: str
    path: Path
    weights_bytes: int
    quantisation: str | None
    architecture: str | None
    problem: str | None = None
    engine: str = "mlx-vlm"
    takes: tuple[Modality, ...] = ()


def resolve(model: str) -> Path:
    """Return the folder of ``model``, which is a local folder or a Hub id that is in the Hugging Face cache.

    The folder of ``MODEL+ADAPTER`` is that of the model alone.
    Nothing is ever downloaded. Raises ModelError where there is no such folder and the cache does not hold it.
    """
    model, _ = split_adapter(model)
    try:
        folder = Path(model).expanduser()
        if folder.suffix.lower() == _GGUF and not folder.is_dir():
            raise _gguf_refusal(model)
        if folder.is_file():
            raise ModelError(f"{model} is a file; name the model's folder.")
        return Path(os.path.abspath(folder)) if folder.is_dir() else _snapshot(model)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"{model!r} is neither a folder nor a Hub id; name one like org/name or a folder.") from error


def _snapshot(model: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(model, cache_dir=hub_cache(), local_files_only=True, allow_patterns=_SNAPSHOT_FILES)
        )
    except LocalEntryNotFoundError as error:
        if repository_folder(model).is_dir():
            raise _partly_fetched(model) from error
        cached = next((name for name in map(_id, _repositories()) if name.casefold() == model.casefold()), None)
        advice = f"`rashomon models get {model}` fetches it." if cached is None else f"did you mean {cached!r}?"
        raise ModelError(f"{model!r} is neither a folder nor in the Hugging Face cache; {advice}") from error


def can_fetch(model: str) -> bool:
    """Return whether ``model`` is a Hub id of which the cache holds nothing, or only a part."""
    if not is_id(model) or Path(model).is_dir():
        return False
    try:
        inspect(resolve(model))
    except IncompleteModelError:
        return True
    except ModelError:
        return not repository_folder(model).is_dir()
    return False


def _partly_fetched(model: str, problem: str = "has no file in use") -> IncompleteModelError:
    return IncompleteModelError(
        f"{model} is only partly fetched: its folder in the Hugging Face cache {problem}; `rashomon models get {model}` fetches "
        "the rest.",
        problem,
    )


def _gguf_refusal(name: object) -> ModelError:
    return ModelError(
        f"{name} is a model in GGUF, which Rashomon does not read; fetch its version in safetensors (`rashomon models` lists "
        "some), or serve the file with llama.cpp and name it endpoint:llamacpp/MODEL."
    )


def model_name(path: Path) -> str:
    """Return the name of a model's folder: its Hub id where it lies in a Hugging Face cache, else the folder's name."""
    return _id(path.parent.parent) if _is_snapshot(path) else path.name


def revision(path: Path) -> str | None:
    """Return the commit of a snapshot in a Hugging Face cache; None for any other folder."""
    return path.name if _is_snapshot(path) else None


def _is_snapshot(path: Path) -> bool:
    return path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--")


def _id(repository: Path) -> str:
    return repository.name.removeprefix("models--").replace("--", "/")


def read_config(path: Path) -> dict[str, Any]:
    """Return ``config.json`` of a model's folder.

    Raises ModelError where it is missing, not JSON, or asks to run code.
    """
    try:
        config = read_json_file(path / "config.json")
    except FileNotFoundError as error:
        raise incomplete(path, "holds no config.json, so it is not a model", "name a folder that holds one") from error
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{path}/config.json cannot be read as JSON; {fetch_again(path / 'config.json')}.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path}/config.json is not a JSON object; {fetch_again(path / 'config.json')}.")
    if config.get("model_file"):
        raise ModelError(
            f"{path}/config.json asks to run its own code (model_file), which Rashomon never does; choose another model."
        )
    check_config(config, path / "config.json")
    return config


def inspect(path: Path) -> ModelInfo:
    """Return the properties of the model in folder ``path``.

    Raises ModelError where the model cannot be run, IncompleteModelError where it is not whole.
    """
    try:
        return _inspect(path)
    except IncompleteModelError as error:
        if _is_snapshot(path):
            raise _partly_fetched(model_name(path), error.problem) from error
        raise


def _inspect(path: Path) -> ModelInfo:
    check_folder(path)
    suffixes = {file.suffix.lower() for file in folder_entries(path)}
    if _GGUF in suffixes and ".safetensors" not in suffixes:
        raise _gguf_refusal(model_name(path) if _is_snapshot(path) else path)
    config = read_config(path)
    files = weight_files(path)
    modalities = supported_modalities(config)
    check_weights(path, text_only=not modalities)
    if not any(
        file.is_file() and not is_finder_file(file.name) for pattern in _TOKENIZERS for file in path.glob(pattern)
    ):
        raise incomplete(path, f"holds no tokenizer ({', '.join(_TOKENIZERS[:2])} ...)")
    if modalities and not any((path / name).is_file() for name in _PROCESSORS):
        names = " or ".join(_PROCESSORS)
        raise incomplete(
            path, f"lacks the settings of its image processor ({names}), without which its answers would change"
        )
    return ModelInfo(
        name=model_name(path),
        path=path,
        weights_bytes=sum(file.stat().st_size for file in files),
        quantisation=_quantisation(config, files),
        architecture=_architecture(config),
        engine="mlx-vlm" if modalities else "mlx-lm",
        takes=modalities,
    )


def cached_models() -> list[ModelInfo]:
    """Return every model of the Hugging Face cache, by name. One that cannot be run is listed with its ``problem``."""
    return [_cached(folder) for folder in _repositories()]


def _repositories() -> list[Path]:
    return sorted(hub_cache().glob("models--*"))


def _cached(folder: Path) -> ModelInfo:
    name = _id(folder)
    try:
        info = inspect(resolve(name))
    except ModelError as error:
        return ModelInfo(name, folder, 0, None, None, problem=str(error))
    config = read_config(info.path)
    problem = folder_problem(info.path, config, is_vision_language=info.engine == "mlx-vlm")
    return replace(info, problem=problem and f"{name} {problem}")


def _architecture(config: Mapping[str, Any]) -> str | None:
    names = config.get("architectures")
    first = names[0] if isinstance(names, list) and names else config.get("model_type")
    return first if isinstance(first, str) else None


def _quantisation(config: Mapping[str, Any], files: Sequence[Path]) -> str | None:
    settings = config.get("quantization") or config.get("quantization_config")
    if not isinstance(settings, dict):
        return stored_dtype(files)
    if not isinstance(settings.get("bits"), int):
        method = settings.get("quant_method")
        return method if isinstance(method, str) else stored_dtype(files)
    layers = [layer.get("bits") for layer in settings.values() if isinstance(layer, dict)]
    bits = sorted({settings["bits"], *(layer_bits for layer_bits in layers if isinstance(layer_bits, int))})
    group = f" g{settings['group_size']}" if isinstance(settings.get("group_size"), int) else ""
    mode = settings.get("mode", "affine")
    kind = f" {mode}" if isinstance(mode, str) and mode != "affine" else ""
    return f"{'mixed ' if len(bits) > 1 else ''}{'/'.join(map(str, bits))}-bit{group}{kind}"
