"""Answering and perfect sharing by turns of a second, each while the other stands still: a machine's speed drifts in minutes."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.vocabulary import Generation, Request
from mlx_backends.base import Backend
from tests.performance.measuring import count_answers, timed
from tests.performance.perfect_sharing import PerfectSharing
from tests.support.command import ROOT, children_of

TURN_SECONDS = 1.0
POLL_SECONDS = 0.02
COMPARED_ANSWERS = 8
"""More answers than a run gives one at a time before its first batch, to compare the batch with."""


@dataclass(frozen=True)
class Turns:
    """Seconds of a process without those that it stood still, and of perfect sharing; ``later`` is after the first batch."""

    seconds: float
    later: float
    perfect: float
    perfect_later: float


@dataclass(frozen=True)
class EngineTurns:
    """The answers of an engine, its seconds, and those of perfect sharing."""

    generations: Sequence[Generation]
    seconds: float
    perfect: float


def engine_by_turns(backend: Backend, requests: Sequence[Request], sharing: PerfectSharing) -> EngineTurns:
    """Let a backend of this process answer, and ``sharing`` work, both to their ends.

    While ``sharing`` works, a thread of the backend goes on preparing the requests that it has taken, up to its capacity.
    """
    waiting, parts = list(reversed(requests)), sharing.parts()
    generations: list[Generation] = []
    turn = seconds = perfect = 0.0
    while len(generations) < len(requests):
        while waiting and len(requests) - len(waiting) - len(generations) < backend.capacity:
            backend.submit(waiting.pop())
        finished, took = timed(backend.step)
        generations += finished
        turn, seconds = turn + took, seconds + took
        if turn >= TURN_SECONDS:
            turn = 0.0
            perfect += sum(part for _, part in _until(parts, TURN_SECONDS))
    return EngineTurns(generations, seconds, perfect + sum(part for _, part in parts))


def by_turns(command: Sequence[str], environment: Mapping[str, str], database: Path, sharing: PerfectSharing) -> Turns:
    """Start a run; from its first batch of answers on, let it and ``sharing`` work by turns, both to their ends."""
    parts = sharing.parts()
    by_batch: dict[bool, float] = {True: 0.0, False: 0.0}

    def share(limit: float) -> None:
        for batch, seconds in _until(parts, limit):
            by_batch[batch == 0] += seconds

    started = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        try:
            while process.poll() is None and count_answers(database) <= COMPARED_ANSWERS:
                time.sleep(POLL_SECONDS)
            before = time.perf_counter() - started
            later = 0.0
            while process.poll() is None:
                began = time.perf_counter()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TURN_SECONDS)
                later += time.perf_counter() - began
                if process.returncode is None:
                    tree = [process.pid, *_descendants(process.pid)]
                    _signal(tree, signal.SIGSTOP)
                    share(TURN_SECONDS)
                    _signal(tree, signal.SIGCONT)
        finally:
            if process.poll() is None:  # interrupted; what stands still would stay
                _signal([process.pid, *_descendants(process.pid)], signal.SIGKILL)
        errors.seek(0)
        assert process.returncode == 0, errors.read()[-2000:]
    share(float("inf"))
    return Turns(before + later, later, sum(by_batch.values()), by_batch[False])


def _until(parts: Iterator[tuple[int, float]], limit: float) -> Iterator[tuple[int, float]]:
    """Yield parts that together take ``limit`` seconds, or all."""
    spent = 0.0
    while spent < limit and (part := next(parts, None)):
        spent += part[1]
        yield part


def _descendants(pid: int) -> Iterator[int]:
    for child in children_of(pid):
        yield child
        yield from _descendants(child)


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
