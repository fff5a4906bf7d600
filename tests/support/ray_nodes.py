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
from tests.support.machines import Machines

OBJECT_STORE_BYTES = 80 << 20
SECONDS = 150.0


class RayNodes:
    """The nodes of a cluster, each a ``ray start`` of its own: the head, which takes no work, and others with a CPU each.

    With a ``network``, each is on a machine of it, the head on the first.
    """

    def __init__(
        self, environment: Mapping[str, str], logs: Path, *, workers: int, network: Machines | None = None
    ) -> None:
        self.environment = dict(environment)
        self._network = network
        self.address = f"{self._host(0)}:{free_port()}"
        self.client_port = free_port()
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self.head = self.start_head()
            self.nodes = [self.add() for _ in range(workers)]
        except BaseException:
            self.close()
            raise

    @property
    def client_address(self) -> str:
        """The address of the head for machines that are no nodes."""
        return f"ray://{self._host(0)}:{self.client_port}"

    def start_head(self) -> subprocess.Popen[bytes]:
        """Start the head, at the same address as an earlier one."""
        port = self.address.rpartition(":")[2]
        ports = (f"--port={port}", f"--ray-client-server-port={self.client_port}")
        return self._start("--head", "--include-dashboard=false", *ports, number=0, cpus=0)

    def add(self, **environment: str) -> subprocess.Popen[bytes]:
        """Add a node, with more of an environment."""
        return self._start(f"--address={self.address}", number=len(self._processes), cpus=1, **environment)

    def _host(self, number: int) -> str:
        # As 127.0.0.1, a node of a cluster of several machines would listen on all addresses.
        return f"127.0.0.{number + 2}" if self._network is None else self._network.address(number)

    def _start(self, *arguments: str, number: int, cpus: int, **environment: str) -> subprocess.Popen[bytes]:
        command = [
            *(() if self._network is None else self._network.prefix(number)),
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
            f"--node-ip-address={self._host(number)}",
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
        family = {pid for process in self._processes if process.poll() is None for pid in family_of(process.pid)}
        return [pid for pid, title in _titles() if pid in family and title.startswith("ray::RayWorker")]

    def remove(self, node: subprocess.Popen[bytes]) -> None:
        """Kill a node with all of its processes."""
        for pid in family_of(node.pid):
            kill(pid)
        node.wait()

    def close(self) -> None:
        for process in reversed(self._processes):
            self.remove(process)


def family_of(pid: int) -> list[int]:
    """A process and its descendants."""
    return [pid, *(descendant for child in children_of(pid) for descendant in family_of(child))]


def hang(pid: int) -> None:
    """Stop a process without ending it."""
    os.kill(pid, signal.SIGSTOP)


def kill(pid: int) -> None:
    """End a process as a crash does."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Return True if there is a process that has not ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


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
def ray_nodes(
    environment: Mapping[str, str], logs: Path, *, workers: int, token: bool = True, network: Machines | None = None
) -> Iterator[RayNodes]:
    """A cluster, with token authentication unless told otherwise; all of its processes end with the block."""
    # A busy machine takes longer than Ray's half a minute, above all if Ray lets its workers wait for all others.
    patient = {"RAY_raylet_start_wait_time_s": "120", "RAY_worker_niceness": "0"}
    authentication = {"RAY_AUTH_MODE": "disabled"}
    if token:
        authentication = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    nodes = RayNodes({**environment, **patient, **authentication}, logs, workers=workers, network=network)
    try:
        yield nodes
    finally:
        nodes.close()
