"""Cluster through Ray: its workers and their calls."""

from __future__ import annotations

import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from app.engine.workers.cluster.cluster_address import head_of
from app.engine.workers.cluster.cluster_interface import Cluster, ClusterError, Member, WorkerLostError
from app.engine.workers.cluster.cluster_messages import Loaded, NodeJob, NotLoaded
from app.engine.workers.cluster.node_worker import SECRETS, NodeWorker
from app.engine.workers.cluster.ray_connection import (
    check_head,
    connection_error,
    node_address,
    own_cluster_folder,
    ray_environment,
    signals_kept,
    unreachable,
)
from benchmarks.untrusted.own_files import OwnFolder
from mlx_backends.core.error_text import one_line
from mlx_backends.pytorch.torch_names_and_devices import wants_gpu

CONNECT_ATTEMPTS = 3
"""The attempts to connect from a machine that is no node: the server that the head starts for it may end at once."""

GONE_SECONDS = 30.0
"""The seconds without a head after which a cluster is given up. After 60, Ray ends the process that is connected."""

LIST_SECONDS = 10.0
"""The seconds to wait for the list of nodes. Ray itself waits for a head that has just ended until it ends this process."""

FETCH_SECONDS = 60.0
"""The seconds in which a worker must get a medium."""

END_SECONDS = 3.0
"""The seconds that a worker has to remove what it wrote."""

OBJECT_STORE_BYTES = 200 << 20
"""The memory in which a cluster on this machine shares media."""

HEALTH = "health"

T = TypeVar("T")

_MISSING = re.compile(r"No module named '(\w+)")


class RayWorker(NodeWorker):
    """Worker as an actor of Ray; ``allow_open`` lets it work where Ray requires no token."""

    def __init__(self, allow_open: bool) -> None:
        for name in SECRETS:  # which a node's own environment may hold
            os.environ.pop(name, None)
        if os.environ.get("OMP_NUM_THREADS") == "1":  # set by Ray for an actor with one CPU
            del os.environ["OMP_NUM_THREADS"]
        super().__init__(_fetch)
        self._allow_open = allow_open

    def load(self, job: NodeJob) -> Loaded | NotLoaded:
        if not self._allow_open and (problem := _authentication_problem()):
            return NotLoaded(problem)
        return super().load(job)

    def ping(self) -> bool:
        return super().ping()

    def end(self) -> None:
        super().end()

    # As `ray.method` does, without Ray at hand. A call's options would do, but Ray's client has none for this.
    setattr(ping, "__ray_concurrency_group__", HEALTH)  # noqa: B010
    setattr(end, "__ray_concurrency_group__", HEALTH)  # noqa: B010


def _authentication_problem() -> str:
    """Return why Ray, which has no public way to tell, does not seem to require a token on this node; empty if it does."""
    try:
        from ray._private.authentication.authentication_utils import is_token_auth_enabled
    except ImportError:
        import ray

        return f"Ray {ray.__version__} there does not tell whether it requires a token; install the version of this machine"
    if is_token_auth_enabled():
        return ""
    return "Ray runs there without token authentication; start it with RAY_AUTH_MODE=token, or add --allow-open-cluster"


def _fetch(reference: Any) -> bytes:
    import ray

    if isinstance(reference, bytes):  # Ray has fetched what was an argument itself
        return reference
    data: bytes = ray.get(reference, timeout=FETCH_SECONDS)
    return data


