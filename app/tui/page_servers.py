"""The page in the browser: `rashomon view` processes that end with the interface."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple
from urllib.parse import quote

from app.system.numpy_threads import user_environment
from benchmarks.errors import STOPPED, RashomonError

_MOST = 3
"""The number of servers that run at a time; the oldest one makes room for another."""
_PATIENCE = 5.0
"""The seconds that a server has to end."""


class ServedPage(NamedTuple):
    """Contents of a server: runs of a workspace, the judge and the rule on what should win; empty where none was chosen."""

    workspace: Path
    folders: tuple[Path, ...]
    judge: str = ""
    rule: str = ""


class NoPageError(RashomonError):
    """The page cannot be served."""

    exit_code = STOPPED


class PageServers:
    """The servers of this session, one for each page. Thread-safe."""

    def __init__(self) -> None:
        self._servers: dict[ServedPage, tuple[subprocess.Popen[str], str]] = {}
        self._lock = Lock()
        self._closed = False

    def link(self, page: ServedPage, instance: str = "") -> str:
        """Return the link to a page at an instance, once it is served. It opens in the browser that opened the page first.

        Raises:
            NoPageError: If it cannot be served.
        """
        with self._lock:
            process, link = self._servers.pop(page, (None, ""))
            if process is None or process.poll() is not None:
                process, link = self._start(page)
            self._servers[page] = process, link
            while len(self._servers) > _MOST or (self._closed and self._servers):
                _end(self._servers.pop(next(iter(self._servers)))[0])
            return f"{link}#id={quote(instance, errors='replace')}" if instance else link

    def _start(self, page: ServedPage) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-P", "-m", "app.main", "--workspace", str(page.workspace), "view", "--no-browser"]
        options = (("judge", page.judge), ("trust", page.rule))
        command += [f"--{name}={value}" for name, value in options if value]
        command += ["--", *map(str, page.folders)]
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
