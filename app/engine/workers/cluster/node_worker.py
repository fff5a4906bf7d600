"""Worker on a node of a cluster: loads the model there, and answers what the driver sends."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from app.engine.workers.cluster.cluster_messages import (
    Loaded,
    MediaReferences,
    NodeJob,
    NotLoaded,
    Orders,
    Problem,
    Proof,
    Report,
    media_of,
)
from app.engine.workers.cluster.model_folder_copy import CopiedPart, FolderCopy, copied_folder, remove_partial_copies
from app.engine.workers.device_lock import device_lock_path
from app.store.file_locks import FileLock
from benchmarks.errors import MediaError, ModelError, RashomonError
from benchmarks.untrusted.own_files import OwnFolder, sweep
from benchmarks.vocabulary import Generation, Media, Request
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.batch_invariance import BatchInvariance
from mlx_backends.core.engine_probe import Probe
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import DeviceLostError, out_of_memory
from mlx_backends.core.saved_work import Reuse, Seen
from mlx_backends.engine_registry import available_memory, describe, load_backend
from mlx_backends.mlx.metal.metal_switches import float_facts
from mlx_backends.models.adapter_folder import join_adapter, read_adapter
from mlx_backends.models.host_machine import host_info
from mlx_backends.pytorch.torch_names_and_devices import split_name
from mlx_backends.remote.api_keys import VARIABLES
from mlx_backends.stored_checks import StoredChecks

SLICE_SECONDS = 2.0
"""The longest time between two reports of a worker, unless a step of its backend takes longer."""

GATHER_SECONDS = 0.02
"""The time in which a worker waits for further answers before it reports the first."""


MEDIA_BYTES = 1 << 30
"""The most bytes of media that a worker keeps."""

SECRETS = (*VARIABLES, "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Environment variables that no worker on a node has."""

Fetch = Callable[[Any], bytes]
"""Function that returns the bytes of what :meth:`app.engine.workers.cluster.cluster_interface.Cluster.put` returned."""


