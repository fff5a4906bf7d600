"""Models as a construction asks them: each reply is kept by content, so that an interrupted build pays for none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.engine.workers.device_lock import acquire_device
from app.store.locks import FileLock
from benchmarks.base import Generation, Request, digest
from benchmarks.text_model import Embedder, TextModel
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.models.discovery import inspect, resolve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class CachedTextModel(TextModel):
    """A model as a construction asks it. ``backend`` gives it, loaded, once something is asked that is not kept.

    Replies are kept in ``replies`` under what answered; errors are not kept. None where the backend keeps them itself, as
    remote ones do.
    """

    def __init__(self, info: EngineInfo, backend: Callable[[], Backend], replies: ResponseCache | None) -> None:
        server = info.versions.get("server")
        self.name = f"{info.model} at {server}" if server else info.model
        self._backend = backend
        self._replies = replies
        self._who = digest([info.engine, info.model, info.weights, info.quantisation, dict(info.versions)])

    def ask(self, requests: Iterable[Request]) -> Iterator[Generation]:
        waiting = iter(requests)
        asked: dict[str, Request] = {}
        backend: Backend | None = None
        exhausted = False
        try:
            while True:
                while not exhausted and (backend is None or len(asked) < backend.capacity):
                    request = next(waiting, None)
                    if request is None:
                        exhausted = True
                        break
                    known = self._replies.get(self._who, request.digest) if self._replies else None
                    if known is not None:
                        yield replace(known, request_id=request.id)
                        continue
                    backend = backend or self._backend()
                    asked[request.id] = request
                    backend.submit(request)
                if backend is None or not asked:
                    return
                for generation in backend.step():
                    request = asked.pop(generation.request_id)
                    if self._replies and generation.finish_reason != "error":
                        self._replies.put(self._who, request.digest, generation)
                    yield generation
        finally:
            for request_id in asked:
                if backend is not None:
                    backend.cancel(request_id)


class LocalModelSlot:
    """This machine's models as a build asks them: the one that is asked is loaded, and no other.

    The device is waited for when the first of them is needed, and held until :meth:`close`; ``waiting`` is told who has it.
    """

    def __init__(self, waiting: Callable[[str], None]) -> None:
        self._waiting = waiting
        self._lease: FileLock | None = None
        self._loaded: tuple[str, Backend] | None = None

    def use(self, name: str, load: Callable[[], Backend]) -> Backend:
        """The model called ``name``, which ``load`` loads; whichever other one is loaded is closed first."""
        if self._loaded is None or self._loaded[0] != name:
            self.hold()
            self._loaded = name, load()
        return self._loaded[1]

    def hold(self) -> None:
        """Hold the device with nothing loaded on it."""
        self._unload()
        if self._lease is None:
            self._lease = acquire_device("rashomon build", waiting=self._waiting, stop=bool)

    def close(self) -> None:
        """Let go of the model and of the device."""
        self._unload()
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _unload(self) -> None:
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            loaded[1].close()


class LocalEmbedder(Embedder):
    """An embedding model of this machine, loaded while it is asked. Raises ModelError where there is none of that name."""

    def __init__(self, name: str, force: bool, device: LocalModelSlot) -> None:
        self.name = inspect(resolve(name)).name
        self._asked, self._force, self._device = name, force, device

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from mlx_backends.mlx.embedding import load_embedder

        self._device.hold()
        encoder = load_embedder(self._asked, force=self._force)
        try:
            return encoder.embed(texts)
        finally:
            encoder.close()
