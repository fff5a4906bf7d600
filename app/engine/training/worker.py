"""Worker process of a training: it locks the training and the device, loads the model and trains.

It is started by :mod:`app.engine.training.supervise` and reports through the training's folder; as it ends, it writes one line of
JSON with its outcome to standard output. It saves a checkpoint and stops when it is interrupted, or when its parent closes its
standard input.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.engine.training.data_record import read_data_record
from app.engine.training.folder import Training
from app.engine.training.log import LogWriter
from app.engine.training.plan import split_rows
from app.engine.workers.device_lock import acquire_device
from app.store.locks import busy_message
from app.system.logs import drop_output, report_exception, write_single_lines
from app.system.signals import ended_by_signals
from benchmarks.errors import RashomonError, StoreError
from benchmarks.training.training_set import ChatRow, TrainingSet

INTERRUPTED = 130


@dataclass
class _Flags:
    """State that a signal or the parent's end changes; a plain attribute takes no lock within a signal handler."""

    stopped: bool = False
    loading: bool = False


def train(folder: Path, flags: _Flags) -> int:
    """Train, or resume, the training in ``folder``; return the exit code. Raises RashomonError."""
    training = Training.open(folder)
    lock = training.lock()
    if not lock.acquire(f"process {os.getpid()}"):
        raise StoreError(f"{busy_message(lock)}; `rashomon trainings` shows how far it is.")
    try:
        training.note("queued")
        device = acquire_device(
            f"training {training.name} (process {os.getpid()})",
            waiting=lambda holder: training.note("queued", f"waiting for {holder}"),
            stop=lambda: flags.stopped,
        )
        if device is None:
            training.note("stopped")
            return INTERRUPTED
        try:
            training.note("loading")
            done = _train(training, flags)
        finally:
            device.release()
        training.note("done" if done else "stopped")
        return 0 if done else INTERRUPTED
    except RashomonError as error:
        with suppress(OSError, RashomonError):  # a full disk cannot take the state either
            training.note("failed", str(error))
        raise
    finally:
        lock.release()


def _train(training: Training, flags: _Flags) -> bool:
    training_set = TrainingSet.open(Path(training.spec.data))
    if training_set.digest != training.identity.get("data digest"):
        raise StoreError(f"{training_set.path} was changed since {training.name} began; choose another --name.")
    rows = split_rows(training_set, training.spec.validation_share, training.spec.seed)
    with _ends_at_once(flags):
        loop = _load(training, rows)
        progress = loop.resume()
    log = LogWriter(training.path, progress.log_bytes)
    training.note("training")
    return bool(loop.run(progress, log.write, log.size, lambda: flags.stopped))


def _load(training: Training, rows: dict[str, list[ChatRow]]) -> Any:
    from benchmarks.media.decoder import start_decoder
    from mlx_backends.core.prompts.template_process import start_renderer
    from mlx_backends.mlx.engine import MLXEngine
    from mlx_backends.mlx.feature_store import FeatureStore
    from mlx_backends.mlx.load import check_supported, load
    from mlx_backends.mlx.metal.memory_limits import MemoryLimits
    from mlx_backends.models.discovery import resolve
    from mlx_backends.models.weights import weights_digest

    path = resolve(training.spec.model)
    start_renderer()
    start_decoder()
    check_supported(path)
    weights = weights_digest(path)
    if weights != training.identity.get("weights"):
        raise StoreError(f"{training.spec.model} was changed since {training.name} began; choose another --name.")
    MemoryLimits.here().set()
    from mlx_backends.mlx.training.loop import TrainingLoop
    from mlx_backends.mlx.vision_cache import encoder_identity

    provenance = {
        "base model": training.identity["model"],
        "base weights": weights,
        "data digest": training.identity["data digest"],
        "recipe": training.spec.recipe,
        "spec": {key: value for key, value in training.spec.identity().items() if key != "model"},
        "training": training.name,
        **read_data_record(training.path),
    }
    settings = training.spec.settings(len(rows["train"]))
    loaded = load(path)
    info = MLXEngine().describe(training.spec.model)
    features = FeatureStore(partial(encoder_identity, info, loaded[0]))
    return TrainingLoop(
        training.path, str(training.identity["model"]), loaded, rows, settings, provenance, features=features
    )


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
    """Run the worker process, whose argument is the training's folder."""
    # Libraries print, but only the report may go through the pipe to the parent.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    write_single_lines()
    sys.stdout = sys.stderr
    flags = _Flags()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(flags, "stopped", True))
    threading.Thread(target=_watch_parent, args=(flags,), daemon=True).start()
    code, message = 1, ""
    try:
        code = train(Path(arguments[0]), flags)
    except RashomonError as error:
        code, message = error.exit_code, str(error)
    except Exception as error:
        from mlx_backends.core.error_text import one_line
        from mlx_backends.mlx.metal.memory_limits import out_of_memory

        report_exception(error)
        if out_of_memory(error):
            message = (
                f"the training ran out of memory ({one_line(error)}); the last checkpoint is kept. Take smaller images "
                "(--max-pixels), a lower --rank or a smaller quantisation."
            )
    with suppress(OSError):  # the parent may be gone
        print(json.dumps({"code": code, "message": message}), file=report, flush=True)
    # Skip the interpreter's teardown: library threads must not keep a finished worker, and its device, alive.
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _watch_parent(flags: _Flags) -> None:
    while os.read(0, 4096):
        pass
    drop_output()
    flags.stopped = True
    if flags.loading:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main(sys.argv[1:])
