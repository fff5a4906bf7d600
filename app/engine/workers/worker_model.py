"""Model of a worker: loaded once, on this machine or on the job's cluster, with the lock on the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from app.engine.workers.device_lock import acquire_device
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_process import note_state
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.store_types import NODES_KEY, NodeStatus
from app.system.process_signals import ended_by_signals
from judges.rubric_judge import RubricJudge
from mlx_backends.base import Backend, MediaPath
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.mlx.metal.metal_switches import float_facts
from mlx_backends.models.host_machine import host_info
from mlx_backends.options import RemoteOptions
from mlx_backends.stored_checks import StoredChecks

if TYPE_CHECKING:
    from app.engine.workers.cluster.cluster_backend import ClusterBackend


class WorkerModel:
    """The model that answers a job's runs, or judges them; ``stop`` returns True once the worker must end."""

    def __init__(self, job: Job, stop: Callable[[], bool]) -> None:
        self.is_loading = False
        self.avoided = set(job.avoid)
        self._job = job
        self._stop = stop
        self._backend: Backend | None = None
        self._on_nodes: ClusterBackend | None = None
        self._device_lock: FileLock | None = None

    def load(
        self,
        store: RunStore,
        model: str,
        media: MediaPath,
        options: RemoteOptions,
        kv_bits: int | None = None,
        *,
        judge: RubricJudge | None = None,
    ) -> Backend | None:
        """Return the backend of ``model``, which answers or is a ``judge``: on this machine, or on the job's cluster.

        It is loaded once. None if the wait for the device, or for a node, was interrupted.
        """
        if self._job.workers is not None:
            return self._load_on_nodes(store, model, media, self._job.workers, kv_bits, judge)
        if self._backend is None and self._has_device(store, model):
            note_state(store, "loading")
            with self._ends_at_once():
                if not self._stop():
                    self._backend = load_backend(
                        model,
                        media,
                        force=self._job.force,
                        remote=options,
                        max_in_flight=self._job.width,
                        kv_bits=kv_bits,
                    )
                    if type(self._backend).__module__.startswith(
                        "mlx_backends."
                    ):  # another package's code has no digest
                        self._backend.stored_checks = StoredChecks(asdict(self._backend.info))
        return self._backend

    def width(self, backend: Backend, *, exact: bool) -> int:
        """Return the most requests in flight; nodes of a cluster answer one at a time by themselves where that is ``exact``."""
        most = backend.capacity if exact and self._job.workers is None else backend.max_capacity
        return min(most, self._job.width or most)

    def engine(self, backend: Backend) -> dict[str, Any]:
        """Return what the answers of ``backend`` are stored with."""
        if self._on_nodes is not None:
            return dict(self._on_nodes.engine)
        info = backend.info
        return {**asdict(info), "machine": asdict(host_info()), **float_facts(info.engine, info.device)}

    def unwatch(self) -> None:
        """Store the nodes of a cluster no more."""
        if self._on_nodes is not None:
            self._on_nodes.unwatch()

    def free(self) -> None:
        """Free the memory of the loaded model, if any."""
        if self._backend is not None:
            self._backend.close()
        self._backend = self._on_nodes = None

    def close(self) -> None:
        """Free the model and the device."""
        self.free()
        if self._device_lock is not None:
            self._device_lock.release()
        self._device_lock = None

    def _has_device(self, store: RunStore, model: str) -> bool:
        """Wait for the device, if ``model`` needs it; return False if that was interrupted."""
        if self._device_lock is not None or not describe(model).needs_device:
            return True
        self._device_lock = acquire_device(
            f"run {store.folder.name} (process {os.getpid()})",
            waiting=lambda holder: note_state(store, "queued", f"waiting for {holder}"),
            stop=self._stop,
            patience=self._job.wait,
        )
        return self._device_lock is not None

    def _load_on_nodes(
        self,
        store: RunStore,
        model: str,
        media: MediaPath,
        workers: str,
        kv_bits: int | None,
        judge: RubricJudge | None,
    ) -> Backend | None:
        from app.engine.workers.cluster.cluster_backend import ClusterBackend
        from app.engine.workers.cluster.cluster_connection import connect, node_job
        from app.engine.workers.cluster.recorded_engine import record_engine, recorded_engine

        recorded = recorded_engine(store, judge, describe(model))
        watcher = partial(_save_nodes, store, "" if judge is None else judge.id)
        backend = self._backend
        if backend is None:
            note_state(store, "loading", f"starting workers on {workers}")
            owner = f"run {store.folder.name}"
            backend = self._backend = connect(
                workers,
                node_job(model, owner, force=self._job.force, max_in_flight=self._job.width, kv_bits=kv_bits),
                media,
                recorded=recorded,
                accept_engine=self._job.accept_engine,
                allow_open=self._job.allow_open_cluster,
                avoid=self.avoided,
            )
        assert isinstance(backend, ClusterBackend)
        backend.watch(watcher)
        if not backend.wait(self._stop):
            return None
        record_engine(store, judge, recorded, backend.info, accept=self._job.accept_engine)
        self._on_nodes = backend
        return backend

    @contextmanager
    def _ends_at_once(self) -> Iterator[None]:
        """Let a signal, or the parent's end, end the process at once while a model is loading: every answer is committed."""
        self.is_loading = True
        try:
            with ended_by_signals():
                yield
        finally:
            self.is_loading = False


def _save_nodes(store: RunStore, judge: str, nodes: Sequence[NodeStatus]) -> None:
    """Store the nodes that answer a run, or those of a ``judge`` next to the others."""
    entries = [asdict(replace(node, judge=judge)) for node in nodes]
    store.change_meta(
        NODES_KEY, lambda known: [*(node for node in known or () if judge and node.get("judge") != judge), *entries]
    )