class NodeWorker:
    """Worker on a node. Its methods are called one after the other, except :meth:`ping` and :meth:`end`."""

    def __init__(self, fetch: Fetch = bytes) -> None:
        self._fetch = fetch
        self._media = MediaCache(fetch)
        self._backend: Backend | None = None
        self._lock: FileLock | None = None
        self._queue: deque[Request] = deque()
        self._begun: dict[str, Request] = {}
        self._copy: FolderCopy | None = None
        self._reuse: Reuse | None = None
        self._reported = Seen()

    def ping(self) -> bool:
        """Return True: this process is alive."""
        return True

    def end(self) -> None:
        """Remove what this worker wrote on the node, except whole copies of models, whatever it is doing."""
        self._media.remove()
        if self._copy is not None:
            self._copy.remove()

    def memory(self, models: Sequence[str]) -> dict[str, int]:
        """Return the bytes of this node's memory that each of ``models`` may take; without those whose engine cannot run here."""
        available = {}
        for model in models:
            with suppress(RashomonError):
                available[model] = available_memory(model)
        return available

    def load(self, job: NodeJob) -> Loaded | NotLoaded:
        """Load the model, once the node's device is free."""
        if version("rashomon") != job.version:
            return NotLoaded(
                f"it has Rashomon {version('rashomon')}, not {job.version}; install the same version there"
            )
        sweep(Path(tempfile.gettempdir()))
        remove_partial_copies()
        try:
            return self._load(job)
        except RashomonError as error:
            return NotLoaded(str(error))

    def _load(self, job: NodeJob) -> Loaded | NotLoaded:
        model = _local_name(job)
        if isinstance(model, NotLoaded):
            return model
        if describe(model).needs_device and (holder := self._lock_device(job.owner)):
            return NotLoaded(holder=holder)
        memory = self.memory([model]).get(model, 0)
        backend = load_backend(
            model, self._media, force=job.force, max_in_flight=job.max_in_flight, kv_bits=job.kv_bits
        )
        backend.use_sequential_mode()
        if type(backend).__module__.startswith("mlx_backends."):
            backend.stored_checks = StoredChecks(asdict(backend.info))
        self._backend = backend
        info = replace(backend.info, model=job.name)
        facts = float_facts(info.engine, info.device)
        return Loaded(info, {**asdict(info), "machine": asdict(host_info()), **facts}, memory)

    def _lock_device(self, owner: str) -> str:
        """Lock this machine's device, together with other workers of the same run; return who holds it otherwise."""
        lock = FileLock(device_lock_path())
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        if not lock.acquire_shared(owner):
            return lock.holder() or "another run"
        self._lock = lock
        return ""

    # --- files of models and adapters ----------------------------------------------------------------------------------

    def begin_copy(self, part: CopiedPart, name: str, digest: str, files: Mapping[str, int]) -> str:
        """Make room for files, given with their sizes; return why that is not possible, or an empty text."""
        self._copy = FolderCopy(part, name, digest, files)
        return self._copy.begin()

    def add_piece(self, file: str, piece: Any) -> str:
        """Append to one of the files; return why that is not possible, or an empty text."""
        assert self._copy is not None
        return self._copy.add(file, self._fetch(piece))

    def end_copy(self) -> str:
        """Check and keep the files; return why that is not possible, or an empty text."""
        assert self._copy is not None
        copy, self._copy = self._copy, None
        return copy.end()

    # --- answering ---------------------------------------------------------------------------------------------------

    @property
    def backend(self) -> Backend:
        """The loaded backend."""
        assert self._backend is not None
        return self._backend

    def prove(self, request: Request, media: MediaReferences) -> Proof | Problem:
        """Answer a probe request, alone."""
        self.backend.use_sequential_mode()
        with self._media.holding(media), _sendable_errors():
            self.backend.submit(request)
            done: Sequence[Generation] = ()
            while not done:
                done = self.backend.step()
        (answer,) = done
        proof = Proof((answer.finish_reason, answer.tokens or answer.text), answer.prompt_tokens or 0)
        return self._media.problem or proof

    def configure(self, requests: Sequence[Request] | None, media: MediaReferences) -> BatchInvariance | Problem | None:
        """Answer one request at a time, or in the fastest mode that leaves the answers to ``requests`` unchanged."""
        self.backend.use_sequential_mode()
        if requests is None:
            return None
        with self._media.holding(media), _sendable_errors():
            invariance = self.backend.choose_mode(requests)
        return self._media.problem or invariance

    def probe(self, request: Request, media: MediaReferences, forced: Sequence[int], keep: bool) -> Probe:
        """Return the engine's probe of a request; see :meth:`mlx_backends.base.Backend.probe`."""
        with self._media.holding(media):
            return self.backend.probe(request, forced, keep=keep)

    def image_rows(self, request: Request, media: MediaReferences) -> Any:
        """Return the language model's input at the images; see :meth:`mlx_backends.base.Backend.image_rows`."""
        with self._media.holding(media):
            return self.backend.image_rows(request)

    def exchange(self, orders: Orders) -> Report:
        """Follow ``orders``, and answer until something is done or :data:`SLICE_SECONDS` are over."""
        with _sendable_errors():
            return self._exchange(orders)

    def _exchange(self, orders: Orders) -> Report:
        self._media.hold(orders.media)
        self._cancel(orders.cancel)
        self._queue.extend(orders.requests)
        returned = [self._queue.pop() for _ in range(min(orders.give_back, len(self._queue)))]
        generations: list[Generation] = []
        until = time.monotonic() + SLICE_SECONDS
        while (self._queue or self._begun) and not self._media.problem:
            while self._queue and len(self._begun) < self.backend.capacity:
                request = self._queue.popleft()
                self._begun[request.id] = request
                self.backend.submit(request)
            for generation in self.backend.step():
                if self._media.problem and generation.finish_reason == "error":
                    continue
                self._begun.pop(generation.request_id)
                if not generations:
                    until = min(until, time.monotonic() + GATHER_SECONDS)
                generations.append(generation)
            if time.monotonic() > until:
                break
        self._media.hold_only(chain(self._queue, self._begun.values()))
        reuse = self.backend.reuse
        if reuse is not self._reuse:
            self._reuse, self._reported = reuse, Seen()
        return Report(
            generations,
            [request.id for request in returned],
            len(self._queue),
            self.backend.capacity,
            {} if reuse is None else reuse.sums(),
            None if reuse is None else reuse.seen.take_changes(self._reported),
            tuple(self.backend.remarks),
            self._media.problem,
        )

    def _cancel(self, request_ids: Sequence[str]) -> None:
        if not request_ids:
            return
        dropped = set(request_ids)
        self._queue = deque(request for request in self._queue if request.id not in dropped)
        for request_id in dropped & self._begun.keys():
            self.backend.cancel(request_id)
            del self._begun[request_id]


