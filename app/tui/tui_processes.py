"""Processes that the interface starts, and control of the workspace's runs.

A process is `rashomon` itself in a session of its own, with empty input and its output in a log file, so that it survives a
closed terminal and the end of the interface.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.engine.batch_runs import read_batch
from app.engine.run_control import batch_pid, kill_worker, pause, stop_batch, stop_run, unpause
from app.exit_codes import VERDICTS
from app.fetch.fetch_execution import PROGRESS_LINE
from app.store.run_store import RunStore
from app.store.run_summary import supervised_worker
from app.store.workspace import Workspace
from app.system.numpy_threads import user_environment
from benchmarks.errors import NoAccessError
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, open_read, open_write

_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class FailedProcess:
    """A process that failed: its `rashomon` command, its exit code, and the last line of its log."""

    command: str
    code: int
    last_line: str


@dataclass(slots=True)
class Job:
    """A process with its log, its `rashomon` command, and the names of the runs that it was started for."""

    process: subprocess.Popen[bytes]
    log: Path
    command: str
    attended: bool = True
    """True while a dialog reports its end."""
    runs: Collection[str] = ()

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll()

    def output(self) -> str:
        """Return the end of what it has printed, which may be hostile; of a line that it rewrote, the last version."""
        lines = _tail(self.log).split("\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).strip("\n")

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does, so that it keeps what is complete."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)


class RunProcesses:
    """The processes that this interface started, and control of any run of the workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._processes: list[Job] = []
        self._stopping: set[int] = set()  # the batches that were told to stop

    def start(self, arguments: Sequence[str], *, runs: Collection[str] = ()) -> Path:
        """Start `rashomon` with ``arguments``, such as ``["batch", "spec.toml"]``, and return the path of its log.

        ``runs`` are the names of the runs that it starts or resumes. Its progress appears in the workspace; a failure, in
        :meth:`failures`.

        Raises:
            StoreError: If the log cannot be written.
        """
        job = self.start_job([*arguments, "--display", "plain"])
        job.attended, job.runs = False, runs
        return job.log

    def start_job(self, arguments: Sequence[str]) -> Job:
        """Start `rashomon` with ``arguments``; the caller reports its end while it is attended.

        Raises StoreError, also for an opened bundle.
        """
        self.workspace.require_writable()
        folder = self.workspace.path / "jobs"
        log = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(self.workspace.path), *arguments]
        try:
            self.workspace.path.mkdir(parents=True, exist_ok=True)
            make_folder(self.workspace.path, folder.name)
            with open_write(folder, log.name, new=True) as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    env={**user_environment(), PROGRESS_LINE: "1"},
                )
        except OSError as error:
            raise NoAccessError(f"cannot write {folder}: {error.strerror}; make it writable.") from error
        job = Job(process, log, arguments[0])
        self._processes.append(job)
        return job

    def resume(self, folder: Path, agreed: Sequence[str] = ()) -> None:
        """Resume a run: unpause it if a process works on it, else start `rashomon resume`.

        ``agreed`` are addresses that the user agrees to. Raises StoreError.
        """
        RunStore.require_own(folder)
        if not unpause(folder):
            self.start(["resume", str(folder), *allow_address_options(agreed)], runs=(folder.name,))

    def will_start(self, folder: Path, state: str) -> bool:
        """Return whether a process is about to start or resume the run in ``folder``, which is in this ``state``.

        It takes seconds until a process that was started here reaches its run; a batch starts its planned runs in turn.
        """
        jobs = [job for job in self._processes if folder.name in job.runs and job.code is None]
        if state == "planned":
            return bool(jobs or read_batch(folder) or supervised_worker(folder) is not None)
        return any(job.command == "resume" for job in jobs)

    def pause(self, folder: Path) -> None:
        """Pause a run once the answers in progress are stored. Raises StoreError."""
        pause(folder)

    def stop(self, folder: Path) -> None:
        """Stop a run after its next answer. Raises StoreError."""
        stop_run(folder)

    def stop_batch(self, folder: Path) -> None:
        """Stop a run after its next answer, and its batch with it. Raises StoreError."""
        batch = batch_pid(folder)
        stop_batch(folder)
        self._stopping |= {batch} if batch is not None else set()

    def is_stopping(self, folder: Path) -> bool:
        """Return whether a run's batch was told to stop here, and waits for the run's worker."""
        return batch_pid(folder) in self._stopping

    def kill(self, folder: Path) -> None:
        """Kill the worker of a run whose batch was told to stop. Raises StoreError."""
        kill_worker(folder)

    def stop_all(self, folders: Sequence[Path]) -> None:
        """Stop every process started here, and whatever process works on these runs. Raises StoreError."""
        for started in self._processes:
            if started.process.poll() is None:
                started.process.terminate()
        for folder in folders:
            stop_batch(folder, exclude=[started.process.pid for started in self._processes])

    def failures(self) -> list[FailedProcess]:
        """Return the processes that have failed since the last call."""
        failed = []
        for started in list(self._processes):
            code = started.process.poll()
            if code is not None:
                self._processes.remove(started)
                if code not in (*VERDICTS, 130) and not started.attended:
                    failed.append(FailedProcess(started.command, code, _last_line(started.log)))
        return failed

    def running_count(self) -> int:
        """Return the number of started processes that are still running."""
        return sum(started.process.poll() is None for started in self._processes)


def allow_address_options(addresses: Sequence[str]) -> list[str]:
    """Return the command-line options that agree to addresses."""
    return [word for address in addresses for word in ("--allow-address", address)]


def _tail(log: Path) -> str:
    """Return the end of a log; empty if it cannot be read."""
    try:
        with open_read(log.parent, log.name) as stream:
            stream.seek(-min(_TAIL_BYTES, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            return stream.read().decode("utf-8", "replace")
    except (OSError, UnsafeFileError):
        return ""


def _last_line(log: Path) -> str:
    return next((line for line in reversed(_tail(log).splitlines()) if line.strip()), "")
