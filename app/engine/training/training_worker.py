"""Worker process of a training: it locks the training and the device, loads the model and trains.

It is started by :mod:`app.engine.training.training_supervisor` and reports through the training's folder; as it ends, it writes
one line of JSON with its outcome to standard output. It saves a checkpoint and stops when it is interrupted, or when its parent
closes its standard input.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from app.engine.training.training_answer_checks import answer_check
from app.engine.training.training_data_record import read_data_record
from app.engine.training.training_folder import ADAPTER, BEST, DIVERGED, WORKER_LOG, Training
from app.engine.training.training_log import LogWriter, read_curve
from app.engine.training.training_row_selection import check_rows, split_rows, unusable_error
from app.engine.training.training_verdict import verdict_of
from app.engine.workers.device_lock import acquire_device
from app.engine.workers.worker_process import Outcome, end_process, outcome_of, take_output
from app.exit_codes import INTERRUPTED
from app.store.file_locks import busy_message
from app.system.process_signals import ended_by_signals
from app.system.worker_logs import drop_output
from benchmarks.errors import BusyError, StoreError
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
from benchmarks.untrusted.own_files import sweep
from benchmarks.vocabulary import digest
from mlx_backends.training_settings import CONFLICT, LEAST_GAIN, DivergedError, TrainingSettings

_REPORT_SECONDS = 2.0
"""The seconds between two reports of the rows that are checked."""


@dataclass
class _Flags:
    """State that a signal or the parent's end changes; a plain attribute takes no lock within a signal handler."""

    stopped: bool = False
    loading: bool = False


def train(folder: Path, flags: _Flags, patience: float | None = None) -> Outcome:
    """Train, or resume, the training in ``folder``, and record how it ends, unless a new worker may do better."""
    try:
        training = Training.open(folder)
        with training.lock() as lock:
            if not lock.acquire(f"process {os.getpid()}"):
                raise BusyError(f"{busy_message(lock)}; `rashomon trainings` shows how far it is.")
            return _recorded(training, flags, patience)
    except Exception as error:
        return outcome_of(error)


def _recorded(training: Training, flags: _Flags, patience: float | None) -> Outcome:
    try:
        training.note("queued")
        return Outcome(0 if _on_device(training, flags, patience) else INTERRUPTED)
    except Exception as error:
        outcome = outcome_of(error)
        if not outcome.death:
            with suppress(StoreError):  # a full disk cannot take the state either
                _note_failure(training, outcome, has_diverged=isinstance(error, DivergedError))
        return outcome


def _note_failure(training: Training, outcome: Outcome, *, has_diverged: bool) -> None:
    """Record how a training failed; with what is to be thought of its adapter if it has diverged. Raises StoreError."""
    text = outcome.message or outcome.failure
    if not has_diverged:
        training.note("failed", text)
        return
    training.note(DIVERGED, text, verdict_of(read_curve(training.path)))


def _on_device(training: Training, flags: _Flags, patience: float | None) -> bool:
    """Wait for the device, for ``patience`` seconds if that is limited, and train; return False if that was stopped."""
    device = acquire_device(
        f"training {training.name} (process {os.getpid()})",
        waiting=lambda holder: training.note("queued", f"waiting for {holder}"),
        stop=lambda: flags.stopped,
        patience=patience,
    )
    if device is None:
        training.note("stopped")
        return False
    with device:
        training.note("loading")
        from mlx_backends.mlx.metal.metal_fault_recovery import raising_root_cause

        with raising_root_cause():
            return _train(training, flags)


def _train(training: Training, flags: _Flags) -> bool:
    """Load the model and train, to the end or until that is stopped; return whether it is done."""
    training_set = TrainingSet.open(Path(training.spec.data))
    if training_set.digest != training.identity.get("data digest"):
        raise StoreError(f"{training_set.path} was changed since {training.name} began; choose another --name.")
    rows = split_rows(training_set, training.spec)
    for adapter in (training.path / ADAPTER, training.path / BEST):
        if not adapter.is_symlink():
            sweep(adapter)
    settings = replace(training.spec.settings(len(rows[PARTS[0]])), steps=training.steps)
    with _ends_at_once(flags):
        loaded, features = _load(training)
        usable = _usable_rows(training, rows, loaded)
        from mlx_backends.mlx.training.training_loop import TrainingLoop

        name, provenance = str(training.identity["model"]), _provenance(training)
        check = answer_check(usable[PARTS[1]], training.spec)
        loop = TrainingLoop(training.path, name, loaded, usable, settings, provenance, features, check)
        progress = loop.resume()
    log = LogWriter(training.path, progress.log_bytes)
    count, left = (sum(map(len, part.values())) for part in (rows, usable))
    note = f"{count - left:,} of {count:,} rows are left out" if left < count else ""
    training.note("training", note)
    if not loop.run(progress, log.write, log.size, lambda: flags.stopped):
        training.note("stopped", note)
        return False
    curve = read_curve(training.path)
    notes = [*([note] if note else []), *_early_end(curve.step, settings)]
    has_conflicts = any(row.kind == CONFLICT for row in usable[PARTS[0]])
    training.note("done", "; ".join(notes), verdict_of(curve, has_conflicts=has_conflicts))
    return True


