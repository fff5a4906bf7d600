"""Checkpoints and adapters on disk: each file is whole or not there."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.errors import StoreError
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.safe_files import make_folder, replace_file, write_error
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault
from mlx_backends.mlx.metal.metal_fault_recovery import settle
from mlx_backends.mlx.training.training_divergence import LossTrend
from mlx_backends.training_settings import KEPT

CHECKPOINT = "checkpoint.safetensors"
WEIGHTS, CONFIG = "adapters.safetensors", "adapter_config.json"
"""The files of an adapter's folder that mlx-vlm loads."""

_ADAPTER, _OPTIMISER = "adapter.", "optimiser."
_MOST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a training besides its weights.

    Attributes:
        step: The last update; of the trial of a learning rate, while there is one.
        best: The lowest validation loss of an update.
        log_bytes: The size of the log.
        unvalidated: Flag for a validation after this update that is still to be made.
        trend: The loss so far; None where an earlier version saved the checkpoint.
        base: The base's validation loss; None where there was no validation of it.
        base_answers: The base's loss of the answers' tokens alone.
        reference: The validation loss that the next one has to be lower than.
        stale: The number of validations since that one.
        trials: The losses of the learning rates that were tried; None for one that diverged.
        unchecked: Flag for a check of the answers after this update that is still to be made.
    """

    step: int = 0
    best: float | None = None
    log_bytes: int = 0
    unvalidated: bool = False
    trend: LossTrend | None = None
    base: float | None = None
    base_answers: float | None = None
    reference: float | None = None
    stale: int = 0
    trials: tuple[float | None, ...] = ()
    unchecked: bool = False

    def with_base(self, loss: float, answers: float) -> Progress:
        """Return the progress with the base's losses, that of ``answers`` alone too, from which a rise is measured."""
        return replace(self, base=loss, base_answers=answers, reference=loss, trend=LossTrend(answers))


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
        progress = _progress(json.loads(metadata["progress"][:_MOST_TEXT]))
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


def _progress(values: dict[str, Any]) -> Progress:
    """Return the progress that a checkpoint states. Raises ValueError or TypeError for one that no training has."""
    trend = values.pop("trend", None)
    trials = tuple(values.pop("trials", ()))
    progress = Progress(**values, trend=None if trend is None else LossTrend(**trend), trials=trials)
    counts = [progress.step, progress.log_bytes, progress.stale]
    losses = [
        loss or 0.0 for loss in (progress.best, progress.base, progress.base_answers, progress.reference, *trials)
    ]
    if progress.trend is not None:
        trend_values = asdict(progress.trend)
        counts.append(trend_values.pop("count"))
        losses += trend_values.values()
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("a count is none")
    if not all(map(math.isfinite, losses)):
        raise ValueError("a loss is not a number")
    return progress


def save_adapter(folder: Path, model: Any, provenance: Mapping[str, Any], step: int) -> None:
    """Write the adapter's folder, which ``mlx_vlm.load(..., adapter_path=...)`` reads, with its provenance beside it.

    The weights come last, so that a folder with weights is whole. Of an earlier adapter of the training they alone differ, and
    state their ``step``, so that replacing them replaces the adapter. Raises StoreError.
    """
    from mlx.utils import tree_flatten

    try:
        make_folder(folder.parent, folder.name)  # never a link, in a training that was received
        for name, value in ((CONFIG, model._vlm_adapter_config), ("training.json", provenance)):
            replace_file(folder, name, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise write_error(folder, error, KEPT) from error
    arrays = dict(tree_flatten(model.trainable_parameters()))
    save_arrays(folder / WEIGHTS, arrays, {"format": "mlx", "step": str(step)})


def load_adapter(folder: Path) -> tuple[list[tuple[str, Any]], int]:
    """Return the weights of an adapter that :func:`save_adapter` wrote, and its update. Raises StoreError."""
    import mlx.core as mx

    path = folder / WEIGHTS
    try:
        loaded: Any = mx.load(str(path), format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        return list(arrays.items()), int(metadata["step"])
    except Exception as error:  # a file that is no safetensors can raise anything
        raise StoreError(f"{path} is damaged; start the training again with another --name.") from error


def save_arrays(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file and put it in place of the one before once it is durable.

    Raises StoreError, and the RuntimeError of a fault of the GPU that has computed the arrays.
    """
    try:
        with OwnFolder(path.parent) as folder:
            new = folder.path / path.name
            _write_arrays(new, arrays, metadata)
            settle()
            os.replace(new, path)
    except OSError as error:
        raise write_error(path, error, KEPT) from error


def _write_arrays(file: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file that is durable when this returns. Raises OSError."""
    import mlx.core as mx

    try:
        mx.save_safetensors(str(file), dict(arrays), dict(metadata))
    except RuntimeError as error:
        if metal_fault(error) is not None:
            raise
        raise OSError(errno.ENOSPC, one_line(error)) from error  # MLX does not pass the reason on
    with file.open("rb") as stream:
        header = 8 + int.from_bytes(stream.read(8), "little")
        if os.fstat(stream.fileno()).st_size != header + sum(value.nbytes for value in arrays.values()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(stream.fileno())
