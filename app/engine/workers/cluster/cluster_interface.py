"""The cluster as the driver sees it: nodes, workers on them, and calls that finish in any order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.errors import STOPPED, ModelError


class ClusterError(ModelError):
    """A cluster that cannot be reached or used, now."""

    exit_code = STOPPED


class WorkerLostError(Exception):
    """The end of a worker, or of its node; the message says how, in a clause.

    ``crashed`` tells that the worker ended by itself, which may be the fault of what it computed, ``out_of_memory`` that it took
    more than there was, and ``for_good`` that another worker would end there in the same way.
    """

    def __init__(self, how: str, *, crashed: bool = False, out_of_memory: bool = False, for_good: bool = False) -> None:
        super().__init__(how)
        self.crashed = crashed or out_of_memory
        self.out_of_memory = out_of_memory
        self.for_good = for_good


@dataclass(frozen=True, slots=True)
class Member:
    """A place for one worker: a node, or one of the GPUs of a node. ``name`` is what people see."""

    id: str
    name: str
    has_gpu: bool = False

    @property
    def node(self) -> str:
        """The id of its node: the part of its own before a slash and the number of a GPU."""
        return self.id.partition("/")[0]


class Cluster(Protocol):
    """Nodes that run workers. Nothing here blocks, except :meth:`poll` for the time that it is given."""

    @abstractmethod
    def members(self) -> Sequence[Member]:
        """Return the places for workers that there are now. Raises ModelError if the cluster cannot be reached any more."""

    @abstractmethod
    def start(self, member: Member) -> Any:
        """Start a :class:`app.engine.workers.cluster.node_worker.NodeWorker` there; return its handle. Raises WorkerLostError."""

    @abstractmethod
    def call(self, worker: Any, method: str, *arguments: Any) -> int:
        """Call a method of a worker, after the calls before, but ``ping`` at once; return the number of the call."""

    @abstractmethod
    def poll(self, seconds: float) -> Sequence[tuple[int, Any]]:
        """Wait up to ``seconds`` for calls to finish; return their numbers, each with its result or the exception that it raised.

        A call whose worker ended raises :class:`WorkerLostError`.
        """

    @abstractmethod
    def put(self, data: bytes) -> Any:
        """Share ``data`` with all nodes, for as long as the result lives; a node gets it with ``fetch``.

        Raises ModelError if the cluster takes no more.
        """

    @abstractmethod
    def release(self, worker: Any, *, at_once: bool = False) -> None:
        """End a worker, whatever it does, after it has removed what it wrote, unless ``at_once``. Its calls may never finish."""

    @abstractmethod
    def close(self) -> None:
        """Leave the cluster as it was found."""
