"""Planted bugs: patches of the product in the processes of a soak that is to find them.

`python -m tests.soak.planted_faults [NAME ...]` says after how many steps each is found.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FAULTS: dict[str, Callable[[], None]] = {}


def plant(name: str) -> None:
    """Patch the product in this process. Raises KeyError for a name that is none of :data:`FAULTS`."""
    FAULTS[name]()


def _fault(function: Callable[[], None]) -> Callable[[], None]:
    FAULTS[function.__name__.strip("_").replace("_", "-")] = function
    return function


def _command() -> str:
    """Return the command of `rashomon` that this process is; empty in its other processes."""
    words = sys.orig_argv
    return words[words.index("app.main") + 1] if "app.main" in words[:-1] else ""


@_fault
def _answer_paid_twice() -> None:
    """Request some answers of a server twice."""
    if _command():
        return
    from httpx2 import Client

    send = Client.send

    def twice(client: Client, *arguments: Any, **options: Any) -> Any:
        if random.random() < 0.2:
            send(client, *arguments, **options)
        return send(client, *arguments, **options)

    Client.send = twice  # type: ignore[method-assign,assignment]


@_fault
def _commit_lost() -> None:
    """Report some answers as done that are never stored."""
    from app.store.run_store import RunStore

    commit = RunStore.commit

    def lossy(store: RunStore, answers: Sequence[Any], values: Any = None) -> None:
        commit(store, [answer for answer in answers if random.random() > 0.05], values)

    RunStore.commit = lossy  # type: ignore[method-assign,assignment]


@_fault
def _lock_not_taken() -> None:
    """Take every lock at once, whoever holds it."""
    from app.store.file_locks import FileLock

    def acquire(lock: FileLock, holder: str, *, patience: float = 0.5) -> bool:
        lock._fd = lock._open()
        return True

    FileLock.acquire = acquire  # type: ignore[method-assign,assignment]


@_fault
def _temporary_file_left() -> None:
    """Leave a half-written file beside every export."""
    from app.exports import export_writer

    write = export_writer._write

    def leaving(folder: Path, name: str, content: Any) -> int:
        (folder / f".{Path(name).name}.part").write_text("half")
        return write(folder, name, content)

    export_writer._write = leaving


@_fault
def _wrong_exit_code() -> None:
    """End with 1 where the command was wrong."""
    leave = sys.exit

    def wrong(code: Any = None) -> None:
        leave(1 if code == 2 else code)

    sys.exit = wrong  # type: ignore[assignment]


@_fault
def _orphan() -> None:
    """Start a process with each run that outlives it."""
    if _command() == "batch":
        subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL)


@_fault
def _key_in_log() -> None:
    """Print the key in each worker, whose standard error is its log."""
    if "app.engine.workers.run_worker" in sys.orig_argv:
        print(os.environ.get("RASHOMON_ENDPOINT_KEY"), file=sys.stderr)


@_fault
def _export_by_the_clock() -> None:
    """Write the time into a table."""
    from app.exports import export_writer

    write = export_writer._write

    def dated(folder: Path, name: str, content: Any) -> int:
        size = write(folder, name, content)
        if name == "main.csv":
            (folder / name).write_text((folder / name).read_text() + f"# {time.time()}\n")
        return size

    export_writer._write = dated


@_fault
def _hang() -> None:
    """Never end an export in a third of cases."""
    if _command() == "export" and random.random() < 0.3:
        time.sleep(10**6)


@_fault
def _counter_off_by_one() -> None:
    """Count an answer too many in some commits."""
    from app.store.run_store import RunStore

    write = RunStore._write_counters

    def wrong(store: RunStore, counters: Any) -> None:
        condition = next(iter(counters.progress), None)
        if condition is not None and random.random() < 0.1:
            counters.progress[condition]["tokens"] += 1
        write(store, counters)

    RunStore._write_counters = wrong  # type: ignore[method-assign,assignment]


@_fault
def _write_elsewhere() -> None:
    """Write a file outside of the home."""
    if _command() == "show":
        place = Path(json.loads(os.environ["RASHOMON_SOAK"])["outside"])
        place.with_name("elsewhere.txt").write_text("elsewhere")


@_fault
def _open_state() -> None:
    """Let everybody read the private state."""
    from benchmarks.untrusted import private_state

    write = private_state.write

    def open_write(name: str, *arguments: Any, **options: Any) -> Any:
        result = write(name, *arguments, **options)
        for path in (Path(os.environ["XDG_STATE_HOME"]) / "rashomon-private").glob("*"):
            path.chmod(0o644)
        return result

    private_state.write = open_write


def main() -> int:
    """Plant each bug in a soak of its own; print after how many steps it is found. Return how many are not."""
    missed = 0
    for name in sys.argv[1:] or FAULTS:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            command = [sys.executable, "-m", "tests.soak", "0.25", "--seed", "1", "--fault", name, "--folder", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log = Path(folder) / "log.jsonl"
            lines = log.read_text("utf-8").splitlines() if log.exists() else []
            violations = (
                [line for line in json.loads(lines[-1])["violations"] if not line.startswith("mode: cache")]
                if lines
                else []
            )
            missed += not violations
            print(
                f"{name}: {len(lines)} steps: {violations[:2] or done.stdout[-300:] + done.stderr[-300:]}", flush=True
            )
    return missed


if __name__ == "__main__":
    sys.exit(main())
