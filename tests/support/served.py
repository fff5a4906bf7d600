"""Real OpenAI-compatible servers on this machine: of mlx-vlm, and of vLLM where it is installed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tests.support.trust import agree_to

VLLM = "RASHOMON_VLLM"
"""The variable with the path of the command ``vllm``, where that is not installed beside this Python."""

_VLLM_OPTIONS = (
    *("--dtype", "float32"),
    *("--generation-config", "vllm"),
    *("--max-model-len", "2048"),
    *("--max-num-seqs", "4"),
    "--enforce-eager",
    "--no-enable-log-requests",
)


@contextmanager
def served(model: Path, log: Path, port: int | None = None, *options: str) -> Iterator[int]:
    """mlx-vlm's server of ``model``: the port at which it is ready; it is gone after the block. Its output goes to ``log``."""
    with served_by_process(model, log, port, *options) as (port, _):
        yield port


@contextmanager
def served_by_process(
    model: Path, log: Path, port: int | None = None, *options: str
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The same with the server's process, whose whole group can be killed."""
    port = port or _free_port()
    command = [sys.executable, "-m", "mlx_vlm", "server", "--model", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), *options]
    with _serving(command, {"MLX_DISABLE_COMPILE": "1"}, log, port, seconds=120) as process:
        yield port, process


def vllm_command() -> list[str] | None:
    """Return the command of vLLM on this machine; None if there is none."""
    if path := os.environ.get(VLLM):
        return [path]
    return [sys.executable, "-m", "vllm.entrypoints.cli.main"] if find_spec("vllm") else None


@contextmanager
def served_by_vllm(model: Path, log: Path, port: int | None = None) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """vLLM's server of ``model`` in fp32: the port and the process, whose whole group can be killed."""
    command = vllm_command()
    assert command is not None
    port = port or _free_port()
    command += ["serve", str(model), "--host", "127.0.0.1", "--port", str(port), *_VLLM_OPTIONS]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "TRANSFORMERS_OFFLINE": "1"}
    with _serving(command, settings, log, port, seconds=900) as process:
        yield port, process


@contextmanager
def _serving(
    command: Sequence[str], settings: Mapping[str, str], log: Path, port: int, *, seconds: float
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **settings}
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
        try:
            until = time.monotonic() + seconds
            while not _answers(f"http://127.0.0.1:{port}/health"):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            agree_to(f"http://127.0.0.1:{port}")
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a server with all of its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1)
    except OSError:
        return False
    return True
