"""``python -m tests.support.media_apart``: read the media that standard input names, as builds and screens do.

A line of JSON for each: what came of it, the longest processor and wall time of a step, and how far the memory of this process
and of its child grew, each beyond what its libraries take; memory is measured on Linux only.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.errors import MediaError
from benchmarks.media.media_decoder import _decoder
from benchmarks.media.media_previews import check_media, media_pictures, preview
from benchmarks.vocabulary import Modality
from tests.support.media import sound, video
from tests.support.media_bombs import Medium, ascii_ply


def _child() -> int:
    """The process id of the child that decodes, or 0."""
    child = _decoder()._child
    return child.pid if child is not None and child.poll() is None else 0


def _status(process: int, field: str) -> int:
    """Bytes of a process, now ("VmRSS") or at most ("VmHWM"); what getrusage reports counts the process that started it."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024
    return 0


def _forget_peak(process: int) -> None:
    """Let the largest memory of a process be what it has now."""
    with suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text("5")


def _child_seconds(process: int) -> float:
    with suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _child_seconds(_child())


class _PeakWatch(threading.Thread):
    """The largest memory of whatever child decodes, looked at often, since a child that is ended leaves no other measure."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.01)

    def look(self) -> None:
        child = _decoder()._child
        if child is not None:
            self.peak = max(self.peak, _status(child.pid, "VmHWM"))


def main() -> None:
    import PIL.Image  # noqa: F401

    ordinary: tuple[Medium, ...] = (
        (sound(0.1), ".wav", "audio"),
        (video(2), ".mp4", "video"),
        (ascii_ply(3, 1), ".ply", "point_cloud"),
    )
    for medium in ordinary:
        for step in _steps(*medium):
            step()
    baseline = _status(_child(), "VmRSS")  # by now it has all libraries
    watch = _PeakWatch()
    watch.start()
    for line in sys.stdin:
        file, suffix, modality = json.loads(line)
        data = Path(file).read_bytes()
        before = _status(os.getpid(), "VmRSS")
        for process in (os.getpid(), _child()):
            _forget_peak(process)
        watch.peak = 0
        message, longest, wall = "read", 0.0, 0.0
        for step in _steps(data, suffix, modality):
            began, clock = _seconds(), time.monotonic()
            try:
                step()
            except MediaError as error:
                message = f"refused: {error.reason}"
            longest, wall = max(longest, _seconds() - began), max(wall, time.monotonic() - clock)
        watch.look()
        result = {
            "file": file,
            "said": message,
            "seconds": longest,
            "wall": wall,
            "grown": max(0, _status(os.getpid(), "VmHWM") - before),
            "child": max(0, watch.peak - baseline),
        }
        print(json.dumps(result), flush=True)


def _steps(data: bytes, suffix: str, modality: Modality) -> list[Callable[[], object]]:
    steps: list[Callable[[], object]] = [
        partial(check_media, data, suffix, modality),
        partial(preview, data, suffix, modality, 200),
    ]
    if modality in ("video", "point_cloud"):
        steps.append(partial(media_pictures, data, suffix, modality))
    return steps


if __name__ == "__main__":
    main()
