"""A real OpenAI-compatible server on this machine: `python -m mlx_vlm server`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.trust import agree_to


@contextmanager
def served(model: Path, log: Path, port: int | None = None, *options: str) -> Iterator[int]:
    """The server of ``model``, ready, at the port that is yielded; it is gone after the block. Its output goes to ``log``."""
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "mlx_vlm",
        "server",
        "--model",
        str(model),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    command += options
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "MLX_DISABLE_COMPILE": "1"}
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            until = time.monotonic() + 120
            while not _answers(f"http://127.0.0.1:{port}/health"):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            agree_to(f"http://127.0.0.1:{port}")
            yield port
        finally:
            process.terminate()
            process.wait(30)


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1)
    except OSError:
        return False
    return True
