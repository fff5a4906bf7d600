"""Backend over the nodes of a cluster: each proves that it answers as the first one does, then gets requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.engine.workers.cluster.cluster_interface import Cluster
from app.engine.workers.cluster.cluster_messages import Loaded, MediaReferences, NodeJob, Orders, Report
from app.engine.workers.cluster.node_sameness import Sameness
from app.engine.workers.cluster.pooled_node import Call, Node
from app.engine.workers.cluster.request_dispatch import DEATHS_ALONE, DEATHS_TOGETHER, Dispatcher
from app.engine.workers.cluster.shared_media import SharedMedia
from app.engine.workers.cluster.worker_pool import WorkerPool
from app.store.store_types import NodeStatus
from benchmarks.errors import ModelError
from benchmarks.vocabulary import Generation, Request
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import BatchInvariance
from mlx_backends.core.engine_probe import Probe
from mlx_backends.core.saved_work import Reuse
from mlx_backends.policy_engine import PREFIX as POLICY

STEP_SECONDS = 0.05
REPORT_SECONDS = 1.0

FAILED_CHECKS = 2
"""The workers that may end on a node while they choose a mode, after which it answers one request at a time."""

_PROBED = 32
"""The number of a run's first requests from which those are chosen that nodes prove themselves on."""

_DEPTH = 2
"""The calls that a worker has at a time, so that it need not wait for the next one."""

_ENDLESS = 1 << 20
_LEAST, _AHEAD = 64, 32
"""The requests to hold at least, and for each node beyond twice what its worker holds: so that each finds an image of its own."""

Watcher = Callable[[Sequence[NodeStatus]], None]


def _nobody(nodes: Sequence[NodeStatus]) -> None:
    return None


