"""Pool of workers: one at each place of a cluster, which is started, watched, replaced when it ends, and given up in the end."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Protocol

from app.engine.workers.cluster.cluster_interface import Cluster, ClusterError, WorkerLostError
from app.engine.workers.cluster.cluster_messages import Loaded, NodeJob, NotLoaded, Problem
from app.engine.workers.cluster.model_folder_copy import CopiedPart, part_files, pieces
from app.engine.workers.cluster.pooled_node import Call, Node
from benchmarks.errors import RashomonError
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import out_of_memory

DISCOVER_SECONDS = 2.0
BUSY_SECONDS = 5.0
"""The seconds after which a node is asked again whether its device is free."""

QUIET_SECONDS = 15.0
"""The seconds without a report after which a worker is asked whether it is alive."""

HANG_SECONDS = 30.0
"""The seconds that it has to say so, after which it is replaced."""

STALL_SECONDS = 1800.0
"""The seconds for one step of a worker that says it is alive, after which it is replaced all the same."""

COPY_STALL_SECONDS = 300.0
"""The seconds for a piece of a model, after which a worker is replaced."""

PATIENCE_SECONDS = 180.0
"""The seconds to wait for a node, where there is none that works and none that will."""

ATTEMPTS = 3
"""The most workers in a row that may end on a node before they answer anything; twice as many where some have answered."""

REST_SECONDS = 60.0
"""The seconds before each of those."""

_WORKING = frozenset({"starting", "copying", "waiting", "loaded", "checking", "ready"})
_ERRORS_AS_RESULTS = frozenset({"probe", "image_rows"})


class PoolOwner(Protocol):
    """Giver of work to the nodes of a pool."""

    @abstractmethod
    def node_loaded(self, node: Node, loaded: Loaded) -> None:
        """Take note that a node has loaded the model."""

    @abstractmethod
    def node_lost(self, node: Node, *, crashed: bool) -> bool:
        """Take back the requests of a node whose worker ends; return whether a request that it ``crashed`` on is to blame."""

    @abstractmethod
    def call_finished(self, node: Node, number: int, call: Call, outcome: Any) -> None:
        """Take the result of a call; also an error, of a call whose errors are results."""


class WorkerPool:
    """Workers on the nodes of ``cluster``, which come and go; each has loaded ``job`` before its ``owner`` hears of it.

    Nodes in ``avoid``, which may shrink, are left to others.
    """

    def __init__(
        self,
        cluster: Cluster,
        job: NodeJob,
        owner: PoolOwner,
        *,
        avoid: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.nodes: dict[str, Node] = {}
        self._cluster = cluster
        self._job = job
        self._owner = owner
        self._avoid = avoid
        self._clock = clock
        self._calls: dict[int, Node] = {}
        self._discovered = float("-inf")
        self._worked_at = self._looked_at = clock()

    def look(self) -> None:
        """Look after the nodes: start workers at new places, and give those that wait for nothing the next step.

        Raises ModelError if the cluster cannot be reached, or no node works and none will.
        """
        self._excuse_idle_time()
        self._discover()
        for node in list(self.nodes.values()):
            if node.state == "waiting" and not node.calls and self._clock() >= node.retry_at:
                self._load(node)
        self._replace_hung()
        self._check_hope()

    def call(self, node: Node, method: str, *arguments: Any, requests: tuple[str, ...] = ()) -> int:
        """Call a method of a node's worker; return the number of the call."""
        now = self._clock()
        number = self._cluster.call(node.worker, method, *arguments)
        if not node.calls:
            node.heard = now
        node.calls[number] = Call(method, now, requests)
        self._calls[number] = node
        return number

    def receive(self, seconds: float) -> None:
        """Wait up to ``seconds`` for something to happen, and pass it on."""
        for number, outcome in self._cluster.poll(seconds):
            if (node := self._calls.pop(number, None)) is not None:
                self._receive(node, number, outcome)

    def close(self) -> None:
        """End all workers, and leave the cluster."""
        for node in self.nodes.values():
            self._end(node)
        self.nodes.clear()
        self._calls.clear()
        self._cluster.close()

    # --- nodes that come and go ----------------------------------------------------------------------------------------

    def _excuse_idle_time(self) -> None:
        """Hold the time in which nobody wanted an answer, as in a pause, against no node."""
        now = self._clock()
        if now - self._looked_at > QUIET_SECONDS:
            self._worked_at = now
            for node in self.nodes.values():
                node.heard = now
        self._looked_at = now

    def _discover(self) -> None:
        """Start workers at new places, and at those whose worker was lost; forget places that are gone."""
        now = self._clock()
        if now - self._discovered < DISCOVER_SECONDS:
            return
        self._discovered = now
        members = {member.id: member for member in self._cluster.members() if member.node not in self._avoid}
        for member in members.values():
            node = self.nodes.get(member.id)
            if node is None:
                node = self.nodes[member.id] = Node(member)
                self._start(node)
            elif node.state == "lost" and now >= node.retry_at:
                self._start(node)
        for node in self.nodes.values():
            if node.member.id in members:
                if node.state == "gone":
                    self._start(node)
            elif node.state in _WORKING:
                self._owner.node_lost(node, crashed=False)
                self._end(node, at_once=True)
                node.state, node.note = "gone", "it has left the cluster"
            elif node.state == "lost":
                node.state = "gone"

    def _start(self, node: Node) -> None:
        node.state, node.note, node.loaded, node.epoch = "starting", "", None, -1
        node.proofs, node.proving, node.proved = {}, None, False
        node.capacity, node.queued, node.copy, node.placed = 1, 0, None, False
        node.cancelled.clear()
        try:
            node.worker = self._cluster.start(node.member)
        except WorkerLostError as error:
            self.lose(node, str(error))
            return
        self._load(node)

    def _load(self, node: Node) -> None:
        width = min(filter(None, (node.width, self._job.max_in_flight)), default=None)
        self.call(node, "load", replace(self._job, max_in_flight=width))

    # --- results -------------------------------------------------------------------------------------------------------

    def _receive(self, node: Node, number: int, outcome: Any) -> None:
        node.heard, node.placed = self._clock(), True
        if number == node.ping:
            node.ping = None
            if isinstance(outcome, Exception):
                self._lose_by(node, outcome)
            return
        call = node.calls[number]
        if isinstance(outcome, WorkerLostError) or (
            isinstance(outcome, Exception) and call.method not in _ERRORS_AS_RESULTS
        ):
            self._lose_by(node, outcome)
            return
        del node.calls[number]
        if isinstance(outcome, Loaded):
            node.loaded, node.state, node.note, node.memory = outcome, "loaded", "", outcome.memory
            self._owner.node_loaded(node, outcome)
        elif isinstance(outcome, NotLoaded):
            self._not_loaded(node, outcome)
        elif isinstance(outcome, Problem):
            self.stop_using(node, outcome)
        elif call.method in ("begin_copy", "add_piece", "end_copy"):
            self._copied(node, call.method, outcome)
        else:
            self._owner.call_finished(node, number, call, outcome)

    def _not_loaded(self, node: Node, report: NotLoaded) -> None:
        if report.holder:
            node.state, node.note = "waiting", f"for {report.holder}"
            node.retry_at = self._clock() + BUSY_SECONDS
        elif report.missing and self._job.weights:
            self._begin_copy(node, report.missing)
        else:
            self.fail(node, report.problem)

    def _begin_copy(self, node: Node, part: CopiedPart) -> None:
        model = self._job.base, self._job.weights
        name, digest = self._job.adapter if part == "adapter" and self._job.adapter is not None else model
        try:
            files = part_files(part, name)
            sizes = {file.name: file.stat().st_size for file in files}
        except (RashomonError, OSError) as error:
            self.fail(node, f"it does not have the {part} {name}, and neither has this machine ({error})")
            return
        node.state, node.note, node.copy = "copying", f"the {part}, {sum(sizes.values()) / 1e9:.2f} GB", pieces(files)
        self.call(node, "begin_copy", part, name, digest, sizes)

    def _copied(self, node: Node, method: str, problem: str) -> None:
        if problem:
            self.fail(node, problem)
            return
        if method == "end_copy":
            node.state, node.note, node.copy = "starting", "", None
            self._load(node)
            return
        assert node.copy is not None
        try:
            piece = next(node.copy, None)
        except OSError as error:
            self.fail(node, f"a file for it cannot be read on this machine ({error.strerror})")
            return
        if piece is None:
            self.call(node, "end_copy")
        else:
            self.call(node, "add_piece", piece[0], self._cluster.put(piece[1]))

    # --- nodes that differ, fail or end --------------------------------------------------------------------------------

    def refuse(self, node: Node, difference: str) -> None:
        """Let a node that differs answer nothing."""
        self._end(node)
        node.state, node.note = "refused", difference

    def stop_using(self, node: Node, problem: Problem) -> None:
        """Use a node no more, or, if its ``problem`` passes, again after a while."""
        if problem.passes:
            self.lose(node, problem.text)
        else:
            self.fail(node, problem.text)

    def fail(self, node: Node, problem: str) -> None:
        """Use a node no more."""
        self._owner.node_lost(node, crashed=False)
        self._end(node)
        node.state, node.note = "failed", problem.rstrip(".")

    def _lose_by(self, node: Node, error: Exception) -> None:
        """Replace a worker that has ended, or whose call has raised an error."""
        if isinstance(error, WorkerLostError) and error.for_good:
            self.fail(node, str(error))
        elif isinstance(error, WorkerLostError):
            self.lose(node, str(error), crashed=error.crashed, memory=error.out_of_memory)
        else:
            self.lose(node, one_line(error), crashed=True, memory=out_of_memory(error))

    def lose(self, node: Node, how: str, *, crashed: bool = False, memory: bool = False) -> None:
        """Replace a worker that has ended, or is to end; ``memory`` tells that it ran out of memory."""
        blamed = self._owner.node_lost(node, crashed=crashed)
        if crashed and node.state == "ready" and node.capacity > 1 and (memory or node.deaths):
            node.width = node.capacity // 2
            how = f"{how}; it answers {node.width} at a time from now on"
        self._end(node, at_once=True)
        node.deaths += not blamed
        if node.deaths >= (2 * ATTEMPTS if node.has_answered else ATTEMPTS):
            node.state, node.note = "failed", f"{node.deaths} workers ended there before they answered; the last: {how}"
            return
        node.state, node.note = "lost", how
        pause = 2.0 ** max(0, node.deaths - 1) - 1 if node.deaths < ATTEMPTS else REST_SECONDS
        node.retry_at = self._clock() + pause

    def _end(self, node: Node, *, at_once: bool = False) -> None:
        """End the worker of a node, and forget its calls."""
        for number in (*node.calls, *(() if node.ping is None else (node.ping,))):
            self._calls.pop(number, None)
        node.calls.clear()
        node.ping, node.loaded, node.copy = None, None, None
        if node.worker is not None:
            self._cluster.release(node.worker, at_once=at_once or not node.placed)
        node.worker = None

    def _replace_hung(self) -> None:
        now = self._clock()
        for node in list(self.nodes.values()):
            if not node.calls:
                continue
            silent = now - node.heard
            limit = COPY_STALL_SECONDS if node.state == "copying" else STALL_SECONDS
            if node.ping is not None and silent > QUIET_SECONDS + HANG_SECONDS:
                if node.placed:
                    self.lose(node, f"it has not answered for {silent:.0f} s", crashed=True)
                else:
                    node.note = "there is no free CPU or GPU on it yet"
            elif min(call.at for call in node.calls.values()) < now - limit:
                self.lose(node, f"it has not finished a step in {limit / 60:.0f} minutes", crashed=True)
            elif node.ping is None and silent > QUIET_SECONDS:
                node.ping = self._cluster.call(node.worker, "ping")
                self._calls[node.ping] = node

    def _check_hope(self) -> None:
        """Raise ModelError if no node works, and none will."""
        now = self._clock()
        states = [node.state for node in self.nodes.values()]
        if any(state in _WORKING for state in states):
            self._worked_at = now
            return
        reasons = "; ".join(f"{node.member.name}: {node.note}" for node in self.nodes.values() if node.note)
        if states and all(state in ("refused", "failed") for state in states):
            raise ClusterError(f"no node of the cluster can answer ({reasons}).")
        if now - self._worked_at > PATIENCE_SECONDS:
            details = f" ({reasons})" if reasons else ""
            raise ClusterError(
                f"no node of the cluster has worked for {PATIENCE_SECONDS:.0f} s{details}; check `ray status`, then resume."
            )
