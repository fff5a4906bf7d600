"""Text models of commands, with a reply cache, so that an interrupted build or check pays for no reply twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.engine.workers.device_lock import acquire_device
from app.store.file_locks import FileLock
from benchmarks.text_model import Embedder, TextModel
from benchmarks.vocabulary import Generation, Request, digest
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.models.model_discovery import inspect, resolve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass
class Usage:
    """The replies that a model gave, and their cost: tokens, and seconds of generation.

    Cached replies cost nothing again.
    """

    replies: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, reply: Generation, *, is_cached: bool) -> None:
        """Count a reply."""
        self.replies += 1
        self.cached += is_cached
        self.failed += reply.finish_reason == "error"
        self.prompt_tokens += reply.prompt_tokens or 0
        self.completion_tokens += reply.completion_tokens or 0
        self.seconds += (reply.prefill_s or 0.0) + (reply.decode_s or 0.0)


class CachedTextModel(TextModel):
    """A text model with a cache of its replies.

    ``backend`` loads the model; it is called for the first request that is not cached. Replies are cached in ``replies`` under
    the identity of the model; errors are not cached. ``replies`` is None for a backend with a cache of its own, as remote ones
    have. The nodes of a cluster may have other versions than this machine: then the identity is theirs.
    """

    def __init__(self, info: EngineInfo, backend: Callable[[], Backend], replies: ResponseCache | None) -> None:
        server = info.versions.get("server")
        self.name = f"{info.model} at {server}" if server else info.model
        self._backend = backend
        self._replies = replies
        self._who = _identity(info)
        self.usage = Usage()
        self.is_remote = info.device == "remote"

    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        waiting = iter(requests)
        in_flight: dict[str, Request] = {}
        backend: Backend | None = None
        exhausted = False
        try:
            while True:
                while not exhausted and (backend is None or len(in_flight) < backend.capacity):
                    request = next(waiting, None)
                    if request is None:
                        exhausted = True
                        break
                    cached = self._cached(request)
                    if cached is None and backend is None:
                        backend = self._backend()
                        self._who = _identity(backend.info)
                        cached = self._cached(request)
                    if cached is not None:
                        self.usage.add(cached, is_cached=True)
                        yield cached
                        continue
                    assert backend is not None
                    in_flight[request.id] = request
                    backend.submit(request)
                if backend is None or not in_flight:
                    return
                for generation in backend.step():
                    request = in_flight.pop(generation.request_id)
                    if self._replies and generation.finish_reason != "error":
                        self._replies.put(self._who, request.digest, generation)
                    self.usage.add(generation, is_cached=not generation.calls)
                    yield generation
        finally:
            for request_id in in_flight:
                if backend is not None:
                    backend.cancel(request_id)

    def _cached(self, request: Request) -> Generation | None:
        cached = self._replies.get(self._who, request.digest) if self._replies else None
        return None if cached is None else replace(cached, request_id=request.id)


def _identity(info: EngineInfo) -> str:
    adapter = [] if info.adapter is None else [info.adapter]  # replies without one are stored under the shorter name
    return digest([info.engine, info.model, info.weights, info.quantisation, dict(info.versions), *adapter])


class LocalModelSlot:
    """Slot for one local model at a time: using a model unloads the previous one.

    The device lock is acquired for the first model and held for ``owner`` until :meth:`close`; meanwhile ``waiting`` receives
    its holder, for ``patience`` seconds at most if that is limited. Models on a cluster (``elsewhere``) leave the device to the
    cluster's nodes, of which this machine may be one.
    """

    def __init__(
        self,
        waiting: Callable[[str], None],
        *,
        owner: str = "rashomon build",
        elsewhere: bool = False,
        patience: float | None = None,
    ) -> None:
        self._owner = owner
        self._patience = patience
        self._waiting = waiting
        self._elsewhere = elsewhere
        self._device_lock: FileLock | None = None
        self._loaded: tuple[str, Backend] | None = None

    def use(self, name: str, load: Callable[[], Backend]) -> Backend:
        """Return the model ``name``, loading it with ``load`` unless it is the current one; any other is closed first."""
        if self._loaded is None or self._loaded[0] != name:
            self.close() if self._elsewhere else self.hold()
            self._loaded = name, load()
        return self._loaded[1]

    def hold(self) -> None:
        """Hold the device without a model on it."""
        self._unload()
        if self._device_lock is None:
            self._device_lock = acquire_device(self._owner, waiting=self._waiting, stop=bool, patience=self._patience)

    def close(self) -> None:
        """Release the model and the device."""
        self._unload()
        if self._device_lock is not None:
            self._device_lock.release()
            self._device_lock = None

    def _unload(self) -> None:
        if self._loaded is not None:
            model, self._loaded = self._loaded, None
            model[1].close()


def open_text_model(
    stack: ExitStack, name: str, info: EngineInfo, load: Callable[[], Backend], device: LocalModelSlot, replies: Path
) -> CachedTextModel:
    """Return the model ``name``, which ``load`` loads: a local one while it is in use, a remote one until ``stack`` ends.

    ``replies`` is the file of its cache; a remote one has its own.
    """
    if info.needs_device:
        return CachedTextModel(info, lambda: device.use(name, load), ResponseCache(replies))
    backend = load()
    stack.callback(backend.close)
    return CachedTextModel(backend.info, lambda: backend, None)


class LocalEmbedder(Embedder):
    """A local embedding model, loaded only while it embeds. Raises ModelError if there is none of that name."""

    def __init__(self, name: str, force: bool, device: LocalModelSlot) -> None:
        self.name = inspect(resolve(name)).name
        self._model, self._force, self._device = name, force, device

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from mlx_backends.mlx.text_embedding import load_embedder

        self._device.hold()
        encoder = load_embedder(self._model, force=self._force)
        try:
            return encoder.embed(texts)
        finally:
            encoder.close()
