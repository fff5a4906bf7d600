"""``python -m tests.support.media_apart``: read the media that standard input names, as builds and screens do.

A line of JSON for each: what came of it; the longest processor time of a step; how far this process's memory grew beyond the
file's own bytes, and the largest memory of its child, where the system tells it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.errors import MediaError
from benchmarks.media.reading import _reader
from benchmarks.media.show import check, glance, pictures

_UNIT = 1 if sys.platform == "darwin" else 1024


def _child() -> tuple[float, int]:
    """Processor time and largest memory of the child there is."""
    child = _reader()._child
    if child is None:
        return 0.0, 0
    with suppress(OSError, StopIteration, IndexError, ValueError):
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak * 1024
    return 0.0, 0


def _memory(which: str) -> int:
    """Bytes of this process, now ("VmRSS") or at most ("VmHWM"); what getrusage tells counts the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(which)) * 1024


def _seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _child()[0]


def main() -> None:
    import PIL.Image  # noqa: F401

    for line in sys.stdin:
        file, suffix, modality = json.loads(line)
        before = _memory("VmRSS")
        data = Path(file).read_bytes()
        steps: list[Callable[[], object]] = [
            partial(check, data, suffix, modality),
            partial(glance, data, suffix, modality, 200),
        ]
        if modality in ("video", "point_cloud"):
            steps.append(partial(pictures, data, suffix, modality))
        said, longest, wall = "read", 0.0, 0.0
        for step in steps:
            began, clock = _seconds(), time.monotonic()
            try:
                step()
            except MediaError as error:
                said = f"refused: {error.reason}"
            longest, wall = max(longest, _seconds() - began), max(wall, time.monotonic() - clock)
        grown = _memory("VmHWM") - before - len(data)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _UNIT
        result = {"file": file, "said": said, "seconds": longest, "wall": wall, "grown": max(0, grown)}
        print(json.dumps({**result, "child": max(ended, _child()[1])}), flush=True)


if __name__ == "__main__":
    main()
