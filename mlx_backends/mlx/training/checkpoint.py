"""Checkpoints and adapters on disk: each file is whole or not there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import make_folder, replace_file

CHECKPOINT = "checkpoint.safetensors"
WEIGHTS, CONFIG = "adapters.safetensors", "adapter_config.json"
"""The files of an adapter's folder that mlx-vlm loads."""

_ADAPTER, _OPTIMISER = "adapter.", "optimiser."
_MOST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a training besides its weights: the last update, the lowest validation loss, and the log's size then."""

    step: int = 0
    best: float | None = None
    log_bytes: int = 0


def save_checkpoint(folder: Path, model: Any, optimiser: Any, progress: Progress) -> None:
    """Replace the checkpoint in ``folder``. Raises StoreError, and leaves the one before, if it cannot be written."""
    from mlx.utils import tree_flatten

    arrays = {f"{_ADAPTER}{name}": value for name, value in tree_flatten(model.trainable_parameters())}
    arrays |= {f"{_OPTIMISER}{name}": value for name, value in tree_flatten(optimiser.state)}
    save_arrays(folder / CHECKPOINT, arrays, {"progress": json.dumps(asdict(progress))})


def load_checkpoint(folder: Path, model: Any, optimiser: Any) -> Progress | None:
    """Restore the checkpoint in ``folder`` and return its progress; None if there is none. Raises StoreError."""
    import mlx.core as mx
    from mlx.utils import tree_flatten, tree_unflatten

    path = folder / CHECKPOINT
    if not path.is_file():
        return None
    damaged = StoreError(
        f"{path} is damaged or of another training, so the training cannot be resumed; start one with another --name."
    )
    try:
        loaded: Any = mx.load(str(path), format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        progress = Progress(**json.loads(metadata["progress"][:_MOST_TEXT]))
        _check(progress)
    except Exception as error:  # a file that is no safetensors can raise anything
        raise damaged from error
    weights = {name.removeprefix(_ADAPTER): value for name, value in arrays.items() if name.startswith(_ADAPTER)}
    own = dict(tree_flatten(model.trainable_parameters()))
    if {name: value.shape for name, value in own.items()} != {name: value.shape for name, value in weights.items()}:
        raise damaged
    model.load_weights(list(weights.items()), strict=False)
    state = [(name.removeprefix(_OPTIMISER), value) for name, value in arrays.items() if name.startswith(_OPTIMISER)]
    optimiser.state = tree_unflatten(state)
    mx.eval(model.trainable_parameters(), optimiser.state)
    return progress


def _check(progress: Progress) -> None:
    """Raise ValueError for a progress that no training has."""
    if not all(type(count) is int and count >= 0 for count in (progress.step, progress.log_bytes)):
        raise ValueError("a count is none")
    if progress.best is not None and not math.isfinite(progress.best):
        raise ValueError("a loss is not a number")


def save_adapter(folder: Path, model: Any, provenance: Mapping[str, Any]) -> None:
    """Write the adapter's folder, which ``mlx_vlm.load(..., adapter_path=...)`` reads, with its provenance beside it.

    The weights come last, so that a folder with weights is whole. Raises StoreError.
    """
    from mlx.utils import tree_flatten

    try:
        make_folder(folder.parent, folder.name)  # never a link, in a training that was received
        for name, value in ((CONFIG, model._vlm_adapter_config), ("training.json", provenance)):
            replace_file(folder, name, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror}; the last checkpoint is kept: free some space, then resume."
        ) from error
    save_arrays(folder / WEIGHTS, dict(tree_flatten(model.trainable_parameters())), {"format": "mlx"})


def save_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file and put it in place of the one before once it is durable. Raises StoreError."""
    import mlx.core as mx

    new = path.with_name(f".{path.name.removesuffix('.safetensors')}.writing.safetensors")
    try:
        new.unlink(missing_ok=True)  # which could be a link
        mx.save_safetensors(str(new), dict(arrays), dict(metadata))
        with new.open("rb") as file:
            header = 8 + int.from_bytes(file.read(8), "little")
            complete = os.fstat(file.fileno()).st_size == header + sum(value.nbytes for value in arrays.values())
            os.fsync(file.fileno())
        if not complete:
            raise OSError("No space left on device")
        os.replace(new, path)
    except (OSError, RuntimeError, ValueError) as error:
        with suppress(OSError):
            new.unlink()
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:120]
        raise StoreError(
            f"cannot write {path}: {reason}; the last checkpoint is kept: free some space, then resume."
        ) from error
