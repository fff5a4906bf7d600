"""The command line as a user runs it: to its end in this process, or in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.inside import run_inside
from tests.support.json_contract import check_json

ROOT = Path(__file__).resolve().parents[2]
INJECTED = Path(__file__).resolve().parent / "injected"
READ_ONCE = ("HF_", "OMP_", "PYTHON")
"""Beginnings of variables that Python or a library reads once, when it starts."""

ORDERS_OF_WORKERS = {"abort", "calls", "capacity", "dies", "mode", "pace", "says", "seconds"}
"""Orders that only a worker follows."""


@dataclass(frozen=True)
class Rashomon:
    """`rashomon` in a workspace and a home of its own, without any network."""

    home: Path
    orders: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """More of the environment, such as keys."""

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def environment(self) -> dict[str, str]:
        inherited = {
            key: os.environ[key]
            # The last names the test to a child process: tests.mutation.
            for key in ("PATH", "LANG", "TMPDIR", "VIRTUAL_ENV", "XDG_STATE_HOME", "PYTEST_CURRENT_TEST")
            if key in os.environ
        }
        return {
            **inherited,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "RASHOMON_WORKSPACE": str(self.workspace),
            "HF_HUB_OFFLINE": "1",
            "MLX_DISABLE_COMPILE": "1",
            "COLUMNS": "200",
            "PYTHONPATH": os.pathsep.join([str(INJECTED), str(ROOT)]) if self.orders else str(ROOT),
            **({"RASHOMON_TEST_ORDERS": json.dumps(dict(self.orders))} if self.orders else {}),
            **self.variables,
        }

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "app.main", *map(str, arguments)]

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a background process as the leader of a new process group."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def on_terminal(self, *arguments: str | Path, until: str, then: Callable[[], None]) -> tuple[int, str, str]:
        """Run with standard error a terminal of 80 columns, and do ``then`` when ``until`` stands there.

        The exit code, standard output, and all that the terminal was sent.
        """
        master, slave = os.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        with subprocess.Popen(
            self.command(*arguments),
            env={**{key: value for key, value in self.environment.items() if key != "COLUMNS"}, "TERM": "xterm"},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=slave,
            text=True,
        ) as process:
            os.close(slave)
            output = ""
            with suppress(OSError):  # as Linux says that the other end is closed
                while piece := os.read(master, 4096):
                    before = until in output
                    output += piece.decode()
                    if until in output and not before:
                        then()
            os.close(master)
            assert process.stdout is not None
            return process.wait(), process.stdout.read(), output

    def run(self, *arguments: str | Path, code: int | Container[int] = 0) -> subprocess.CompletedProcess[str]:
        """Run to the end in this process; fails unless the exit code is (in) ``code``, which a line explains, or on a traceback.

        Orders change a process for good: workers with orders are real ones. With other orders, or variables that are read
        once, the command is a process of its own, as :meth:`process` always is.
        """
        if self.orders.keys() - ORDERS_OF_WORKERS or any(name.startswith(READ_ONCE) for name in self.variables):
            return self.process(*arguments, code=code)
        words = [*map(str, arguments)]
        done = run_inside(words, self.environment, self.home, real_workers=bool(self.orders))
        return self._checked(words, subprocess.CompletedProcess(self.command(*arguments), *done), code)

    def json(self, *arguments: str | Path, code: int = 0) -> Any:
        """Return the result that :meth:`run` prints with ``--json``, without its envelope."""
        return json.loads(self.run(*arguments, "--json", code=code).stdout)["result"]

    def process(self, *arguments: str | Path, code: int | Container[int] = 0) -> subprocess.CompletedProcess[str]:
        """The same in a process of its own, whose worker is another."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return self._checked([*map(str, arguments)], done, code)

    def _checked(
        self, words: list[str], done: subprocess.CompletedProcess[str], code: int | Container[int]
    ) -> subprocess.CompletedProcess[str]:
        _check_exit(done, code)
        check_json(words, done.stdout, (self.workspace, self.home))
        return done

    def ordered(self, **orders: Any) -> Rashomon:
        """The same home with other orders."""
        return Rashomon(self.home, orders, self.variables)

    def held(self, **orders: Any) -> Rashomon:
        """The same home, where a worker gives eight answers and no more until :meth:`go_on`, however busy the machine is."""
        return self.ordered(gate={"after": 8, "until": str(self.home / "go")}, **orders)

    def go_on(self) -> None:
        """Release the held workers."""
        (self.home / "go").touch()


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _check_exit(done: subprocess.CompletedProcess[str], code: int | Container[int]) -> None:
    report = f"{done.args}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, report
    assert done.returncode in ((code,) if isinstance(code, int) else code), (
        f"exit code {done.returncode}, not {code}\n{report}"
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("rashomon: ")]
    assert len(lines) == (done.returncode != 0), f"{len(lines)} lines on standard error say why\n{report}"


def children_of(pid: int) -> list[int]:
    """Return the running children of a process."""
    if Path("/proc/self/stat").exists():
        table = list(_proc_table())
    else:
        process = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True)
        table = process.stdout.splitlines()
    pairs = (line.split() for line in table)
    return [int(child) for parent, child in pairs if int(parent) == pid]


def _proc_table() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                yield (entry / "stat").read_text().rpartition(")")[2].split()[1] + " " + entry.name


def kill_all(process: subprocess.Popen[str]) -> str:
    """Send SIGKILL to a process and its workers at almost the same moment, and return what it had printed.

    They have ended when this does: their locks are free.
    """
    pids = (*children_of(process.pid), process.pid)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    output = process.communicate()[0]
    while any(map(_runs, pids)):
        time.sleep(0.005)
    return output


def _runs(pid: int) -> bool:
    """Return True if a thread of the process is still running, as opposed to ended but not yet reaped."""
    if Path("/proc/self/stat").exists():
        with suppress(FileNotFoundError, ProcessLookupError):
            threads = [thread.joinpath("stat").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()]
            return any(stat.rpartition(")")[2].split()[0] not in "ZX" for stat in threads)
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
