"""Cluster through Ray: the only module that knows it."""

from __future__ import annotations

import logging
import os
import platform
import re
import signal
import socket
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import Any

from app.engine.workers.cluster.address import head_of
from app.engine.workers.cluster.messages import Loaded, NodeJob, NotLoaded
from app.engine.workers.cluster.node import SECRETS, NodeWorker
from app.engine.workers.cluster.seam import Cluster, Member, WorkerLostError
from benchmarks.errors import ModelError
from mlx_backends.core.error_text import one_line
from mlx_backends.pytorch.spec import PREFIX as TORCH

CONNECT_SECONDS = 5.0
"""The seconds in which a cluster's head must take a connection."""

GONE_SECONDS = 30.0
"""The seconds without a head after which a cluster is given up. After 60, Ray ends the process that is connected."""

OBJECT_STORE_BYTES = 200 << 20
"""The memory in which a cluster on this machine shares media."""

HEALTH = "health"

_MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""The variable, read on every system, without which Ray listens on the loopback address only."""

_QUIET = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
"""Environment variables for Ray in this process, where the user has not set them."""


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
        from ray._private.authentication.authentication_utils import is_token_auth_enabled

        if not (self._allow_open or is_token_auth_enabled()):
            return NotLoaded(
                "Ray runs there without token authentication; start it with RAY_AUTH_MODE=token, or add --allow-open-cluster"
            )
        return super().load(job)

    def ping(self) -> bool:
        return super().ping()

    # As `ray.method` does, without Ray at hand. A call's options would do, but Ray's client has none for this.
    setattr(ping, "__ray_concurrency_group__", HEALTH)  # noqa: B010


def _fetch(reference: Any) -> bytes:
    import ray

    if isinstance(reference, bytes):  # Ray has fetched what was an argument itself
        return reference
    data: bytes = ray.get(reference)
    return data


class RayCluster(Cluster):
    """The cluster at an address, or a new one on this machine.

    Raises ModelError if it cannot be reached, is of another version, or has no token authentication, unless ``allow_open``.
    """

    def __init__(self, workers: str, model: str, *, allow_open: bool = False) -> None:
        self._uses_gpus = model.startswith(TORCH)
        self._allow_open = allow_open
        self._finished: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()
        self._calls = 0
        self._members: Sequence[Member] = ()
        self._head: tuple[str, int] | None = None
        self._head_seen = time.monotonic()
        address = os.environ.get("RAY_ADDRESS", "") if head_of(workers) is None else workers
        own = not address
        if head := head_of(address) or _node_address(address):
            _check_head(address, *head)
        with _environment(own=own), _signals_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray

            self._ray = ray
            try:
                self._connect(address)
                if head_of(address) is None:
                    self._head = _node_address(ray.get_runtime_context().gcs_address)
            except Exception as error:
                with suppress(Exception):
                    ray.shutdown()
                raise _explained(address or workers, error) from error

    def _connect(self, address: str) -> None:
        """Connect to the cluster at an address; without one, start a new one on this machine."""
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address:
            self._ray.init(address=address, **options)
        else:
            self._ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                **options,
            )

    def members(self) -> Sequence[Member]:
        if self._head is not None and _unreachable(*self._head):  # Ray would wait for it
            if time.monotonic() - self._head_seen > GONE_SECONDS:
                raise ModelError("the head of the cluster has ended; start it again, then resume the run.")
            return self._members
        self._head_seen = time.monotonic()
        self._members = self._living()
        return self._members

    def _living(self) -> Sequence[Member]:
        try:
            nodes = [node for node in self._ray.nodes() if node["Alive"]]
        except Exception as error:
            raise ModelError(f"the cluster cannot be reached any more ({one_line(error)}); resume the run.") from error
        names = [str(node["NodeManagerHostname"]) for node in nodes]
        members = []
        for node, name in zip(nodes, names, strict=True):
            identifier = str(node["NodeID"])
            shown = name if names.count(name) == 1 else f"{name} {identifier[:6]}"
            gpus = int(node["Resources"].get("GPU", 0)) if self._uses_gpus else 0
            if gpus > 1:
                members += [Member(f"{identifier}/{gpu}", f"{shown} GPU {gpu}") for gpu in range(gpus)]
            elif node["Resources"].get("CPU", 0) >= 1:
                members.append(Member(identifier, shown))
        return members

    def start(self, member: Member) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = member.node
        actor = self._ray.remote(concurrency_groups={HEALTH: 1})(RayWorker).options(
            num_cpus=1,
            num_gpus=1 if self._uses_gpus and self._has_gpu(node) else 0,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        try:
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
        finished = []
        with suppress(Empty):
            finished.append(self._finished.get(timeout=seconds))
            while True:
                finished.append(self._finished.get_nowait())
        return [(number, _outcome(future)) for number, future in finished]

    def put(self, data: bytes) -> Any:
        return self._ray.put(data)

    def release(self, worker: Any) -> None:
        with suppress(Exception):  # of a cluster that is gone
            self._ray.kill(worker)

    def close(self) -> None:
        with suppress(Exception):
            self._ray.shutdown()

    def _has_gpu(self, node_id: str) -> bool:
        return any(node["NodeID"] == node_id and node["Resources"].get("GPU", 0) >= 1 for node in self._ray.nodes())


def _outcome(future: Future[Any]) -> Any:
    """Return what a call returned, or the exception that it raised on its node."""
    from ray.exceptions import RayError, RayTaskError

    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, RayTaskError):
        return getattr(error, "cause", error)
    return WorkerLostError(_how(error)) if isinstance(error, RayError) else error


def _how(error: Exception) -> str:
    """Return how a worker ended, without what Ray adds about itself."""
    if "OUT_OF_MEMORY" in str(error) or "running low on memory" in str(error):
        return "Ray ended it because its node ran low on memory"
    cause = re.search(r"because (its (?:node|worker process) has died)", str(error))
    return cause[1] if cause else one_line(error)


def _node_address(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address as ``RAY_ADDRESS`` gives it to a node; None for any other."""
    host, _, port = address.rpartition(":")
    return (host.strip("[]"), int(port)) if host and "/" not in host and port.isdecimal() and len(port) < 6 else None


