"""A worker process: answers the runs of one model, one after the other, then ends and so frees its memory.

Started by :mod:`app.engine.supervise`. It reports through the runs' stores; the one line of JSON it writes to its standard
output as it ends says how it went. It stops at the next answer when it is interrupted or when its standard input, the
other end of which its parent holds, is closed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.config import RunSpec, parse
from app.engine.lease import acquire_device
from app.engine.loop import answer_pending, judge_pending
from app.locks import FileLock
from app.store.run import RunStore
from benchmarks.base import get_benchmark
from benchmarks.build import Build
from benchmarks.errors import RashomonError, StoreError
from benchmarks.protocols import Direct
from judges.base import FunctionJudge, get_judge
from mlx_backends.base import Backend
from mlx_backends.registry import describe, load_backend

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is asked to do."""

    runs: tuple[Path, ...]
    data: Path
    conditions: tuple[str, ...] = ()
    force: bool = False


class Worker:
    """Works through an order; ``stopped`` is set by a signal or by the parent's end."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.stopped = threading.Event()
        self.backend: Backend | None = None
        self.lease: FileLock | None = None

    def work(self) -> int:
        """Do the order; the exit code. Raises RashomonError."""
        in_use: list[str] = []
        for folder in self.order.runs:
            with FileLock(folder / "lock") as lock:
                if lock.acquire(f"process {os.getpid()}"):
                    with RunStore.open(folder) as store:
                        self._run(store)
                else:
                    in_use.append(f"{lock.holder() or 'another process'} is already working on {folder.name}")
            if self.stopped.is_set():
                return INTERRUPTED
        if in_use:
            raise StoreError(f"{'; '.join(in_use)}; `rashomon runs` shows how far it is.")
        return 0

    def _run(self, store: RunStore) -> None:
        spec = parse(RunSpec, store.meta("spec"), str(store.folder))
        benchmark = get_benchmark(spec.benchmark)
        judges = [judge for judge in map(get_judge, spec.judge) if isinstance(judge, FunctionJudge)]
        try:
            self._note(store, "judging")
            for judge in judges:
                judge_pending(store, judge, benchmark, stop=self.stopped.is_set)
            if next(store.pending(self.order.conditions), None) is not None and not self.stopped.is_set():
                backend = self._backend(store, spec)
                if backend is not None:
                    self._note(store, "running")
                    store.use_engine(asdict(backend.info))
                    protocol = Direct(spec.to_decoding())
                    answer_pending(
                        store,
                        backend,
                        protocol,
                        judges,
                        benchmark,
                        conditions=self.order.conditions,
                        stop=self.stopped.is_set,
                    )
        except RashomonError as error:
            with suppress(RashomonError):  # a full disk cannot take the note either
                self._note(store, "failed", str(error))
            raise
        self._note(store, "interrupted" if self.stopped.is_set() else "done")

    def _backend(self, store: RunStore, spec: RunSpec) -> Backend | None:
        if self.backend is None:
            if describe(spec.model).needs_device:
                self.lease = acquire_device(
                    f"run {store.folder.name} (process {os.getpid()})",
                    waiting=lambda holder: self._note(store, "queued", f"waiting for {holder}"),
                    stop=self.stopped.is_set,
                )
                if self.lease is None:
                    return None
            self._note(store, "loading")
            self.backend = load_backend(spec.model, Build.open(self.order.data).media_path, force=self.order.force)
        return self.backend

    def _note(self, store: RunStore, state: str, note: str = "") -> None:
        store.set_meta("state", {"state": state, "note": note, "pid": os.getpid()})

    def close(self) -> None:
        """Free the model and the device."""
        if self.backend is not None:
            self.backend.close()
        if self.lease is not None:
            self.lease.release()


def main() -> None:
    """The worker process's entry; its arguments are the order."""
    order = _parse_order(sys.argv[1:])
    # Libraries print; the report must be the only thing on the pipe to the parent.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    worker = Worker(order)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stopped.set())
    threading.Thread(target=_watch_parent, args=(worker,), daemon=True).start()
    try:
        code, message = worker.work(), ""
    except RashomonError as error:
        code, message = error.exit_code, str(error)
    finally:
        worker.close()
    print(json.dumps({"code": code, "message": message}), file=report, flush=True)
    # Skipping the interpreter's teardown: library threads must not keep a finished worker, and its device, alive.
    sys.stderr.flush()
    os._exit(code)


def _parse_order(arguments: list[str]) -> Order:
    parser = argparse.ArgumentParser(prog="python -m app.engine.worker")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--condition", action="append", default=[])
    parser.add_argument("--force", action="store_true")
    values = parser.parse_args(arguments)
    return Order(tuple(values.runs), values.data, tuple(values.condition), values.force)


def _watch_parent(worker: Worker) -> None:
    while os.read(0, 4096):
        pass
    worker.stopped.set()


if __name__ == "__main__":
    main()