class ClusterBackend(Backend):
    """Answers requests on the nodes of ``cluster``, which may come and go.

    The first node to have loaded the model is the reference: the others answer a few of the run's requests as it does, one at a
    time, before they get any. One that differs is refused; with ``accept_engine`` it takes part, and every answer records which
    engine gave it. ``expected`` is the engine of the run; its device and versions count only if it ``has_answers``. Requests of a
    lost node are asked again elsewhere. Nodes in ``avoid``, which may shrink, are left to others.
    """

    info: EngineInfo

    def __init__(
        self,
        cluster: Cluster,
        media: MediaPath,
        job: NodeJob,
        expected: EngineInfo,
        *,
        has_answers: bool = False,
        accept_engine: bool = False,
        avoid: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = _LEAST
        self._watcher: Watcher = _nobody
        self._is_policy = job.model.startswith(POLICY)
        self._accept_engine = accept_engine
        self._clock = clock
        self._pool = WorkerPool(cluster, job, self, avoid=avoid, clock=clock)
        self._sameness = Sameness(expected, has_answers=has_answers)
        self._dispatcher = Dispatcher()
        self._shared = SharedMedia(cluster, media)
        self._done: list[tuple[Generation, Mapping[str, Any] | None]] = []
        self._engines: dict[str, Mapping[str, Any] | None] = {}
        self._problem: ModelError | None = None
        self._reference: Node | None = None
        self._mode: tuple[Request, ...] | None = None
        self._epoch = 0
        self._results: dict[int, Any] = {}
        self._invariance: dict[int, BatchInvariance | None] = {}
        self._engine: Mapping[str, Any] = {}
        self._reuse: Reuse | None = None
        self._proof_tokens = 0
        self._ready = self._ready_target = 0
        self._remarks: dict[str, None] = {}
        self._reported = float("-inf")

    def wait(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a node has loaded the model; return False if ``stop`` returns True first.

        Raises ModelError if no node can.
        """
        while self._reference is None:
            if stop():
                return False
            self._turn()
        return True

    def watch(self, watcher: Watcher) -> None:
        """Let ``watcher`` have the state of the nodes once a second, and their answers counted from now on."""
        self._watcher = watcher
        for node in self._pool.nodes.values():
            node.forget_counts()

    def unwatch(self) -> None:
        """Give the watcher the last state of the nodes, and no other."""
        self._watcher(self.status())
        self._watcher = _nobody

    def status(self) -> list[NodeStatus]:
        """Return the state of every node."""
        return [node.status(self._dispatcher.held(node.member.id)) for node in self._pool.nodes.values()]

    # --- the interface of a backend ----------------------------------------------------------------------------------

    @property
    def max_capacity(self) -> int:
        return _ENDLESS

    @property
    def engine(self) -> Mapping[str, Any]:
        """The description of the first node's engine, as it is stored with answers."""
        return self._engine

    @property
    def remarks(self) -> Sequence[str]:
        return tuple(self._remarks)

    @property
    def reuse(self) -> Reuse | None:
        return self._reuse

    def engine_of(self, request_id: str) -> Mapping[str, Any] | None:
        return self._engines.get(request_id)

    def submit(self, request: Request) -> None:
        if len(self._dispatcher) >= max(self.capacity, _LEAST):
            raise RuntimeError("the cluster already holds as many requests as its capacity")
        self._dispatcher.add(self._as_sent(request))

    def step(self) -> Sequence[Generation]:
        if self._problem is not None:
            raise self._problem
        if not self._dispatcher and not self._done:
            return []
        if self._sameness.probe is None:
            self._sameness.choose_probe(self._dispatcher.first(_PROBED))
        try:
            self._turn()
        except ModelError as error:
            if not self._done:
                raise
            self._problem = error  # after what has been answered
        done, self._done = self._done, []
        self._engines = {generation.request_id: engine for generation, engine in done}
        return [generation for generation, _ in done]

    def cancel(self, request_id: str) -> None:
        node = self._dispatcher.cancel(request_id)
        if node is not None:
            self._pool.nodes[node].cancelled.append(request_id)

    def use_sequential_mode(self) -> None:
        self._mode = self._reuse = None
        self._epoch += 1

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        self._mode = tuple(map(self._as_sent, requests))
        if self._sameness.probe is None:
            self._sameness.choose_probe(self._mode)
        self._epoch += 1
        while self._epoch not in self._invariance:
            if stop():
                return None
            self._turn()
        return self._invariance[self._epoch]

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        result: Probe = self._ask("probe", self._as_sent(request), self._media([request]), tuple(forced), keep)
        return result

    def image_rows(self, request: Request) -> Any | None:
        return self._ask("image_rows", self._as_sent(request), self._media([request]))

    def close(self) -> None:
        self._pool.close()

    # --- turns -------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Do what there is to do, and wait a little for something to happen. Raises ModelError if no node can answer."""
        self._pool.look()
        nodes = list(self._pool.nodes.values())
        ready = [node for node in nodes if node.state == "ready"]
        self._ready, self._ready_target = len(ready), sum(node.target for node in ready)
        self.capacity = _LEAST + 2 * self._ready_target + _AHEAD * self._ready
        for node in nodes:
            if node.state == "loaded" and not node.calls:
                self._check_node(node)
            elif node.state == "ready" and node.epoch == self._epoch:
                self._exchange(node)
            elif node.state == "ready" and not node.calls:
                node.state = "loaded"
        self._pool.receive(STEP_SECONDS)
        self._report()

    def _check_node(self, node: Node) -> None:
        """Give a node that has loaded the model its next probe request, or the mode that it is to answer in."""
        if self._sameness.probe is None:  # nothing was asked yet
            return
        if not node.proved:
            if not self._sameness.is_known and node is not self._first_loaded():
                return
            request = self._sameness.next_request(node.proofs)
            if request is not None:
                node.state, node.proving = "checking", request.id
                self._pool.call(node, "prove", request, self._media([request]))
                return
            node.proved = True
            if differing := self._sameness.compare(node.proofs):
                self._differs(
                    node, f"{differing} of its {len(node.proofs)} probe answers are not those of the first node"
                )
                if node.loaded is None:
                    return
        node.state, node.epoch = "checking", self._epoch
        mode = [request for request in self._mode or () if request.id not in self._sameness.left_out]
        if self._mode is None:
            self._pool.call(node, "configure", None, {})
        elif node.failed_checks >= FAILED_CHECKS:
            self._remarks[
                f"{node.member.name} answered one request at a time: checks of batched answers ended its workers."
            ] = None
            self._pool.call(node, "configure", None, {})
        else:
            self._pool.call(node, "configure", tuple(mode), self._media(mode))

    def _exchange(self, node: Node) -> None:
        while len(node.calls) < _DEPTH:
            room = node.target - self._dispatcher.held(node.member.id)
            waiting = self._dispatcher.waiting
            if room > 1 and waiting < 2 * self._ready_target:  # towards the end, everybody gets a share
                room = min(room, max(1, -(-waiting // self._ready)))
            requests = self._dispatcher.take(node.member.id, room)
            if not (requests or node.cancelled or self._dispatcher.held(node.member.id)):
                if not node.calls and not waiting:
                    self._take_back(node)
                return
            cancelled, node.cancelled = tuple(node.cancelled), []
            orders = Orders(requests, self._media(requests), cancelled)
            self._pool.call(node, "exchange", orders, requests=tuple(request.id for request in requests))

    def _take_back(self, idle: Node) -> None:
        """Ask the node with the longest queue for half of it, as ``idle`` has nothing to do."""
        nodes = self._pool.nodes.values()
        busiest = max(nodes, key=lambda node: node.queued if node.state == "ready" else 0, default=None)
        if busiest is not None and busiest is not idle and busiest.queued > 0 and busiest.epoch == self._epoch:
            count, busiest.queued = -(-busiest.queued // 2), 0
            self._pool.call(busiest, "exchange", Orders(give_back=count))

    def _as_sent(self, request: Request) -> Request:
        """Return the request as nodes get it: without the right answers, which only a policy reads."""
        return request if self._is_policy or not request.references else replace(request, references={})

    def _media(self, requests: Sequence[Request]) -> MediaReferences:
        """Share the media of ``requests``, unless what answers looks at none."""
        return {} if self._is_policy else self._shared.of(requests)

    # --- the owner of the pool ---------------------------------------------------------------------------------------

    def node_loaded(self, node: Node, loaded: Loaded) -> None:
        never, device_and_versions = self._sameness.differences(loaded.info)
        if never:
            self._pool.refuse(node, "; ".join(never))
        elif device_and_versions:
            self._differs(node, "; ".join(device_and_versions))
        if self._reference is None and node.loaded is not None:
            self._reference = node
            self._sameness.follow(loaded.info)
            self.info, self._engine = loaded.info, loaded.engine

    def node_lost(self, node: Node, *, crashed: bool) -> bool:
        blamed, begun = False, list[str]()
        if crashed and node.proving is not None:
            blamed = self._blame_proof(node.proving)
        elif crashed and node.state == "checking":
            node.failed_checks += 1
        elif crashed and node.state == "ready":
            begun = self._begun(node)
            blamed = len(begun) == 1 and self._dispatcher.is_suspect(begun[0])
        for request in self._dispatcher.lose(node.member.id, begun):
            deaths = DEATHS_TOGETHER + DEATHS_ALONE
            error = f"{deaths} workers ended while they answered this, the last {DEATHS_ALONE} with nothing else to do"
            self._done.append((Generation(request.id, "", "error", error=error), None))
        return blamed

    def _blame_proof(self, request_id: str) -> bool:
        """Count the end of a worker against its probe request, unless the first node has answered that.

        Return whether it was not the first one that ended on it.
        """
        if self._sameness.is_known:
            return False
        deaths = self._dispatcher.blame(request_id)
        if deaths >= DEATHS_TOGETHER:
            self._sameness.leave_out(request_id)
        return deaths > 1

    def _begun(self, node: Node) -> list[str]:
        """Return the ids of the requests that a node may have been answering: as many as it can, of those it had received."""
        not_received = {request_id for call in list(node.calls.values())[1:] for request_id in call.requests}
        received = [name for name in self._dispatcher.held_by(node.member.id) if name not in not_received]
        return received[: node.capacity]

    def call_finished(self, node: Node, number: int, call: Call, outcome: Any) -> None:
        if call.method == "prove":
            assert node.proving is not None
            node.proofs[node.proving] = outcome
            node.state, node.proving = "loaded", None
            self._proof_tokens += outcome.prompt_tokens
        elif call.method == "configure":
            node.state, node.reuse = "ready", {}
            self._invariance.setdefault(node.epoch, outcome)
        elif isinstance(outcome, Report):
            self._answered(node, outcome)
        else:
            self._results[number] = outcome

    def _answered(self, node: Node, report: Report) -> None:
        name, engine = node.member.id, None if node.loaded is None else node.loaded.engine
        node.capacity, node.queued = report.capacity, report.queued
        self._count(node, report)
        self._remarks.update(dict.fromkeys(report.remarks))
        self._dispatcher.give_back(name, report.returned)
        count = 0
        for generation in report.generations:
            if self._dispatcher.finish(name, generation.request_id):
                count += 1
                node.errors += generation.finish_reason == "error"
                node.peak_memory = max(node.peak_memory, generation.peak_memory or 0)
                self._done.append((generation, engine))
        if count:
            node.answers += count
            node.deaths, node.has_answered = 0, True
            node.times.append((self._clock(), count))
        if report.problem is not None:
            self._pool.stop_using(node, report.problem)

    def _count(self, node: Node, report: Report) -> None:
        """Add to the counts of all nodes what a node has computed since its last report, and what proofs have cost."""
        if report.seen is None or node.epoch != self._epoch:
            return
        self._reuse = total = self._reuse or Reuse()
        for name, value in report.reuse.items():
            setattr(total, name, getattr(total, name) + value - node.reuse.get(name, 0))
        total.computed_tokens, self._proof_tokens = total.computed_tokens + self._proof_tokens, 0
        total.seen.apply(report.seen)
        node.reuse = report.reuse

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Return the result of a call of the reference, or of another node if that is lost."""
        while True:
            node = self._first_loaded()
            number = -1 if node is None else self._pool.call(node, method, *arguments)
            while node is not None and number in node.calls:
                self._turn()
            if number in self._results:
                result = self._results.pop(number)
                if isinstance(result, Exception):
                    raise result
                return result
            self._turn()

    def _first_loaded(self) -> Node | None:
        nodes = [node for node in self._pool.nodes.values() if node.loaded is not None]
        return self._reference if self._reference in nodes else next(iter(nodes), None)

    def _differs(self, node: Node, difference: str) -> None:
        if self._accept_engine:
            node.note = f"differs: {difference}"
            self._remarks[f"{node.member.name} differs and was accepted: {difference}."] = None
        else:
            self._pool.refuse(node, f"{difference}; --accept-engine takes its answers")

    def _report(self) -> None:
        now = self._clock()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._watcher(self.status())