def _early_end(step: int, settings: TrainingSettings) -> list[str]:
    """Return the note on a training that ended before its last update; empty for another."""
    if step >= settings.steps:
        return []
    return [
        f"ended early, after update {step:,} of {settings.steps:,}: the validation loss had not fallen by {LEAST_GAIN:.0%} in "
        f"{settings.patience} validations"
    ]


def _load(training: Training) -> tuple[tuple[Any, Any], Any]:
    """Return the loaded model with its processor, and the store of its images' features."""
    from benchmarks.media.media_decoder import start_decoder
    from mlx_backends.core.prompts.template_process import start_renderer
    from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
    from mlx_backends.mlx.mlx_engine import MLXEngine
    from mlx_backends.mlx.mlx_load import check_supported, load
    from mlx_backends.mlx.vision.feature_store import FeatureStore
    from mlx_backends.mlx.vision.vision_cache import encoder_identity
    from mlx_backends.models.model_discovery import resolve

    path = resolve(training.spec.model)
    start_renderer()
    start_decoder()
    check_supported(path)
    info = MLXEngine().describe(training.spec.model)
    if info.weights != training.identity.get("weights"):
        raise StoreError(f"{training.spec.model} was changed since {training.name} began; choose another --name.")
    MemoryLimits.here().set()
    loaded = load(path)
    return loaded, FeatureStore(partial(encoder_identity, info, loaded[0]))


def _usable_rows(
    training: Training, rows: Mapping[str, Sequence[ChatRow]], loaded: tuple[Any, Any]
) -> dict[str, list[ChatRow]]:
    """Return the rows that can be trained on. Raises SourceError for others, unless the spec leaves them out."""
    from mlx_backends.mlx.training.training_inputs import TrainingInputs

    spec, (model, processor) = training.spec, loaded
    every = [row for part in rows.values() for row in part]
    inputs = TrainingInputs(every, processor, model.config, max_length=spec.max_length, max_pixels=spec.max_pixels)
    next_report = 0.0

    def report(place: int) -> None:
        nonlocal next_report
        if time.monotonic() >= next_report:
            next_report = time.monotonic() + _REPORT_SECONDS
            training.note("loading", f"checking row {place + 1:,} of {len(every):,}")

    count = partial(inputs.count_tokens, pair=spec.objective == "orpo")
    check = check_rows(training.path, digest(dict(training.identity)), every, count, report)
    reasons = check.unusable(spec.max_length)
    unusable = {row.where: reasons[row.where] for row in every if row.where in reasons}
    for where, reason in unusable.items():
        print(f"{where} cannot be trained on: {reason}", file=sys.stderr)
    usable = {part: [row for row in members if row.where not in unusable] for part, members in rows.items()}
    if unusable and not (spec.skip_unusable and any(row.images for row in usable[PARTS[0]])):
        raise unusable_error(unusable, len(every), training.path / WORKER_LOG)
    return usable


def _provenance(training: Training) -> dict[str, Any]:
    """Return what the adapter's folder states about it."""
    return {
        "base model": training.identity["model"],
        "base weights": training.identity["weights"],
        "data digest": training.identity["data digest"],
        "recipe": training.spec.recipe,
        "spec": {key: value for key, value in training.spec.identity().items() if key != "model"},
        "training": training.name,
        "engines": list(training.engines),
        **read_data_record(training.path),
    }


@contextmanager
def _ends_at_once(flags: _Flags) -> Iterator[None]:
    """Let a signal, or the parent's end, end the process at once while a model is loading: nothing is lost by then."""
    flags.loading = True
    try:
        with ended_by_signals():
            yield
    finally:
        flags.loading = False


def main(arguments: Sequence[str]) -> None:
    """Run the worker process, whose arguments are the training's folder and the longest wait for the device."""
    report = take_output()
    flags = _Flags()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(flags, "stopped", True))
    threading.Thread(target=_watch_parent, args=(flags,), daemon=True).start()
    end_process(report, train(Path(arguments[0]), flags, *map(float, arguments[1:])))


def _watch_parent(flags: _Flags) -> None:
    while os.read(0, 4096):
        pass
    drop_output()
    flags.stopped = True
    if flags.loading:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main(sys.argv[1:])
