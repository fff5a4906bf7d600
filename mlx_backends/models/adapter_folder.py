"""Adapters: LoRA and DoRA weights for a model, read from a folder as mlx-vlm's trainer writes it, without loading anything.

A model with an adapter is named ``MODEL+FOLDER``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.untrusted.typed_paths import folder_exists, typed_path
from mlx_backends.models.plain_weight_names import by_plain_name
from mlx_backends.models.unquantised_names import unquantised_name
from mlx_backends.models.weight_files import PICKLES, files_digest, tensor_shapes

WEIGHTS = "adapters.safetensors"
CONFIG = "adapter_config.json"
TRAINING = "training.json"
FUSED = "fused.json"
"""A file of a model's folder that says which adapter was fused into it."""

PEFT_WEIGHTS = "adapter_model.safetensors"

SEPARATOR = "+"
MAX_RANK = 4096

_DIGEST = re.compile(r"[0-9a-f]{128}")
_PARTS = {"lora_a": "A", "lora_b": "B", "A": "A", "B": "B"}
_GENERIC = re.compile(r"(?:best|last|final|weights|checkpoint.*|step.*|\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's folder.

    Attributes:
        path: The folder.
        digest: The sha256 over the files that decide answers, :data:`WEIGHTS` and :data:`CONFIG`.
        config: The contents of :data:`CONFIG`, checked.
        shapes: The shapes of the tensors, by name.
        weights_bytes: The size of :data:`WEIGHTS`.
        base: The model it was trained on as (name, weights digest), if its training recorded that.
    """

    path: Path
    digest: str
    config: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]] = field(repr=False)
    weights_bytes: int
    base: tuple[str, str | None] | None = None

    @property
    def name(self) -> str:
        return adapter_name(str(self.path))

    @property
    def weights(self) -> Path:
        return self.path / WEIGHTS

    @property
    def rank(self) -> int:
        return int(_parameters(self.config)["rank"])

    @property
    def scale(self) -> float:
        """Return the factor of the low-rank product: alpha divided by the rank."""
        parameters = _parameters(self.config)
        return float(parameters["scale"]) if "scale" in parameters else float(parameters.get("alpha", 0.1)) / self.rank

    @property
    def dropout(self) -> float:
        """Return the share of a layer's inputs that training dropped."""
        return float(_parameters(self.config).get("dropout", 0.0))

    @property
    def kind(self) -> str:
        """Return the kind of layers, "lora" or "dora"."""
        return str(self.config.get("fine_tune_type", "lora"))

    @property
    def is_legacy(self) -> bool:
        """Return whether an early version of mlx-vlm wrote it."""
        return "lora_parameters" not in self.config

    @property
    def base_quantisation(self) -> str | None:
        """Return the quantisation of the base during training, such as "4-bit g64"; None where it was not quantised."""
        layers = (self.config.get("base_quantization") or {}).values()
        first = next(iter(layers), None)
        return f"{first['bits']}-bit g{first['group_size']}" if first else None

    def touches(self, module: str) -> bool:
        """Return whether the adapter changes weights of the model's ``module``, such as its vision encoder."""
        names = (*self.shapes, *(self.config.get("base_quantization") or ()))
        return any(name.startswith(f"{module}.") for name in names)


def split_adapter(model: str, base: Path = Path()) -> tuple[str, str | None]:
    """Return the name of a model and the folder of its adapter, None without one.

    A Hub id contains no ``+``; of a folder with one, the shortest part that is a folder is the model. Folders are relative to
    ``base``.
    """
    head = model.partition(SEPARATOR)[0]
    if head == model or ":" in head or folder_exists(model, base):
        return model, None
    places = [place for place, character in enumerate(model) if character == SEPARATOR]
    place = next((place for place in places if folder_exists(model[:place], base)), places[0])
    return model[:place], model[place + 1 :]


def join_adapter(model: str, adapter: str) -> str:
    """Return the name of ``model`` with the adapter in the folder ``adapter``."""
    return f"{model}{SEPARATOR}{adapter}"


def adapter_name(folder: str) -> str:
    """Return the display name of an adapter's folder: of ``clash/best`` ``clash.best``, of ``clash/adapter`` ``clash``."""
    path = Path(folder)
    if path.name in ("adapter", "adapters") and path.parent.name:
        return path.parent.name
    return f"{path.parent.name}.{path.name}" if _GENERIC.fullmatch(path.name) and path.parent.name else path.name


def with_adapter_name(model: str, adapter: Adapter | None) -> str:
    """Return the display name of a model with its adapter."""
    return model if adapter is None else f"{model}{SEPARATOR}{adapter.name}"


def adapted_quantisation(quantisation: str | None, adapter: Adapter | None) -> str | None:
    """Return the quantisation of a model with its adapter: mlx-vlm quantises a base as it was during training."""
    own = adapter.base_quantisation if adapter else None
    return quantisation if own is None or quantisation == own else f"{own}, from {quantisation}"


def read_adapter(folder: str | Path) -> Adapter:
    """Return the adapter in ``folder``. Raises ModelError if it is missing, incomplete, pickled, or of another kind."""
    path = typed_path(folder)
    if not path.is_dir():
        raise ModelError(f"there is no adapter folder {path}; name one that holds {WEIGHTS} and {CONFIG}.")
    config = _read_config(path)
    if not (path / WEIGHTS).is_file():
        if any(entry.suffix in PICKLES for entry in path.iterdir()):
            raise ModelError(
                f"{path} holds pickled weights, which can run any code and are never opened; save the adapter as safetensors."
            )
        raise ModelError(f"{path} holds no {WEIGHTS}; name the folder that a training wrote.")
    _check_parameters(path, config)
    shapes = tensor_shapes(path / WEIGHTS)
    _check_shapes(path, _parameters(config)["rank"], shapes)
    return Adapter(
        path=path,
        digest=files_digest(adapter_files(path)),
        config=config,
        shapes=shapes,
        weights_bytes=(path / WEIGHTS).stat().st_size,
        base=_read_base(path),
    )


def adapter_files(folder: Path) -> tuple[Path, Path]:
    """Return the files of an adapter's folder that decide answers, in the order of its digest."""
    return folder / CONFIG, folder / WEIGHTS


def fused_digests(model: Path) -> tuple[str | None, str | None]:
    """Return the digests of the adapter that was fused into the model in a folder, and of the weights before; else None.

    Raises ModelError if the record cannot be read.
    """
    try:
        record = read_json_file(model / FUSED)
    except FileNotFoundError:
        return None, None
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{model / FUSED} cannot be read as JSON; fuse the adapter again.") from error
    match record:
        case {"adapter digest": str(adapter), "weights digest": str(weights)} if _DIGEST.fullmatch(adapter + weights):
            return adapter, weights
    return None, None


def training_records(model: Path, adapter: str | None) -> list[Mapping[str, Any]]:
    """Return what the trainings recorded of the adapter in a folder, and of those fused into the model in a folder."""
    records = []
    for file in (model / FUSED, *([typed_path(adapter) / TRAINING] if adapter else [])):
        with suppress(OSError, OutsideJSONError):
            records.append(read_json_file(file))
    return [record for record in records if isinstance(record, dict)]


def lora_pairs(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, dict[str, str]]:
    """Return the names of an adapter's low-rank tensors, "A" and "B", by the module that they adapt."""
    pairs: dict[str, dict[str, str]] = {}
    for name in shapes:
        module, _, part = name.rpartition(".")
        if part in _PARTS:
            pairs.setdefault(module, {})[_PARTS[part]] = name
    return pairs


def check_plain(adapter: Adapter) -> None:
    """Raise ModelError if ``adapter`` is not of LoRA layers alone."""
    pairs = lora_pairs(adapter.shapes)
    others = [tensor for tensor in adapter.shapes if tensor.rpartition(".")[0] not in pairs]
    if adapter.kind != "lora" or adapter.is_legacy or others:
        what = f"also holds whole weights ({others[0]!r})" if others else "is not of plain LoRA layers"
        raise ModelError(f"the adapter {adapter.name} {what}, which only MLX applies; run it there, or fuse it.")


def check_base(adapter: Adapter, model: str, weights: str) -> None:
    """Raise ModelError if ``adapter`` was trained on another model than ``model``, whose weights' digest is ``weights``.

    Another quantisation of the same model is accepted. Nothing is known of an adapter without :data:`TRAINING`.
    """
    if adapter.base is None:
        return
    base, digest = adapter.base
    plain_names = {unquantised_name(Path(name).name).casefold() for name in (base, model)}
    if digest != weights and (len(plain_names) > 1 or digest is None):
        raise ModelError(
            f"the adapter {adapter.name} is of another base model: it was trained on {base}, not on {model}; name that model."
        )


def check_not_fused(adapter: Adapter, name: str, model: Path) -> None:
    """Raise ModelError if ``adapter`` is in the weights of the model ``name`` in a folder already, or is of its weights before.

    Raises ModelError as :func:`fused_digests`, too.
    """
    fused, before = fused_digests(model)
    if fused == adapter.digest:
        raise ModelError(f"{name} has the adapter {adapter.name} in its weights already; it needs no other fusing.")
    if before is not None and adapter.base is not None and adapter.base[1] == before:
        raise ModelError(
            f"the adapter {adapter.name} was trained on {adapter.base[0]}, not on {name}, into which another adapter is fused; "
            "name that model, or train an adapter on this one."
        )


def check_outputs(adapter: Adapter, model: str, files: Iterable[Path]) -> None:
    """Raise ModelError if a layer of the model's weight ``files`` has another number of outputs than its low-rank weights.

    This tells most other models apart before anything is loaded. Layers whose names differ in the files are not compared.
    """
    weights = {name: shape for file in files for name, shape in tensor_shapes(file).items() if len(shape) == 2}
    try:
        stored = by_plain_name(name for name in weights if name.endswith(".weight"))
        adapted = by_plain_name(f"{module}.weight" for module in lora_pairs(adapter.shapes))
    except ModelError:  # names that are no layers' of ours
        return
    pairs = lora_pairs(adapter.shapes)
    for plain_name, name in adapted.items():
        first, second = (adapter.shapes[pairs[name.removesuffix(".weight")][part]] for part in "AB")
        if plain_name not in stored or len(second) != 2:
            continue
        outputs = weights[stored[plain_name]][0]
        if outputs not in (second[1], first[0]):  # the first is as long as an embedding's vocabulary
            raise ModelError(
                f"the adapter {adapter.name} is of another base model than {model}: it has {second[1]} outputs for "
                f"{name.removesuffix('.weight')!r}, and the model {outputs}; name the model that it was "
                "trained on."
            )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = read_json_file(path / CONFIG)
    except FileNotFoundError as error:
        raise ModelError(
            f"{path} holds no {CONFIG}; name the folder that a training wrote, with both files."
        ) from error
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{path / CONFIG} cannot be read as JSON; copy the adapter again.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path / CONFIG} is not a JSON object; copy the adapter again.")
    if "peft_type" in config:
        raise ModelError(
            f"{path} is an adapter in the format of peft; convert it with `rashomon models adapter {path} --model ID "
            "--to-mlx FOLDER`."
        )
    return config