def _check_head(address: str, host: str, port: int) -> None:
    """Raise ModelError if nothing listens there: Ray would try for half a minute."""
    if error := _unreachable(host, port):
        raise ModelError(
            f"no cluster answers at {address} ({error.strerror or error}); check its address, and that `ray start --head` "
            "runs there with this port."
        ) from error


def _unreachable(host: str, port: int) -> OSError | None:
    """Return why nothing takes connections there; None if something does."""
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        return error
    return None


def _explained(address: str, error: Exception) -> ModelError:
    hint, cause = "", one_line(error)
    if isinstance(error, ConnectionAbortedError):  # what the head reports, as a traceback
        cause = one_line(type(error)(str(error).strip().rpartition("\n")[2].strip()))
        versions = f"Ray {version('ray')} and Python {platform.python_version()}"
        hint = f"; try again if its head is busy, and check that it has what this machine has: {versions}"
    elif isinstance(error, ConnectionError) and "//" in address:
        hint = (
            "; check that the port is the client server's (10001 unless the head has another), and that this machine has "
            "the cluster's token (`ray get-auth-token`) and the same Ray"
        )
    elif isinstance(error, ConnectionError):
        hint = (
            "; check that this machine is a node of it (any other needs --workers ray://HOST:10001), and has its token "
            "(`ray get-auth-token`)"
        )
    return ModelError(f"the cluster {address} cannot be used: {cause}{hint}.")


@contextmanager
def _environment(*, own: bool) -> Iterator[None]:
    """Set Ray's variables, and hide keys from the processes that start within the block.

    A cluster of our ``own`` listens on the loopback address only.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if own:
        os.environ[_MANY_MACHINES] = "0"
    hidden = {name: os.environ.pop(name) for name in SECRETS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep this process's handlers of signals, which Ray replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
