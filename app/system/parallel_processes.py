"""Work divided among processes, for commands that read many runs."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")

_SECONDS = 2.0
"""The time for a process to end after an interrupt."""

_MOST = 8
"""The most processes: more of them would wait for the disk."""


def map_shares(function: Callable[[Sequence[_T]], Sequence[_R]], items: Sequence[_T], least: int = 2) -> list[_R]:
    """Return ``function(items)``, a result for each item, computed in shares of about ``least`` items or more by processes.

    ``function``, items and results must be picklable. This process computes the first share, and again each one that another
    process did not finish, so that errors are raised here.
    """
    count = max(1, min(_cores(), _MOST, len(items) // max(1, least)))
    start_up = least // 2  # this process computes as many items while another one starts
    size = max(1, (len(items) - start_up) // count)
    first = len(items) - (count - 1) * size
    shares = [items[start : start + size] for start in range(first, len(items), size)]
    helpers = [_Helper(function, share) for share in shares]
    try:
        for helper in helpers:
            helper.start()
        results = [*function(items[:first])]
        for share, helper in zip(shares, helpers, strict=True):
            result = helper.result()
            results += function(share) if result is None else result
    finally:
        _end(helpers)
    return results


class _Helper:
    """A process that computes one share. If this process is killed, it ends when it has computed it."""

    def __init__(self, function: Callable[[Any], Any], share: Any) -> None:
        self._task = pickle.dumps((function, share))
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._communicate, daemon=True)
        self._output = b""

    def start(self) -> None:
        with suppress(OSError, ValueError):  # without the process, this one computes the share
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is for this process, which ends the others
            )
            self._thread.start()

    def interrupt(self) -> None:
        """Let the process delete what it has half written, and end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def end(self, deadline: float) -> None:
        """Wait for the process until ``deadline``, and kill it then."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, deadline - time.monotonic()))
            self._process.kill()
            self._process.wait()

    def result(self) -> Any | None:
        """Return the results of the share, or None if the process did not finish it."""
        if self._process is None:
            return None
        self._thread.join()
        if self._process.returncode != 0:
            return None
        return pickle.loads(self._output)  # noqa: S301 - from our own process

    def _communicate(self) -> None:
        assert self._process is not None
        with self._process, suppress(OSError, ValueError):
            self._output = self._process.communicate(self._task)[0]


def _end(helpers: Sequence[_Helper]) -> None:
    """Interrupt all processes at once, and kill those that have not ended in time."""
    for helper in helpers:
        helper.interrupt()
    deadline = time.monotonic() + _SECONDS
    for helper in helpers:
        helper.end(deadline)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _main() -> None:
    """Compute the share from the standard input, and write its results to the standard output."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    function, share = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    results = pickle.dumps(function(share))
    sys.stdout.buffer.write(results)
    sys.stdout.buffer.flush()
    os._exit(0)  # nothing is left to do


if __name__ == "__main__":
    _main()
