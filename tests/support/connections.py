"""Connections of a command and of every process that it starts, recorded by strace; the command itself has no network.

Seen are all system calls of all processes and threads, whatever their language. Not seen is what another program does on request,
such as a resolver behind a socket of the file system; such sockets are recorded too, by their paths.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CALLS = "connect,sendto,sendmsg,sendmmsg"
_PLACE = re.compile(
    r"sa_family=(AF_INET6?), sin6?_port=htons\((\d+)\).*?(?:inet_addr\(\"|inet_pton\(AF_INET6, \")([^\"]+)\""
)
_PATH = re.compile(r"sa_family=AF_UNIX, sun_path=@?\"([^\"]+)\"")


@dataclass(frozen=True)
class Recording:
    """The end of a command: its exit code, output, and the connections that were tried, as HOST:PORT or a path."""

    code: int
    output: str
    connections: frozenset[str]


@cache
def can_record(*, network: bool = False) -> bool:
    """Return whether strace, and unless with the ``network`` a network namespace, can be used here."""
    command = [*(() if network else _WITHOUT_NETWORK), "strace", "-f", "-qq", "-e", f"trace={_CALLS}", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


_WITHOUT_NETWORK = ("unshare", "-rn")


def traced(command: Sequence[str], trace: Path, *, network: bool = False) -> list[str]:
    """Return the command that runs ``command`` and records its connections in ``trace``, which is removed first."""
    trace.unlink(missing_ok=True)
    strace = shutil.which("strace") or "strace"
    options = ("-f", "-qq", "--seccomp-bpf", "-s", "120", "-e", f"trace={_CALLS}", "-o", str(trace))
    return [*(() if network else _WITHOUT_NETWORK), strace, *options, *command]


def connections(trace: Path) -> frozenset[str]:
    """Return the connections of a recording, as HOST:PORT or a path."""
    text = trace.read_text("utf-8", "replace") if trace.exists() else ""
    places = {
        f"[{host}]:{port}" if kind == "AF_INET6" else f"{host}:{port}" for kind, port, host in _PLACE.findall(text)
    }
    return frozenset({*places, *_PATH.findall(text)})


def record(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, trace: Path, *, network: bool = False
) -> Recording:
    """Run ``command`` in ``folder`` to its end, in a namespace without any network unless it gets one."""
    done = subprocess.run(
        traced(command, trace, network=network),
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    return Recording(done.returncode, done.stdout + done.stderr, connections(trace))
