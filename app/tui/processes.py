"""Starting, pausing, stopping and resuming runs from the interface. What is started outlives it.

A job is `rashomon` itself in a process of its own session, its input empty and its output in a file, so that neither a closed
terminal nor the end of the interface reaches it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.engine.workers.run_control import pause, stop_batch, stop_run, unpause
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import StoreError
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, open_read, open_write

_TAIL = 1 << 16


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """A job that ended otherwise than well: its exit code and the last line it said."""

    command: str
    code: int
    said: str


@dataclass(slots=True)
class _Started:
    process: subprocess.Popen[bytes]
    log: Path
    command: str


class RunProcesses:
    """The jobs that this interface started, and what can be done to any run of the workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._started: list[_Started] = []

    def start(self, arguments: Sequence[str]) -> Path:
        """Start `rashomon` with ``arguments``, such as ``["batch", "spec.toml"]``; its log. Raises StoreError.

        Whether it began well shows in the workspace, and in :meth:`ended`.
        """
        folder = self.workspace.path / "jobs"
        log = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(self.workspace.path), *arguments]
        try:
            self.workspace.path.mkdir(parents=True, exist_ok=True)
            make_folder(self.workspace.path, folder.name)
            with open_write(folder, log.name, new=True) as output:
                process = subprocess.Popen(
                    [*command, "--display", "plain"],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            raise StoreError(f"cannot write {folder}: {error.strerror}; it must be writable.") from error
        self._started.append(_Started(process, log, arguments[0]))
        return log

    def resume(self, folder: Path, agreed: Sequence[str] = ()) -> None:
        """Resume a run: lift its pause if a process works on it, else start `rashomon resume`.

        ``agreed`` are addresses that the user agrees to. Raises StoreError.
        """
        RunStore.require_own(folder)
        if not unpause(folder):
            self.start(["resume", str(folder), *allowing(agreed)])

    def pause(self, folder: Path) -> None:
        """Have the process that works on a run wait after the answers under way. Raises StoreError."""
        pause(folder)

    def stop(self, folder: Path) -> None:
        """Have the process that works on a run stop at the next answer. Raises StoreError."""
        stop_run(folder)

    def stop_batch(self, folder: Path) -> None:
        """Have the process that works on a run stop at the next answer, and its batch begin no other. Raises StoreError."""
        stop_batch(folder)

    def stop_all(self, folders: Sequence[Path]) -> None:
        """Stop what was started here, and what works on these runs, whoever started it. Raises StoreError."""
        for job in self._started:
            if job.process.poll() is None:
                job.process.terminate()
        for folder in folders:
            stop_batch(folder, but=[job.process.pid for job in self._started])

    def ended(self) -> list[EndedProcess]:
        """The jobs that have ended with a failure since the last call."""
        found = []
        for job in list(self._started):
            code = job.process.poll()
            if code is not None:
                self._started.remove(job)
                if code not in (0, 130):
                    found.append(EndedProcess(job.command, code, _last_line(job.log)))
        return found

    def going_on(self) -> int:
        """How many of the started jobs have not ended."""
        return sum(job.process.poll() is None for job in self._started)


def allowing(addresses: Sequence[str]) -> list[str]:
    """Return the options that agree to addresses."""
    return [word for address in addresses for word in ("--allow-address", address)]


def _last_line(log: Path) -> str:
    try:
        with open_read(log.parent, log.name) as stream:
            stream.seek(-min(_TAIL, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except (OSError, UnsafeFileError):
        return ""
    return next((line for line in reversed(lines) if line.strip()), "")