class MediaCache:
    """Media of the requests that a worker holds, and of earlier ones as far as there is room; a :data:`MediaPath`.

    A medium is fetched when it is needed, and its content is checked. ``problem`` is why one could not be had or written, which
    says nothing about the requests that show it.
    """

    def __init__(self, fetch: Fetch, limit: int = MEDIA_BYTES) -> None:
        self.problem: Problem | None = None
        self._fetch = fetch
        self._limit = limit
        self._folder: OwnFolder | None = None
        self._references: dict[str, Any] = {}
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._guard = threading.Lock()  # a backend prepares requests in a thread

    def remove(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.remove()

    def hold(self, media: MediaReferences) -> None:
        """Take references to media that will be needed."""
        with self._guard:
            self._references.update(media)

    def hold_only(self, requests: Iterable[Request]) -> None:
        """Drop the references that none of ``requests`` needs; a later request brings its own."""
        needed = {medium.name for request in requests for medium in media_of(request)}
        with self._guard:
            self._references = {name: value for name, value in self._references.items() if name in needed}

    @contextmanager
    def holding(self, media: MediaReferences) -> Iterator[None]:
        """Hold references within the block."""
        self.hold(media)
        try:
            yield
        finally:
            self.hold_only(())

    def __call__(self, medium: Media) -> Path:
        with self._guard:
            if medium.name not in self._sizes:
                if medium.name not in self._references:
                    raise MediaError(medium.name, "cannot be read on the driver's machine")
                try:
                    data = self._fetched(medium)
                except Exception as error:
                    self.problem = Problem(f"it could not get a medium: {one_line(error)}", passes=True)
                    raise
                try:
                    self._sizes[medium.name] = self._write(medium, data)
                except OSError as error:
                    self.problem = Problem(f"it could not write a medium: {one_line(error)}", passes=False)
                    raise
            self._sizes.move_to_end(medium.name)
            return self._path(medium.name)

    def _fetched(self, medium: Media) -> bytes:
        """Return the content of a medium, at the second attempt if the first one fails."""
        reference = self._references[medium.name]
        try:
            data = self._fetch(reference)
        except Exception:
            data = self._fetch(reference)
        if hashlib.sha256(data).hexdigest() != medium.sha256:
            raise ModelError("it arrived damaged")
        return data

    def _write(self, medium: Media, data: bytes) -> int:
        while self._sizes and sum(self._sizes.values()) + len(data) > self._limit:
            name, _ = self._sizes.popitem(last=False)
            self._path(name).unlink(missing_ok=True)
        self._path(medium.name).write_bytes(data)
        return len(data)

    def _path(self, name: str) -> Path:
        if self._folder is None:
            self._folder = OwnFolder(Path(tempfile.gettempdir()))
        return self._folder.path / name


@contextmanager
def _sendable_errors() -> Iterator[None]:
    """Raise errors as such that the driver can receive, which may have other packages."""
    try:
        yield
    except Exception as error:
        lost_for_memory = isinstance(error, DeviceLostError) and error.fault.is_excess
        kind = MemoryError if lost_for_memory or out_of_memory(error) else RuntimeError
        raise kind(one_line(error)) from error


def _local_name(job: NodeJob) -> str | NotLoaded:
    """Return the name of the job's model on this node: with the node's own files, or with those that were sent."""
    prefix, _, options = split_name(job.model)
    base, info = job.base, _described(f"{prefix}{job.base}{options}")
    if info is None or info.weights != job.weights:
        copy = copied_folder("model", base, job.weights)
        if copy is None and info is None:
            return NotLoaded(f"it does not have the model {job.model}", missing="model")
        if copy is None:
            return NotLoaded(
                f"its files of {job.model} have another weights digest than the run's; fetch them again, or remove them"
            )
        base = copy
    if job.adapter is None:
        return f"{prefix}{base}{options}"
    folder, digest = job.adapter
    if _adapter_digest(folder) != digest:
        copy = copied_folder("adapter", folder, digest)
        if copy is None:
            return NotLoaded(f"it does not have the adapter {folder}", missing="adapter")
        folder = copy
    return f"{prefix}{join_adapter(base, folder)}{options}"


def _adapter_digest(folder: str) -> str | None:
    """Return the digest of the adapter in a folder of this node; None if there is none."""
    try:
        return read_adapter(folder).digest
    except ModelError:
        return None


def _described(model: str) -> EngineInfo | None:
    """Return the description of ``model`` on this node; None if the node does not have it."""
    try:
        return describe(model)
    except ModelError:
        return None
