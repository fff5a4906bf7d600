"""Models as a construction asks them: each reply is kept by content, so that an interrupted build pays for none twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.asking import TextModel
from benchmarks.base import Generation, Request, digest
from mlx_backends.base import Backend
from mlx_backends.replies import ReplyCache


class Asked(TextModel):
    """A loaded backend as a text model.

    Replies are kept in ``replies`` under what answered; errors are not kept. None where the backend keeps them itself, as
    remote ones do.
    """

    def __init__(self, backend: Backend, replies: ReplyCache | None) -> None:
        info = backend.info
        server = info.versions.get("server")
        self.name = f"{info.model} at {server}" if server else info.model
        self._backend = backend
        self._replies = replies
        self._who = digest([info.engine, info.model, info.weights, info.quantisation, dict(info.versions)])

    def ask(self, requests: Iterable[Request]) -> Iterator[Generation]:
        waiting = iter(requests)
        asked: dict[str, Request] = {}
        exhausted = False
        try:
            while True:
                while not exhausted and len(asked) < self._backend.capacity:
                    request = next(waiting, None)
                    if request is None:
                        exhausted = True
                        break
                    known = self._replies.get(self._who, request.digest) if self._replies else None
                    if known is not None:
                        yield replace(known, request_id=request.id)
                        continue
                    asked[request.id] = request
                    self._backend.submit(request)
                if not asked:
                    return
                for generation in self._backend.step():
                    request = asked.pop(generation.request_id)
                    if self._replies and generation.finish_reason != "error":
                        self._replies.put(self._who, request.digest, generation)
                    yield generation
        finally:
            for request_id in asked:
                self._backend.cancel(request_id)
