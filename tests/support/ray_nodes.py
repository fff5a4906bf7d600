"""A real Ray cluster on this machine, of several nodes, each a process."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.command import children_of, free_port

OBJECT_STORE_BYTES = 80 << 20
SECONDS = 60.0


class RayNodes:
    """The nodes of a cluster, each a ``ray start`` of its own: the head, which takes no work, and others with a CPU each."""

    def __init__(self, environment: Mapping[str, str], logs: Path, *, workers: int) -> None:
        self.environment = dict(environment)
        self.address = f"127.0.0.2:{free_port()}"
        self.client_port = free_port()
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        head = ("--head", "--include-dashboard=false", f"--port={port}", f"--ray-client-server-port={self.client_port}")
        try:
            self._start(*head, cpus=0)
            self.nodes = [self.add() for _ in range(workers)]
        except BaseException:
            self.close()
            raise

    @property
    def client_address(self) -> str:
        """The address of the head for machines that are no nodes."""
        return f"ray://127.0.0.2:{self.client_port}"

    def add(self, **environment: str) -> subprocess.Popen[bytes]:
        """Add a node, with more of an environment."""
        return self._start(f"--address={self.address}", cpus=1, **environment)

    def _start(self, *arguments: str, cpus: int, **environment: str) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
            f"--node-ip-address=127.0.0.{len(self._processes) + 2}",  # as 127.0.0.1, it would listen on all addresses
            f"--num-cpus={cpus}",
            f"--object-store-memory={OBJECT_STORE_BYTES}",
            *arguments,
        ]
        log = self._logs / f"node-{len(self._processes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        until = time.monotonic() + SECONDS
        while b"Ray runtime started" not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        return process

    def actors(self) -> list[int]:
        """The processes that are workers on the nodes."""
        family = {pid for process in self._processes if process.poll() is None for pid in _family(process.pid)}
        return [pid for pid, title in _titles() if pid in family and title.startswith("ray::RayWorker")]

    def remove(self, node: subprocess.Popen[bytes]) -> None:
        """Kill a node with all of its processes."""
        for pid in _family(node.pid):
            kill(pid)
        node.wait()

    def close(self) -> None:
        for process in reversed(self._processes):
            self.remove(process)


def _family(pid: int) -> list[int]:
    return [pid, *(descendant for child in children_of(pid) for descendant in _family(child))]


def hang(pid: int) -> None:
    """Stop a process without ending it."""
    os.kill(pid, signal.SIGSTOP)


def kill(pid: int) -> None:
    """End a process as a crash does."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _titles() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


@contextmanager
def ray_nodes(environment: Mapping[str, str], logs: Path, *, workers: int, token: bool = True) -> Iterator[RayNodes]:
    """A cluster, with token authentication unless told otherwise; all of its processes end with the block."""
    authentication = {"RAY_AUTH_MODE": "disabled"}
    if token:
        authentication = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    nodes = RayNodes({**environment, **authentication}, logs, workers=workers)
    try:
        yield nodes
    finally:
        nodes.close()
