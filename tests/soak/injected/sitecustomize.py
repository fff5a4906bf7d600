"""Loaded by every Python process of a soak: a clock that is wrong, notes on changes outside of the home, planted faults."""

import json
import os
import sys
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.chmod", "os.truncate"}
_ELSEWHERE = ("/dev/", "/proc/")


def _set_clock(wrong_by: float, jump_after: float, jump_by: float) -> None:
    import time

    start, real, real_ns = time.monotonic(), time.time, time.time_ns

    def shift() -> float:
        return wrong_by + (jump_by if time.monotonic() - start > jump_after else 0)

    time.time = lambda: real() + shift()
    time.time_ns = lambda: real_ns() + int(shift() * 1e9)
    for name in ("localtime", "gmtime"):
        original = getattr(time, name)
        setattr(
            time, name, lambda seconds=None, original=original: original(time.time() if seconds is None else seconds)
        )


def _watch_outside(home: str, notes: str) -> None:
    allowed = (os.path.realpath(home) + os.sep, *_ELSEWHERE)
    busy: list[str] = []

    def outside(path: object) -> bool:
        if not isinstance(path, (str, bytes)):
            return False
        text = os.fsdecode(path)
        if not text.startswith("/"):
            return False
        return not os.path.realpath(text).startswith(allowed) and os.path.realpath(text) != allowed[0].rstrip("/")

    def hook(event: str, arguments: Any) -> None:
        if busy or not (event in _CHANGES or event == "open"):
            return
        if event == "open" and not (arguments[2] and arguments[2] & _WRITES):
            return
        busy.append(event)
        try:
            paths = (
                arguments[:2]
                if event in ("os.rename", "os.link")
                else arguments[1:2]
                if event == "os.symlink"
                else arguments[:1]
            )
            for path in filter(outside, paths):
                with open(notes, "a", encoding="utf-8", errors="replace") as file:
                    file.write(f"{event} {os.fsdecode(path)}\n")
        finally:
            busy.clear()

    sys.addaudithook(hook)


def _start() -> None:
    import faulthandler
    import signal

    orders = json.loads(os.environ["RASHOMON_SOAK"])
    if any(orders["clock"]):
        _set_clock(*orders["clock"])
    _watch_outside(orders["home"], orders["outside"])
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    if orders["fault"]:
        from tests.soak.planted_faults import plant

        plant(orders["fault"])


if "RASHOMON_SOAK" in os.environ:
    _start()