class RayCluster(Cluster):
    """The cluster at an address, or a new one on this machine.

    It has places for workers of ``models``. Raises ModelError if it cannot be reached or is of another version. ``allow_open``
    lets workers start where Ray requires no token.
    """

    def __init__(self, workers: str, models: Sequence[str], *, allow_open: bool = False) -> None:
        self._uses_gpus = any(map(wants_gpu, models))
        self._only_gpus = None if all(map(wants_gpu, models)) else False
        self._allow_open = allow_open
        self._finished: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()
        self._calls = 0
        self._ending: list[tuple[Any, Future[Any], float]] = []
        self._members: Sequence[Member] = ()
        self._listing: Future[Sequence[Member]] | None = None
        self._head: tuple[str, int] | None = None
        self._head_seen = time.monotonic()
        self._folder: OwnFolder | None = None
        address = os.environ.get("RAY_ADDRESS", "") if head_of(workers) is None else workers
        if head := head_of(address) or node_address(address):
            check_head(address, *head)
        if not address:
            self._folder = own_cluster_folder()
        with ray_environment(self._folder), signals_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray

            self._ray = ray
            try:
                self._connect(address)
                if head_of(address) is None:
                    self._head = node_address(ray.get_runtime_context().gcs_address)
            except Exception as error:
                self.close()
                raise connection_error(address or workers, error) from error

    def _connect(self, address: str) -> None:
        """Connect to the cluster at an address; without one, start a new one on this machine."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address:
            options["address"] = address
        else:
            options |= {"address": "local", "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        for _ in range(CONNECT_ATTEMPTS - 1 if head_of(address) else 0):
            with suppress(ConnectionAbortedError):
                self._ray.init(**options)
                return
        self._ray.init(**options)

    def members(self) -> Sequence[Member]:
        if self._listing is None and (self._head is None or not unreachable(*self._head)):
            self._listing = _in_thread(self._living)
            wait_for([self._listing], LIST_SECONDS if self._members else GONE_SECONDS)
        if self._listing is not None and self._listing.done():
            listing, self._listing = self._listing, None
            self._members, self._head_seen = listing.result(), time.monotonic()
        silent = time.monotonic() - self._head_seen
        if self._head is not None and silent > GONE_SECONDS:
            raise ClusterError(
                f"the head of the cluster cannot be reached for {silent:.0f} s: it has ended, or the network is down; "
                "resume the run once it is there."
            )
        return self._members

    def _living(self) -> Sequence[Member]:
        """Return the places on living nodes; where one has a GPU for the model at first, only GPUs count from then on."""
        try:
            nodes = [node for node in self._ray.nodes() if node["Alive"]]
        except Exception as error:
            # Ray's own text repeats its connection's settings over several lines.
            raise ClusterError(
                f"the cluster cannot be reached any more ({type(error).__name__}); check `ray status`, then resume the run."
            ) from error
        if self._only_gpus is None and nodes:
            self._only_gpus = any(map(_gpus, nodes))
        return places(nodes, uses_gpus=self._uses_gpus, only_gpus=bool(self._only_gpus))

    def start(self, member: Member) -> Any:
        try:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            actor = self._ray.remote(concurrency_groups={HEALTH: 1})(RayWorker).options(
                num_cpus=1,
                num_gpus=1 if member.has_gpu else 0,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(member.node, soft=False),
            )
            return actor.remote(self._allow_open)
        except Exception as error:
            raise WorkerLostError(one_line(error)) from error

    def call(self, worker: Any, method: str, *arguments: Any) -> int:
        self._calls += 1
        try:
            future = getattr(worker, method).remote(*arguments).future()
        except Exception as error:
            future = Future()
            future.set_exception(error)
        future.add_done_callback(partial(self._finish, self._calls))
        return self._calls

    def _finish(self, number: int, future: Future[Any]) -> None:
        self._finished.put((number, future))

    def poll(self, seconds: float) -> Sequence[tuple[int, Any]]:
        self._kill_ended()
        finished = []
        with suppress(Empty):
            finished.append(self._finished.get(timeout=seconds))
            while True:
                finished.append(self._finished.get_nowait())
        return [(number, _outcome(future)) for number, future in finished]

    def put(self, data: bytes) -> Any:
        try:
            return self._ray.put(data)
        except Exception as error:
            raise ClusterError(
                f"the cluster takes no more data ({one_line(error)}); check `ray status`, then resume the run."
            ) from error

    def release(self, worker: Any, *, at_once: bool = False) -> None:
        future: Future[Any] = Future()
        until = time.monotonic()
        if not at_once:
            with suppress(Exception):  # of a cluster that is gone
                future = worker.end.remote().future()
                until += END_SECONDS
        self._ending.append((worker, future, until))
        self._kill_ended()

    def _kill_ended(self) -> None:
        """Kill the workers that have removed what they wrote, or had the time for it."""
        now = time.monotonic()
        for worker, future, until in list(self._ending):
            if future.done() or now >= until:
                self._ending.remove((worker, future, until))
                with suppress(Exception):
                    self._ray.kill(worker)

    def close(self) -> None:
        wait_for([future for _, future, _ in self._ending], END_SECONDS)
        self._ending = [(worker, future, 0.0) for worker, future, _ in self._ending]
        self._kill_ended()
        with suppress(Exception):
            self._ray.shutdown()
        if self._folder is not None:
            self._folder.remove()


def places(nodes: Sequence[Mapping[str, Any]], *, uses_gpus: bool, only_gpus: bool) -> list[Member]:
    """Return the places on ``nodes``, as Ray describes them: one for each GPU if those are used, and otherwise for each node."""
    names = [str(node["NodeManagerHostname"]) for node in nodes]
    members = []
    for node, name in zip(nodes, names, strict=True):
        identifier = str(node["NodeID"])
        shown = name if names.count(name) == 1 else f"{name} {identifier[:6]}"
        gpus = _gpus(node) if uses_gpus else 0
        if gpus > 1:
            members += [Member(f"{identifier}/{gpu}", f"{shown} GPU {gpu}", has_gpu=True) for gpu in range(gpus)]
        elif gpus or (node["Resources"].get("CPU", 0) >= 1 and not only_gpus):
            members.append(Member(identifier, shown, has_gpu=gpus == 1))
    return members


def _gpus(node: Mapping[str, Any]) -> int:
    return int(node["Resources"].get("GPU", 0))


def _outcome(future: Future[Any]) -> Any:
    """Return what a call returned, or the exception that it raised on its node."""
    from ray.exceptions import RayTaskError

    error = future.exception()
    if error is None:
        return future.result()
    return getattr(error, "cause", error) if isinstance(error, RayTaskError) else _lost(error)


def _lost(error: BaseException) -> WorkerLostError:
    """Return how a worker ended, without what Ray adds about itself."""
    text = str(error)
    if "OUT_OF_MEMORY" in text or "running low on memory" in text:
        return WorkerLostError("Ray ended it because its node ran low on memory", out_of_memory=True)
    if missing := _MISSING.search(text):
        return WorkerLostError(f"the package {missing[1]} is missing there; install rashomon[ray]", for_good=True)
    cause = re.search(r"because (its (?:node|worker process) has died)", text)
    return WorkerLostError(cause[1] if cause else one_line(error), crashed="worker process has died" in text)


def _in_thread(function: Callable[[], T]) -> Future[T]:
    """Call a function that may wait for the network, in a thread that does not keep this process from ending."""
    future: Future[T] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=call, daemon=True).start()
    return future
