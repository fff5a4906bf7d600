"""Node of a pool: a place for a worker on a cluster, with the calls of the worker that is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.engine.workers.cluster.cluster_interface import Member
from app.engine.workers.cluster.cluster_messages import Loaded, Proof
from app.store.store_types import NodeStatus

_RECENT = 64
"""The answers of a node from which its speed is computed."""


class Call(NamedTuple):
    """A call of a worker that has not finished: its method, when it was made, and the ids of the requests that it brought."""

    method: str
    at: float
    requests: tuple[str, ...] = ()


@dataclass(eq=False)
class Node:
    """A place for a worker, and the worker that is there now.

    Attributes:
        proofs: What the worker has answered to probe requests, of which it answers ``proving`` now.
        epoch: The number of the answering mode that it uses.
        failed_checks: The workers that ended while they chose a mode.
        heard: When it last reported.
        placed: Whether it has reported anything: until then, it may wait for a CPU or a GPU that another run has.
        deaths: The workers in a row that ended here before they answered anything.
        width: The most requests that the next worker may answer at a time, after one that had too many.
    """

    member: Member
    worker: Any = None
    state: str = "starting"
    note: str = ""
    loaded: Loaded | None = None
    proofs: dict[str, Proof] = field(default_factory=dict)
    proving: str | None = None
    proved: bool = False
    epoch: int = -1
    failed_checks: int = 0
    calls: dict[int, Call] = field(default_factory=dict)
    ping: int | None = None
    heard: float = 0.0
    placed: bool = False
    retry_at: float = 0.0
    deaths: int = 0
    has_answered: bool = False
    capacity: int = 1
    width: int | None = None
    queued: int = 0
    cancelled: list[str] = field(default_factory=list)
    copy: Iterator[tuple[str, bytes]] | None = None
    answers: int = 0
    errors: int = 0
    peak_memory: int = 0
    memory: int = 0
    times: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    reuse: Mapping[str, int] = field(default_factory=dict)

    @property
    def target(self) -> int:
        """The requests that its worker should hold: what it answers at a time, and some to go on with."""
        return self.capacity + max(1, self.capacity // 4)

    @property
    def speed(self) -> float | None:
        """Answers per second, of late."""
        if len(self.times) < 2 or self.times[-1][0] <= self.times[0][0]:
            return None
        return sum(count for _, count in list(self.times)[1:]) / (self.times[-1][0] - self.times[0][0])

    def forget_counts(self) -> None:
        """Count answers, errors and memory from now on."""
        self.answers = self.errors = self.peak_memory = 0

    def status(self, held: int) -> NodeStatus:
        """Return what people see of it, with the number of requests that it holds."""
        speed = self.speed if self.state == "ready" else None
        return NodeStatus(
            self.member.name,
            self.state,
            self.note,
            self.answers,
            self.errors,
            held,
            speed,
            self.peak_memory,
            self.memory,
        )
