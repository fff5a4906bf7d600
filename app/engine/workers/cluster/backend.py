"""Backend over the nodes of a cluster: each proves that it answers as the first one does, then gets requests."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.engine.workers.cluster.dispatch import DEATHS_ALONE, DEATHS_TOGETHER, Dispatcher
from app.engine.workers.cluster.folder_copy import CopiedPart, part_files, pieces
from app.engine.workers.cluster.messages import Loaded, MediaReferences, NodeJob, NotLoaded, Orders, Report, media_of
from app.engine.workers.cluster.seam import Cluster, Member, WorkerLostError
from app.store.data_types import NodeStatus
from benchmarks.errors import ModelError, RashomonError
from benchmarks.media import read_media
from benchmarks.vocabulary import Generation, Request
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import BatchInvariance, select_requests
from mlx_backends.core.error_text import one_line
from mlx_backends.core.probe import Probe
from mlx_backends.core.reuse import Reuse
from mlx_backends.policy import PREFIX as POLICY

STEP_SECONDS = 0.05
DISCOVER_SECONDS = 2.0
REPORT_SECONDS = 1.0
BUSY_SECONDS = 5.0
"""The seconds after which a node is asked again whether its device is free."""

QUIET_SECONDS = 15.0
"""The seconds without a report after which a worker is asked whether it is alive."""

HANG_SECONDS = 30.0
"""The seconds that it has to say so, after which it is replaced."""

STALL_SECONDS = 1800.0
"""The seconds for one step of a worker that says it is alive, after which it is replaced all the same."""

PATIENCE_SECONDS = 180.0
"""The seconds to wait for a node, where there is none that works."""

ATTEMPTS = 3
"""How many workers in a row may end on a node before they answer anything; as many more where earlier ones have answered."""

REST_SECONDS = 60.0
"""The seconds before each of those."""

MEDIA_BYTES = 64 << 20
"""The most bytes of media that are shared with the nodes beyond those that they hold."""

_PROBED = 32
"""The number of a run's first requests from which those are chosen that nodes prove themselves on."""

_RECENT = 64
"""The answers of a node from which its speed is computed."""

_DEPTH = 2
"""The calls that a worker has at a time, so that it need not wait for the next one."""

_ENDLESS = 1 << 20
_LEAST, _AHEAD = 64, 32
"""The requests to hold at least, and for each node beyond twice what its worker holds: so that each finds an image of its own."""

_HARD = {
    "engine": "engine",
    "weights": "weights digest",
    "adapter": "adapter digest",
    "base_weights": "base weights digest",
    "quantisation": "quantisation",
}
"""The facts on an engine in which nodes may never differ."""


@dataclass(eq=False)
class _Node:
    """A place for a worker, and the worker that is there now."""

    member: Member
    worker: Any = None
    state: str = "starting"
    note: str = ""
    loaded: Loaded | None = None
    proved: bool = False
    epoch: int = -1
    calls: dict[int, tuple[str, float]] = field(default_factory=dict)
    ping: int | None = None
    heard: float = 0.0
    placed: bool = False
    """Whether its worker has reported anything: until then, it may wait for a CPU or a GPU that another run has."""
    retry_at: float = 0.0
    deaths: int = 0
    """The workers in a row that ended here before they answered anything."""
    has_answered: bool = False
    capacity: int = 1
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