def _parameters(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return rank, scale and dropout, which older versions of mlx-vlm stored at the top."""
    parameters = config.get("lora_parameters", config)
    return parameters if isinstance(parameters, Mapping) else {}


def _check_parameters(path: Path, config: Mapping[str, Any]) -> None:
    kind = config.get("fine_tune_type", "lora")
    if kind == "full":
        raise ModelError(f"{path} holds all weights of a model, not an adapter; convert it to a model's folder.")
    parameters = _parameters(config)
    rank, scale = parameters.get("rank"), parameters.get("scale", parameters.get("alpha", 0.1))
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise ModelError(f"{path / CONFIG} gives the rank {rank!r}; an adapter needs a rank from 1 to {MAX_RANK}.")
    problems = {
        "fine_tune_type": kind not in ("lora", "dora"),
        "scale": not _is_number(scale),
        "dropout": not _is_number(parameters.get("dropout", 0.0)) or not 0 <= parameters.get("dropout", 0.0) < 1,
        "keys": not _are_names(parameters.get("keys", [])),
        "num_layers": type(config.get("num_layers", -1)) is not int,
        "base_quantization": not _is_quantisation(config.get("base_quantization", {})),
    }
    for key in (key for key, wrong in problems.items() if wrong):
        raise ModelError(f"{key} in {path / CONFIG} is not what mlx-vlm's trainer writes; copy the adapter again.")


def _check_shapes(path: Path, rank: int, shapes: Mapping[str, tuple[int, ...]]) -> None:
    pairs = lora_pairs(shapes)
    if not pairs:
        raise ModelError(f"{path / WEIGHTS} holds no low-rank weights; name the folder of an adapter.")
    for module, pair in pairs.items():
        if len(pair) < 2:
            raise ModelError(f"{path / WEIGHTS} holds only half of the pair of {module!r}; copy the adapter again.")
        for name in pair.values():
            if len(shapes[name]) not in (2, 3) or rank not in shapes[name]:
                raise ModelError(
                    f"{name!r} in {path / WEIGHTS} has the shape {shapes[name]}, which does not fit the rank {rank} in "
                    f"{CONFIG}; copy the adapter again."
                )


def _read_base(path: Path) -> tuple[str, str | None] | None:
    try:
        training = read_json_file(path / TRAINING)
    except FileNotFoundError:
        return None
    except (OSError, OutsideJSONError) as error:
        raise ModelError(
            f"{path / TRAINING} cannot be read as JSON; copy the adapter again, or remove the file."
        ) from error
    match training:
        case {"base model": str(model), "base weights": str(weights)}:
            return model, weights
        case {"base model": str(model)}:
            return model, None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _is_quantisation(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(layer, dict) and type(layer.get("bits")) is int and type(layer.get("group_size")) is int
        for layer in value.values()
    )
