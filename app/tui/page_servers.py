"""The page in the browser: `rashomon view` processes that end with the interface."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from app.store.workspace import Workspace
from app.system.blas import user_environment
from benchmarks.errors import STOPPED, RashomonError

_MOST = 3
"""The number of servers that run at a time; the oldest one makes room for another."""
_PATIENCE = 5.0
"""The seconds that a server has to end."""

_Key = tuple[Path, tuple[Path, ...], str]


class NoPageError(RashomonError):
    """The page cannot be served."""

    exit_code = STOPPED


class PageServers:
    """The servers of this session, by workspace, runs and instance. Thread-safe."""

    def __init__(self) -> None:
        self._servers: dict[_Key, tuple[subprocess.Popen[str], str]] = {}
        self._lock = Lock()
        self._closed = False

    def link(self, workspace: Workspace, folders: Sequence[Path], instance: str = "") -> str:
        """Return the link to the page of these runs at an instance, once it is served.

        Raises:
            NoPageError: If it cannot be served.
        """
        with self._lock:
            key = workspace.path, tuple(folders), instance
            process, link = self._servers.pop(key, (None, ""))
            if process is None or process.poll() is not None:
                process, link = self._start(*key)
            self._servers[key] = process, link
            while len(self._servers) > _MOST or (self._closed and self._servers):
                _end(self._servers.pop(next(iter(self._servers)))[0])
            return link

    def _start(self, workspace: Path, folders: Sequence[Path], instance: str) -> tuple[subprocess.Popen[str], str]:
        at = [f"--at={instance}"] if instance else []
        command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(workspace)]
        command += ["view", "--no-browser", *at, "--", *map(str, folders)]
        # It stays in this terminal's session, so that it ends with the terminal, too.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=user_environment(),
        )
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            if line.startswith("http://"):
                Thread(target=deque, args=(process.stdout, 0), daemon=True).start()  # so that it can go on printing
                return process, line.strip()
            last = line.strip() or last
        process.wait()
        raise NoPageError(f"the page cannot be served: {last or f'code {process.returncode}'}")

    def close(self) -> None:
        """End all servers."""
        self._closed = True
        for process, _ in list(self._servers.values()):
            _end(process)
        self._servers.clear()


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
        return
    process.kill()
