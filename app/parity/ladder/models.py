"""The rungs of a model's ladder that can be had here: PyTorch, MLX in full precision, in 8 bits, in 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from app.compare.spec_diff import stem_of
from benchmarks.errors import ModelError, SpecError
from mlx_backends.models.discovery import ModelInfo, cached_models, inspect, resolve
from mlx_backends.pytorch import spec
from mlx_backends.registry import describe

_FULL = ("bf16", "fp16", "fp32")
_NAMES = {spec.ENGINE: "torch", "mlx-vlm": "MLX", "mlx-lm": "MLX"}


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung: what it is called and the model as a run names it; ``why`` it cannot be had, a sentence, where it cannot."""

    name: str
    model: str = ""
    why: str = ""
    aside: bool = False
    """Whether it is no step of the way, but stands beside the last: MLX's 4-bit weights computed back, in PyTorch."""


def rungs(models: Sequence[str]) -> list[Rung]:
    """The ladder of one model, found among what lies beside it (its folder's neighbours, else the cache); or of several models,
    which are its rungs as they are named. Raises SpecError and ModelError for a model that is not there."""
    if len(models) > 1:
        return [Rung(_name(model), model) for model in models]
    (model,) = models
    if model.startswith(spec.PREFIX):
        model = spec.named(model).model
    given = inspect(resolve(model))
    if given.quantisation is None:
        raise SpecError(f"{given.name} does not tell how its weights are stored; name the rungs, each with --model.")
    widths = {_width(each): each for each in reversed([given, *_siblings(given)])}
    where = "the cache" if given.path.parent.name == "snapshots" else str(given.path.parent)
    stem = stem_of(Path(given.name).name)
    torch = _no_torch()
    on = "@fp32" if spec.device() == "cpu" else ""  # bf16 on a CPU is slow, and rounds where fp32 does not
    found = []
    full = widths.get("full")
    if full is None:
        missing = f"there is no full-precision {stem} in {where}."
        found += [Rung("torch", why=missing), Rung("MLX bf16", why=missing)]
    else:
        precision = "fp32" if on else str(full.quantisation)
        found += [
            Rung(f"torch {precision}", f"{spec.PREFIX}{_called(full)}{on}", torch),
            Rung(f"MLX {full.quantisation}", _called(full)),
        ]
    for width in ("8-bit", "4-bit"):
        info = widths.get(width)
        why = "" if info else f"there is no {width} {stem} in {where}; `mlx_vlm.convert --quantize` makes one."
        found.append(Rung(f"MLX {width}", _called(info) if info else "", why))
    if (quantised := widths.get("4-bit")) is not None:
        found.append(Rung("torch 4-bit", f"{spec.PREFIX}{_called(quantised)}{on}", torch, aside=True))
    return found


def _name(model: str) -> str:
    info = describe(model)
    return f"{_NAMES.get(info.engine, info.engine)} {info.quantisation or Path(info.model).name}"


def _called(found: ModelInfo) -> str:
    """A model as a run names it: its Hub id where it lies in the cache, else its folder."""
    return found.name if found.path.parent.name == "snapshots" else str(found.path)


def _width(found: ModelInfo) -> str:
    told = found.quantisation or ""
    return "full" if told in _FULL else told.split()[0] if told else ""


def _siblings(given: ModelInfo) -> list[ModelInfo]:
    """The other quantisations of a model, by their names."""
    stem = stem_of(Path(given.name).name)
    if given.path.parent.name == "snapshots":
        known = [each for each in cached_models() if each.problem is None]
    else:
        known = []
        for folder in sorted(given.path.parent.iterdir()):
            if folder.is_dir() and stem_of(folder.name) == stem and folder != given.path:
                try:
                    known.append(inspect(folder))
                except ModelError:  # whatever lies there is no rung
                    continue
    return [each for each in known if stem_of(Path(each.name).name) == stem]


def _no_torch() -> str:
    try:
        version("torch")
    except PackageNotFoundError:
        return "PyTorch is not installed; `pip install 'rashomon[torch]'`."
    return ""
