"""Adapters in the format of the library peft: their settings and the names of their tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.untrusted.typed_paths import typed_path
from mlx_backends.models.adapter_folder import CONFIG, MAX_RANK, PEFT_WEIGHTS, Adapter
from mlx_backends.models.weight_files import PICKLES, tensor_shapes

_PREFIX = "base_model.model."
_PARTS = {"lora_A.weight": "A", "lora_B.weight": "B"}
_CONVERTED = (
    *("r", "lora_alpha", "lora_dropout", "use_rslora", "init_lora_weights"),  # read here
    *("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "bias"),  # visible in the tensors
    *(
        "peft_type",
        "task_type",
        "auto_mapping",
        "peft_version",
        "base_model_name_or_path",
        "revision",
        "inference_mode",
    ),
    *("megatron_config", "megatron_core", "qalora_group_size", "runtime_config"),  # of how it is computed
    *("loftq_config", "eva_config", "corda_config", "lora_ga_config", "velora_config"),  # of how it was trained
)
"""Settings of peft's LoraConfig that a plain LoRA layer carries out, or that change nothing after training.

Any other that is set makes another layer, or an adapter that applies to some tokens only.
"""

_SAME_BASE = ("gaussian", "eva", "orthogonal", "mica", "true", "false")
"""Values of ``init_lora_weights`` that leave the base model's weights as they are (read in peft 0.21.2).

The others (PiSSA, OLoRA, CorDA, LoRA-GA, LoftQ) take from the weights what they put into the adapter, which alone is saved.
"""


@dataclass(frozen=True, slots=True)
class PeftAdapter:
    """An adapter in peft's format.

    Attributes:
        path: The folder.
        rank: The rank of all its pairs.
        scale: The factor of the low-rank product.
        dropout: The share of inputs that training dropped.
        pairs: The names of the tensors, "A" and "B", by PyTorch's name of the layer.
        shapes: The shapes of the tensors, by name.
        base: The name of the model it was trained on, if recorded.
    """

    path: Path
    rank: int
    scale: float
    dropout: float
    pairs: Mapping[str, Mapping[str, str]] = field(repr=False)
    shapes: Mapping[str, tuple[int, ...]] = field(repr=False)
    base: str | None = None

    @property
    def weights(self) -> Path:
        return self.path / PEFT_WEIGHTS


def read_peft(folder: Path) -> PeftAdapter:
    """Return the adapter in ``folder``.

    Raises ModelError if it is incomplete, pickled, of layers other than plain LoRA, or made for a base with changed weights.
    """
    path = typed_path(folder)
    try:
        config = read_json_file(path / CONFIG)
    except (OSError, OutsideJSONError) as error:
        raise ModelError(f"{path / CONFIG} is missing or is no JSON; name the folder that peft wrote.") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise ModelError(f"{path} is no LoRA adapter of peft; name the folder that its save_pretrained wrote.")
    if wrong := [key for key, value in config.items() if value and key not in _CONVERTED]:
        raise ModelError(f"{path} uses {wrong[0]!r:.60}, which MLX's layers do not have; train it without.")
    if (start := config.get("init_lora_weights")) is not None and str(start).lower() not in _SAME_BASE:
        raise ModelError(
            f"{path} was trained with init_lora_weights={start!r:.40}, which changed the base model's weights too; save it as an "
            "ordinary LoRA (peft's save_pretrained with path_initial_model_for_weight_conversion), or merge it into its own base."
        )
    if not (path / PEFT_WEIGHTS).is_file():
        pickled = any(entry.suffix in PICKLES for entry in path.iterdir())
        reason = "holds pickled weights, which can run any code and are never opened" if pickled else "holds no weights"
        raise ModelError(f"{path} {reason}; save the adapter as {PEFT_WEIGHTS}.")
    rank, alpha, dropout = config.get("r"), config.get("lora_alpha", 8), config.get("lora_dropout", 0.0)
    if type(rank) is not int or not 0 < rank <= MAX_RANK or not all(map(_is_number, (alpha, dropout))):
        raise ModelError(f"{path / CONFIG} gives rank {rank!r} and alpha {alpha!r}; an adapter needs numbers above 0.")
    shapes = tensor_shapes(path / PEFT_WEIGHTS)
    base = config.get("base_model_name_or_path")
    return PeftAdapter(
        path=path,
        rank=rank,
        scale=alpha / (math.sqrt(rank) if config.get("use_rslora") else rank),
        dropout=dropout,
        pairs=_pairs(path, rank, shapes),
        shapes=shapes,
        base=base if isinstance(base, str) else None,
    )


def write_peft_config(folder: Path, adapter: Adapter, model: str, layers: Iterable[str]) -> None:
    """Write the settings of ``adapter`` of ``model`` as peft reads them; ``layers`` are PyTorch's names."""
    config = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": model,
        "r": adapter.rank,
        "lora_alpha": adapter.scale * adapter.rank,
        "lora_dropout": adapter.dropout,
        "target_modules": sorted(layers),
        "bias": "none",
        "inference_mode": True,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def write_mlx_config(folder: Path, adapter: PeftAdapter, modules: Iterable[str]) -> None:
    """Write the settings of ``adapter`` as mlx-vlm reads them; ``modules`` are MLX's names."""
    parameters = {"rank": adapter.rank, "scale": adapter.scale, "dropout": adapter.dropout, "keys": sorted(modules)}
    config = {"fine_tune_type": "lora", "num_layers": -1, "lora_parameters": parameters}
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def peft_name(layer: str, part: str) -> str:
    """Return the name of a tensor, ``part`` "A" or "B", of the layer with PyTorch's name ``layer``."""
    return f"{_PREFIX}{layer}.lora_{part}.weight"


def _pairs(path: Path, rank: int, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, dict[str, str]]:
    pairs: dict[str, dict[str, str]] = {}
    for name, shape in shapes.items():
        ending = next((ending for ending in _PARTS if name.endswith(f".{ending}")), None)
        if ending is None or not name.startswith(_PREFIX):
            raise ModelError(f"{path} holds {name!r} next to its LoRA layers, which cannot be converted.")
        part = _PARTS[ending]
        if len(shape) != 2 or shape["AB".index(part)] != rank:
            raise ModelError(
                f"{name!r} in {path} has the shape {shape}, which does not fit the rank {rank} in {CONFIG}."
            )
        pairs.setdefault(name[len(_PREFIX) : -len(ending) - 1], {})[part] = name
    if not pairs or any(len(pair) < 2 for pair in pairs.values()):
        raise ModelError(f"{path / PEFT_WEIGHTS} does not hold whole pairs of LoRA weights; copy the adapter again.")
    return pairs


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
