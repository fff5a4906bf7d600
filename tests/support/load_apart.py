"""``python -m tests.support.load_apart``: load each model folder that standard input names, in a process of its own.

A line of JSON for each: what came of it, the seconds of processor time, and how far its memory went beyond the libraries'.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Decoding, Media, Message, Part, Request, Text
from mlx_backends.engine_registry import load_backend

LATEST = 60.0
_UNIT = 1 if sys.platform == "darwin" else 1024


def _attempt(folder: str, picture: str) -> str:
    try:
        backend = load_backend(folder, lambda media: Path(picture))
        parts: list[Part] = [Text("What?")]
        if "image" in backend.info.takes:
            parts.insert(0, Media(Path(picture).stem, ".png"))
        backend.submit(Request("x", 0, (Message("user", tuple(parts)),), Decoding(max_tokens=4)))
        while not (done := backend.step()):
            pass
    except ModelError as error:
        return f"ModelError: {error}"
    return f"answered: {done[0].finish_reason} {done[0].error or ''}"


def _resident() -> int:
    """Bytes of memory that this process has now, and so a fork of it; on macOS the most that it had."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


def main() -> None:
    import mlx_lm  # noqa: F401
    import mlx_vlm.utils  # noqa: F401
    import transformers.models.auto.processing_auto  # noqa: F401

    for line in sys.stdin:
        folder, picture = json.loads(line)
        before = _resident()
        reading, writing = os.pipe()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            os.write(writing, _attempt(folder, picture).encode("utf-8", "replace")[:2000])
            os._exit(0)
        os.close(writing)
        ended, status = 0, 0
        while not ended and time.monotonic() - began < LATEST:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            time.sleep(0.02)
        if not ended:
            os.kill(child, 9)
            _, status, usage = os.wait4(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            message = pipe.read().decode() if ended else "hangs"
        result = {
            "folder": folder,
            "said": message or f"died: {os.waitstatus_to_exitcode(status)}",
            "seconds": usage.ru_utime + usage.ru_stime,
            "wall": time.monotonic() - began,
            "grown": usage.ru_maxrss * _UNIT - before,
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
