"""Rungs of a model's ladder on this machine: PyTorch, then MLX in full precision, 8 bits and 4 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.errors import ModelError, SpecError
from benchmarks.untrusted.finder_files import folder_entries
from mlx_backends.engine_registry import describe
from mlx_backends.models.model_discovery import ModelInfo, cached_models, inspect, resolve
from mlx_backends.models.unquantised_names import unquantised_name
from mlx_backends.pytorch import torch_names_and_devices as spec

_FULL = ("bf16", "fp16", "fp32")
_NAMES = {spec.ENGINE: "torch", "mlx-vlm": "MLX", "mlx-lm": "MLX"}


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung: its name and its model as a run names it; ``why`` is a sentence where it is not available."""

    name: str
    model: str = ""
    why: str = ""
    side_branch: bool = False
    """True for a rung next to the last one instead of on the path: MLX's dequantised 4-bit weights in PyTorch."""


def find_rungs(models: Sequence[str]) -> list[Rung]:
    """Return the rungs of one model, searched among its folder's neighbours or in the cache; or several models as they are named.

    Raises:
        SpecError: The model does not state its quantisation.
        ModelError: A model is not on this machine.
    """
    if len(models) > 1:
        return [Rung(_name(model), model) for model in models]
    (model,) = models
    if model.startswith(spec.PREFIX):
        model = spec.parse_name(model).model
    named_model = inspect(resolve(model))
    if named_model.quantisation is None:
        raise SpecError(
            f"{named_model.name} does not state how its weights are stored; name the rungs, each with --model."
        )
    by_width = {_width(info): info for info in reversed([named_model, *_siblings(named_model)])}
    where = "the cache" if named_model.path.parent.name == "snapshots" else f"the folder {named_model.path.parent.name}"
    stem = unquantised_name(Path(named_model.name).name)
    torch = _torch_missing()
    suffix = "@fp32" if spec.default_device() == "cpu" else ""  # bf16 on a CPU is slow, and rounds where fp32 does not
    rungs = []
    full = by_width.get("full")
    if full is None:
        missing_message = f"there is no full-precision {stem} in {where}."
        rungs += [Rung("torch", why=missing_message), Rung("MLX bf16", why=missing_message)]
    else:
        precision = "fp32" if suffix else str(full.quantisation)
        rungs += [
            Rung(f"torch {precision}", f"{spec.PREFIX}{_model_name(full)}{suffix}", torch),
            Rung(f"MLX {full.quantisation}", _model_name(full)),
        ]
    for width in ("8-bit", "4-bit"):
        info = by_width.get(width)
        why = "" if info else f"there is no {width} {stem} in {where}; `mlx_vlm.convert --quantize` makes one."
        rungs.append(Rung(f"MLX {width}", _model_name(info) if info else "", why))
    if (quantised := by_width.get("4-bit")) is not None:
        rungs.append(Rung("torch 4-bit", f"{spec.PREFIX}{_model_name(quantised)}{suffix}", torch, side_branch=True))
    return rungs


def _name(model: str) -> str:
    info = describe(model)
    return f"{_NAMES.get(info.engine, info.engine)} {info.quantisation or Path(info.model).name}"


def _model_name(info: ModelInfo) -> str:
    """Return a model as a run names it: its Hub id where it is in the cache, else its folder."""
    return info.name if info.path.parent.name == "snapshots" else str(info.path)


def _width(info: ModelInfo) -> str:
    quantisation = info.quantisation or ""
    return "full" if quantisation in _FULL else quantisation.split()[0] if quantisation else ""


def _siblings(model: ModelInfo) -> list[ModelInfo]:
    """Return the other quantisations of a model, recognised by their names."""
    stem = unquantised_name(Path(model.name).name)
    if model.path.parent.name == "snapshots":
        candidates = [info for info in cached_models() if info.problem is None]
    else:
        candidates = []
        for folder in folder_entries(model.path.parent):
            if folder.is_dir() and unquantised_name(folder.name) == stem and folder != model.path:
                try:
                    candidates.append(inspect(folder))
                except ModelError:  # the folder holds no model
                    continue
    return [info for info in candidates if unquantised_name(Path(info.name).name) == stem]


def _torch_missing() -> str:
    """Return how to install PyTorch; empty where it is installed."""
    try:
        version("torch")
    except PackageNotFoundError:
        return "PyTorch is not installed; `pip install 'rashomon[torch]'`."
    return ""