class ClusterBackend(Backend):
    """Answers requests on the nodes of ``cluster``, which may come and go.

    The first node to have loaded the model is the reference: the others answer a few of the run's requests as it does, one at a
    time, before they get any. One that differs is refused; with ``accept_engine`` it takes part, and every answer records which
    engine gave it. Requests of a lost node are asked again elsewhere. Nodes in ``avoid``, which may shrink, are left to others.
    """

    info: EngineInfo

    def __init__(
        self,
        cluster: Cluster,
        media: MediaPath,
        job: NodeJob,
        expected: EngineInfo,
        *,
        accept_engine: bool = False,
        avoid: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity = _LEAST
        self._watcher: Callable[[Sequence[NodeStatus]], None] = _nobody
        self._cluster = cluster
        self._job = job
        self._expected = expected
        self._accept_engine = accept_engine
        self._avoid = avoid
        self._clock = clock
        self._nodes: dict[str, _Node] = {}
        self._calls: dict[int, _Node] = {}
        self._dispatcher = Dispatcher()
        self._shared = _SharedMedia(cluster, media)
        self._done: list[Generation] = []
        self._answered_by: dict[str, _Node] = {}
        self._reference: _Node | None = None
        self._probe: tuple[Request, ...] | None = None
        self._proof: list[tuple[Any, ...]] | None = None
        self._mode: tuple[Request, ...] | None = None
        self._epoch = 0
        self._results: dict[int, Any] = {}
        self._invariance: dict[int, BatchInvariance | None] = {}
        self._engine: Mapping[str, Any] = {}
        self._reuse: Reuse | None = None
        self._ready = self._ready_target = 0
        self._remarks: dict[str, None] = {}
        self._discovered = self._reported = -_ENDLESS * 1.0
        self._working_at = self._turned = clock()

    def wait(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a node has loaded the model; return False if ``stop`` returns True first.

        Raises ModelError if no node can.
        """
        while self._reference is None:
            if stop():
                return False
            self._turn(STEP_SECONDS)
        return True

    def watch(self, watcher: Callable[[Sequence[NodeStatus]], None]) -> None:
        """Let ``watcher`` have the state of the nodes once a second, and their answers counted from now on."""
        self._watcher = watcher
        for node in self._nodes.values():
            node.answers = node.errors = node.peak_memory = 0

    def unwatch(self) -> None:
        """Give the watcher the last state of the nodes, and no other."""
        self._watcher(self.status())
        self._watcher = _nobody

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
        node = self._answered_by.pop(request_id, None)
        return None if node is None or node.loaded is None else node.loaded.engine

    def submit(self, request: Request) -> None:
        if len(self._dispatcher) >= max(self.capacity, _LEAST):
            raise RuntimeError("the cluster already holds as many requests as its capacity")
        self._dispatcher.add(request)

    def step(self) -> Sequence[Generation]:
        if not self._dispatcher and not self._done:
            return []
        if self._probe is None:
            self._probe = tuple(select_requests(self._dispatcher.first(_PROBED)))
        self._turn(STEP_SECONDS)
        done, self._done = self._done, []
        return done

    def cancel(self, request_id: str) -> None:
        node = self._dispatcher.cancel(request_id)
        if node is not None:
            self._nodes[node].cancelled.append(request_id)

    def use_sequential_mode(self) -> None:
        self._mode = self._reuse = None
        self._epoch += 1

    def choose_mode(
        self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False
    ) -> BatchInvariance | None:
        self._probe = self._probe or tuple(select_requests(requests))
        self._mode = tuple(requests)
        self._epoch += 1
        while self._epoch not in self._invariance:
            if stop():
                return None
            self._turn(STEP_SECONDS)
        return self._invariance[self._epoch]

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        result: Probe = self._ask("probe", request, self._media([request]), tuple(forced), keep)
        return result

    def image_rows(self, request: Request) -> Any | None:
        return self._ask("image_rows", request, self._media([request]))

    def close(self) -> None:
        for node in self._nodes.values():
            self._end(node)
        self._nodes.clear()
        self._calls.clear()
        self._cluster.close()

    # --- turns -------------------------------------------------------------------------------------------------------

    def _turn(self, seconds: float) -> None:
        """Do what there is to do, and wait up to ``seconds`` for something to happen."""
        self._excuse_idle_time()
        self._discover()
        ready = [node for node in self._nodes.values() if node.state == "ready"]
        self._ready, self._ready_target = len(ready), sum(node.target for node in ready)
        self.capacity = _LEAST + 2 * self._ready_target + _AHEAD * self._ready
        for node in list(self._nodes.values()):
            self._advance(node)
        for call, outcome in self._cluster.poll(seconds):
            if (caller := self._calls.pop(call, None)) is not None:
                self._receive(caller, call, outcome)
        self._replace_hung()
        self._check_hope()
        self._report()

    def _excuse_idle_time(self) -> None:
        """Hold the time in which nobody wanted an answer, as in a pause, against no node."""
        now = self._clock()
        if now - self._turned > QUIET_SECONDS:
            self._working_at = now
            for node in self._nodes.values():
                node.heard = now
        self._turned = now

    def _discover(self) -> None:
        """Start workers at new places, and at those whose worker was lost; forget places that are gone."""
        now = self._clock()
        if now - self._discovered < DISCOVER_SECONDS:
            return
        self._discovered = now
        members = {member.id: member for member in self._cluster.members() if member.node not in self._avoid}
        for member in members.values():
            node = self._nodes.get(member.id)
            if node is None:
                node = self._nodes[member.id] = _Node(member)
                self._start(node)
            elif node.state == "lost" and now >= node.retry_at:
                self._start(node)
        for node in self._nodes.values():
            if node.member.id not in members and node.state not in ("lost", "gone", "refused", "failed"):
                self._lose(node, "its node has left the cluster")
            if node.member.id not in members and node.state == "lost":
                node.state = "gone"
            if node.member.id in members and node.state == "gone":
                self._start(node)

    def _start(self, node: _Node) -> None:
        node.state, node.note, node.loaded, node.proved, node.epoch = "starting", "", None, False, -1
        node.capacity, node.queued, node.copy, node.placed = 1, 0, None, False
        node.cancelled.clear()
        try:
            node.worker = self._cluster.start(node.member)
        except WorkerLostError as error:
            self._lose(node, str(error))
            return
        self._call(node, "load", self._job)

    def _advance(self, node: _Node) -> None:
        """Give a node that waits for nothing its next task."""
        if node.state == "waiting" and not node.calls and self._clock() >= node.retry_at:
            self._call(node, "load", self._job)
        elif node.state == "loaded" and not node.calls:
            self._check_node(node)
        elif node.state == "ready":
            if node.epoch == self._epoch:
                self._exchange(node)
            elif not node.calls:
                node.state = "loaded"

    def _check_node(self, node: _Node) -> None:
        if self._probe is None:  # nothing was asked yet
            return
        if not node.proved:
            if self._proof is None and node is not self._reference:
                return
            self._call(node, "prove", self._probe, self._media(self._probe))
        else:
            node.epoch = self._epoch
            self._call(node, "configure", self._mode, self._media(self._mode or ()))
        node.state = "checking"

    def _exchange(self, node: _Node) -> None:
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
            self._call(node, "exchange", Orders(requests, self._media(requests), cancelled))

    def _take_back(self, idle: _Node) -> None:
        """Ask the node with the longest queue for half of it, as ``idle`` has nothing to do."""
        busiest = max(self._nodes.values(), key=lambda node: node.queued if node.state == "ready" else 0, default=None)
        if busiest is not None and busiest is not idle and busiest.queued > 0 and busiest.epoch == self._epoch:
            count, busiest.queued = -(-busiest.queued // 2), 0
            self._call(busiest, "exchange", Orders(give_back=count))

    def _media(self, requests: Sequence[Request]) -> MediaReferences:
        """Share the media of ``requests``, unless what answers looks at none."""
        return {} if self._job.model.startswith(POLICY) else self._shared.of(requests)

    def _call(self, node: _Node, method: str, *arguments: Any) -> None:
        now = self._clock()
        call = self._cluster.call(node.worker, method, *arguments)
        if not node.calls:
            node.heard = now
        node.calls[call] = method, now
        self._calls[call] = node

    # --- results -----------------------------------------------------------------------------------------------------

    def _receive(self, node: _Node, call: int, outcome: Any) -> None:
        node.heard, node.placed = self._clock(), True
        if call == node.ping:
            node.ping = None
            if isinstance(outcome, Exception):
                self._lose(node, one_line(outcome))
            return
        method, _ = node.calls.pop(call, ("", 0.0))
        if isinstance(outcome, Exception):
            if method in ("probe", "image_rows") and not isinstance(outcome, WorkerLostError):
                self._results[call] = outcome
            else:
                self._lose(node, str(outcome) if isinstance(outcome, WorkerLostError) else one_line(outcome))
        elif isinstance(outcome, Loaded):
            self._loaded(node, outcome)
        elif isinstance(outcome, NotLoaded):
            self._not_loaded(node, outcome)
        elif isinstance(outcome, Report):
            self._answered(node, outcome)
        elif method == "prove":
            self._proved(node, outcome)
        elif method == "configure":
            self._configured(node, outcome)
        elif method in ("begin_copy", "add_piece", "end_copy"):
            self._copied(node, method, outcome)
        else:
            self._results[call] = outcome

    def _loaded(self, node: _Node, loaded: Loaded) -> None:
        node.loaded, node.state, node.note, node.memory = loaded, "loaded", "", loaded.memory
        first = self._expected if self._reference is None else self.info
        hard, soft = differences(first, loaded.info)
        if hard:
            self._refuse(node, "; ".join(hard))
        elif soft:
            self._differs(node, "; ".join(soft))
        if self._reference is None and node.loaded is not None:
            self._reference = node
            self.info, self._engine = loaded.info, loaded.engine

    def _not_loaded(self, node: _Node, report: NotLoaded) -> None:
        if report.holder:
            node.state, node.note = "waiting", f"for {report.holder}"
            node.retry_at = self._clock() + BUSY_SECONDS
        elif report.missing and self._job.weights:
            self._begin_copy(node, report.missing)
        else:
            self._fail(node, report.problem)

    def _begin_copy(self, node: _Node, part: CopiedPart) -> None:
        model = self._job.base, self._job.weights
        name, digest = self._job.adapter if part == "adapter" and self._job.adapter is not None else model
        try:
            files = part_files(part, name)
            sizes = {file.name: file.stat().st_size for file in files}
        except (RashomonError, OSError) as error:
            self._fail(node, f"it does not have the {part} {name}, and neither has this machine ({error})")
            return
        node.state, node.note, node.copy = "copying", f"the {part}, {sum(sizes.values()) / 1e9:.2f} GB", pieces(files)
        self._call(node, "begin_copy", part, name, digest, sizes)

    def _copied(self, node: _Node, method: str, problem: str) -> None:
        if problem:
            self._fail(node, problem)
            return
        if method == "end_copy":
            node.state, node.note, node.copy = "starting", "", None
            self._call(node, "load", self._job)
            return
        assert node.copy is not None
        piece = next(node.copy, None)
        if piece is None:
            self._call(node, "end_copy")
        else:
            self._call(node, "add_piece", piece[0], self._cluster.put(piece[1]))

    def _proved(self, node: _Node, proof: list[tuple[Any, ...]]) -> None:
        node.state, node.proved = "loaded", True
        if self._proof is None:
            self._proof = proof
            return
        other = sum(mine != theirs for mine, theirs in zip(proof, self._proof, strict=False))
        if other or len(proof) != len(self._proof):
            first = "" if self._reference is None else f" from {self._reference.member.name}"
            self._differs(node, f"{other} of {len(self._proof)} probe answers differ{first}")

    def _configured(self, node: _Node, invariance: BatchInvariance | None) -> None:
        node.state, node.reuse = "ready", {}
        self._invariance.setdefault(node.epoch, invariance)

    def _answered(self, node: _Node, report: Report) -> None:
        name = node.member.id
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
                self._answered_by[generation.request_id] = node
                self._done.append(generation)
        if count:
            node.answers += count
            node.deaths, node.has_answered = 0, True
            node.times.append((self._clock(), count))
            self._working_at = self._clock()
        if report.problem:
            self._fail(node, report.problem)

    def _count(self, node: _Node, report: Report) -> None:
        """Add to the counts of all nodes what a node has computed since its last report."""
        if report.seen is None or node.epoch != self._epoch:
            return
        self._reuse = total = self._reuse or Reuse()
        for name, value in report.reuse.items():
            setattr(total, name, getattr(total, name) + value - node.reuse.get(name, 0))
        total.seen.apply(report.seen)
        node.reuse = report.reuse

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Return the result of a call of the reference, or of another node if that is lost."""
        while True:
            node = self._first_loaded()
            call = -1
            if node is not None:
                before = set(node.calls)
                self._call(node, method, *arguments)
                (call,) = set(node.calls) - before
            while node is not None and call in node.calls:
                self._turn(STEP_SECONDS)
            if call in self._results:
                result = self._results.pop(call)
                if isinstance(result, Exception):
                    raise result
                return result
            self._turn(STEP_SECONDS)

    def _first_loaded(self) -> _Node | None:
        nodes = [node for node in self._nodes.values() if node.loaded is not None]
        return self._reference if self._reference in nodes else next(iter(nodes), None)

    # --- nodes that differ, fail or end ------------------------------------------------------------------------------

    def _differs(self, node: _Node, difference: str) -> None:
        if self._accept_engine:
            node.note = f"differs: {difference}"
            sentence = f"{node.member.name} differs and was accepted: {difference}; its answers record its engine."
            self._remarks[sentence] = None
        else:
            self._refuse(node, f"{difference}; --accept-engine takes its answers")

    def _refuse(self, node: _Node, difference: str) -> None:
        self._end(node)
        node.state, node.note = "refused", difference

    def _fail(self, node: _Node, problem: str) -> None:
        """Use a node no more."""
        self._drop_requests(node, begun=False)
        self._end(node)
        node.state, node.note = "failed", problem.rstrip(".")

    def _lose(self, node: _Node, how: str) -> None:
        """Replace a worker that has ended."""
        self._drop_requests(node, begun=node.state == "ready")
        self._end(node)
        node.deaths += 1
        if node.deaths >= (2 * ATTEMPTS if node.has_answered else ATTEMPTS):
            node.state, node.note = "failed", f"{node.deaths} workers ended there before they answered; the last: {how}"
            return
        node.state, node.note = "lost", how
        pause = 2.0 ** (node.deaths - 1) - 1 if node.deaths < ATTEMPTS else REST_SECONDS
        node.retry_at = self._clock() + pause

    def _drop_requests(self, node: _Node, *, begun: bool) -> None:
        for request in self._dispatcher.lose(node.member.id, begun=begun):
            deaths = DEATHS_TOGETHER + DEATHS_ALONE
            error = f"{deaths} workers ended while they answered this, the last {DEATHS_ALONE} with nothing else to do"
            self._done.append(Generation(request.id, "", "error", error=error))

    def _end(self, node: _Node) -> None:
        """End the worker of a node, and forget its calls."""
        for call in (*node.calls, *(() if node.ping is None else (node.ping,))):
            self._calls.pop(call, None)
        node.calls.clear()
        node.ping, node.loaded, node.copy = None, None, None
        if node.worker is not None:
            self._cluster.release(node.worker)
        node.worker = None
        if self._reference is node and self._proof is None:
            self._reference = self._first_loaded()

    def _replace_hung(self) -> None:
        now = self._clock()
        for node in list(self._nodes.values()):
            if not node.calls:
                continue
            silent = now - node.heard
            if node.ping is not None and silent > QUIET_SECONDS + HANG_SECONDS:
                if node.placed:
                    self._lose(node, f"it has not answered for {silent:.0f} s")
                else:
                    node.note = "there is no free CPU or GPU on it yet"
            elif min(sent for _, sent in node.calls.values()) < now - STALL_SECONDS:
                self._lose(node, f"it has not finished a step in {STALL_SECONDS / 60:.0f} minutes")
            elif node.ping is None and silent > QUIET_SECONDS:
                node.ping = self._cluster.call(node.worker, "ping")
                self._calls[node.ping] = node

    def _check_hope(self) -> None:
        """Raise ModelError if no node works, and none will."""
        now = self._clock()
        states = [node.state for node in self._nodes.values()]
        if any(state in ("ready", "checking", "loaded", "waiting", "copying", "starting") for state in states):
            self._working_at = now
            return
        reasons = "; ".join(f"{node.member.name}: {node.note}" for node in self._nodes.values() if node.note)
        if states and all(state in ("refused", "failed") for state in states):
            raise ModelError(f"no node of the cluster can answer ({reasons}).")
        if now - self._working_at > PATIENCE_SECONDS:
            details = f" ({reasons})" if reasons else ""
            raise ModelError(
                f"no node of the cluster has worked for {PATIENCE_SECONDS:.0f} s{details}; check `ray status`, then resume."
            )

    # --- what people see ---------------------------------------------------------------------------------------------

    def _report(self) -> None:
        now = self._clock()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._watcher(self.status())

    def status(self) -> list[NodeStatus]:
        """Return the state of every node."""
        return [
            NodeStatus(
                node.member.name,
                node.state,
                node.note,
                node.answers,
                node.errors,
                self._dispatcher.held(node.member.id),
                node.speed if node.state == "ready" else None,
                node.peak_memory,
                node.memory,
            )
            for node in self._nodes.values()
        ]


class _SharedMedia:
    """Media that are shared with the nodes: each once, as long as it is among the last ones."""

    def __init__(self, cluster: Cluster, media: MediaPath) -> None:
        self._cluster = cluster
        self._media = media
        self._shared: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def of(self, requests: Sequence[Request]) -> MediaReferences:
        """Return references to the media of ``requests``."""
        references: dict[str, Any] = {}
        for medium in (medium for request in requests for medium in media_of(request)):
            if medium.name not in self._shared:
                try:
                    data = read_media(self._media(medium), medium)
                except (RashomonError, OSError):  # which becomes the error of this request
                    continue
                self._shared[medium.name] = self._cluster.put(data), len(data)
                self._bytes += len(data)
            self._shared.move_to_end(medium.name)
            references[medium.name] = self._shared[medium.name][0]
            while self._bytes > MEDIA_BYTES and len(self._shared) > len(references):
                _, (_, size) = self._shared.popitem(last=False)
                self._bytes -= size
        return references


def _nobody(nodes: Sequence[NodeStatus]) -> None:
    return None


def differences(first: EngineInfo, other: EngineInfo) -> tuple[list[str], list[str]]:
    """Return in what another engine differs: what is never accepted, and its device and versions."""
    hard = [
        f"{name} {_short(getattr(other, key))}, not {_short(getattr(first, key))}"
        for key, name in _HARD.items()
        if getattr(first, key) != getattr(other, key)
    ]
    soft = [] if first.device == other.device else [f"device {other.device}, not {first.device}"]
    names = dict.fromkeys([*first.versions, *other.versions])
    soft += [
        f"{name} {other.versions.get(name, 'missing')}, not {first.versions.get(name, 'missing')}"
        for name in names
        if first.versions.get(name) != other.versions.get(name)
    ]
    return hard, soft


def _short(value: Any) -> str:
    return "none" if value is None else str(value)[:12]
