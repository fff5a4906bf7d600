"""Dispatch of requests to nodes: those that show one image go to the same node, and idle nodes take from busy ones."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from app.engine.workers.cluster.cluster_messages import media_of
from benchmarks.vocabulary import Request, Text

CHUNK_OF_IMAGE = 64
"""The most requests of one image that are kept together."""

CHUNK_OF_TEXT = 16
"""The most requests without media, and with the same opening, that are kept together."""

OPENING = 256
"""The number of first characters that longer requests without media share if they are kept together."""

DEATHS_TOGETHER = 2
"""The deaths of workers that answer a request among others, after which it is asked on its own."""

DEATHS_ALONE = 3
"""The deaths of workers that answer a request on its own, after which it is an error."""

_REMEMBERED = 4096
"""The images and openings of texts whose node is remembered."""


@dataclass(eq=False)
class _Chunk:
    """Requests that are kept together: those that wait, the number of all of them, and the node that took the first."""

    waiting: deque[Request] = field(default_factory=deque)
    size: int = 0
    owner: str | None = None


class Dispatcher:
    """Requests that wait for a node, and those that nodes hold.

    A chunk is what is kept together. It belongs to the node that took its first request, for as long as that node lives or until
    another node has nothing else to do. A request on which several workers ended is asked on its own, so that what kills workers
    becomes one error.
    """

    def __init__(self) -> None:
        self._free: OrderedDict[_Chunk, None] = OrderedDict()
        self._owned: dict[str, OrderedDict[_Chunk, None]] = {}
        self._waiting_at: Counter[str] = Counter()
        self._current: OrderedDict[str, _Chunk] = OrderedDict()
        self._chunk_of: dict[str, _Chunk] = {}
        self._held: dict[str, dict[str, Request]] = {}
        self._holder: dict[str, str] = {}
        self._suspects: deque[Request] = deque()
        self._draining: str | None = None
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._chunk_of)

    @property
    def waiting(self) -> int:
        """The number of requests that no node holds."""
        return len(self._chunk_of) - len(self._holder)

    def first(self, count: int) -> list[Request]:
        """Return up to ``count`` waiting requests, the next ones first."""
        requests: list[Request] = []
        for chunk in self._free:
            requests += list(chunk.waiting)[: count - len(requests)]
            if len(requests) >= count:
                break
        return requests

    def held(self, node: str) -> int:
        """Return the number of requests that a node holds."""
        return len(self._held.get(node, ()))

    def held_by(self, node: str) -> list[str]:
        """Return the ids of the requests that a node holds, in the order in which it took them."""
        return list(self._held.get(node, ()))

    def holds(self, node: str, request_id: str) -> bool:
        """Return whether a node holds a request."""
        return self._holder.get(request_id) == node

    def add(self, request: Request) -> None:
        """Take a request."""
        self._wait(request, self._chunk_for(request))

    def take(self, node: str, count: int) -> list[Request]:
        """Return up to ``count`` requests for ``node``, which holds them from now on."""
        held = self._held.setdefault(node, {})
        if count < 1 or any(map(self.is_suspect, held)):
            return []
        if self._suspects:
            self._draining = self._draining or node
            if self._draining == node:
                return [] if held else [self._hold(node, self._next_suspect())]
        taken: list[Request] = []
        while len(taken) < count and (chunk := self._next_chunk(node)) is not None:
            request = chunk.waiting.popleft()
            self._waiting_at[node] -= 1
            if not chunk.waiting:
                del self._owned[node][chunk]
            if self.is_suspect(request.id):
                self._suspects.append(request)
            else:
                taken.append(self._hold(node, request))
        return taken

    def finish(self, node: str, request_id: str) -> bool:
        """Return whether ``node`` holds the request that it has answered; it is done then."""
        if not self.holds(node, request_id):
            return False
        self._release(request_id)
        self._forget(request_id)
        return True

    def give_back(self, node: str, request_ids: Iterable[str]) -> None:
        """Let requests that ``node`` has not begun wait for another node."""
        for request_id in request_ids:
            if self.holds(node, request_id):
                self._wait(self._release(request_id), _Chunk())

    def cancel(self, request_id: str) -> str | None:
        """Drop a request; return the node that holds it, if any."""
        node = self._holder.get(request_id)
        if node is not None:
            self._release(request_id)
        elif (chunk := self._chunk_of.get(request_id)) is not None:
            before = len(chunk.waiting)
            chunk.waiting = deque(request for request in chunk.waiting if request.id != request_id)
            self._suspects = deque(request for request in self._suspects if request.id != request_id)
            owned = self._owned.get(chunk.owner or "", OrderedDict[_Chunk, None]())
            if chunk in owned:
                self._waiting_at[chunk.owner or ""] -= before - len(chunk.waiting)
            if not chunk.waiting:
                self._free.pop(chunk, None)
                owned.pop(chunk, None)
        self._forget(request_id)
        return node

    def lose(self, node: str, begun: Collection[str] = ()) -> list[Request]:
        """Let all that a lost node held wait again; return the requests on which too many workers have ended.

        ``begun`` are the ids of those that may have ended this one.
        """
        if self._draining == node:
            self._draining = None
        for chunk in self._owned.pop(node, ()):
            chunk.owner = None
            self._free[chunk] = None
        self._waiting_at.pop(node, None)
        failed = []
        for request in reversed(self._held.pop(node, {}).values()):
            del self._holder[request.id]
            if request.id in begun:
                self._deaths[request.id] += 1
            if self._deaths[request.id] >= DEATHS_TOGETHER + DEATHS_ALONE:
                self._forget(request.id)
                failed.append(request)
            elif self.is_suspect(request.id):
                self._suspects.append(request)
            else:
                self._wait(request, self._chunk_of[request.id], first=True)
        return failed

    def blame(self, request_id: str) -> int:
        """Count the end of a worker against a request that no node holds; return how many have ended on it."""
        self._deaths[request_id] += 1
        return self._deaths[request_id]

    def is_suspect(self, request_id: str) -> bool:
        """Return whether so many workers ended on a request that it is asked on its own."""
        return request_id in self._deaths and self._deaths[request_id] >= DEATHS_TOGETHER

    def _next_suspect(self) -> Request:
        self._draining = None
        return self._suspects.popleft()

    def _hold(self, node: str, request: Request) -> Request:
        self._held[node][request.id] = request
        self._holder[request.id] = node
        return request

    def _release(self, request_id: str) -> Request:
        return self._held[self._holder.pop(request_id)].pop(request_id)

    def _forget(self, request_id: str) -> None:
        self._chunk_of.pop(request_id, None)
        self._deaths.pop(request_id, None)

    def _wait(self, request: Request, chunk: _Chunk, *, first: bool = False) -> None:
        self._chunk_of[request.id] = chunk
        (chunk.waiting.appendleft if first else chunk.waiting.append)(request)
        if chunk.owner in self._owned:
            assert chunk.owner is not None
            self._owned[chunk.owner][chunk] = None
            self._waiting_at[chunk.owner] += 1
        elif chunk not in self._free:
            chunk.owner = None
            self._free[chunk] = None
            if first:
                self._free.move_to_end(chunk, last=False)

    def _chunk_for(self, request: Request) -> _Chunk:
        media = media_of(request)
        shared = media[0].sha256 if media else _opening(request)
        chunk = self._current.get(shared)
        if chunk is None or chunk.size >= (CHUNK_OF_IMAGE if media else CHUNK_OF_TEXT):
            chunk = self._current[shared] = _Chunk()
        chunk.size += 1
        self._current.move_to_end(shared)
        if len(self._current) > _REMEMBERED:
            self._current.popitem(last=False)
        return chunk

    def _next_chunk(self, node: str) -> _Chunk | None:
        """Return a chunk of ``node`` with waiting requests, after giving it one if it has none."""
        owned = self._owned.setdefault(node, OrderedDict())
        if owned:
            return next(iter(owned))
        chunk = self._free.popitem(last=False)[0] if self._free else self._steal()
        if chunk is not None:
            chunk.owner = node
            owned[chunk] = None
            self._waiting_at[node] += len(chunk.waiting)
        return chunk

    def _steal(self) -> _Chunk | None:
        """Return a chunk of the node with the most waiting requests: its last one, or half of its only one."""
        victim = max(self._waiting_at, key=self._waiting_at.__getitem__, default=None)
        if victim is None or not self._waiting_at[victim]:
            return None
        owned = self._owned[victim]
        chunk = next(reversed(owned))
        if len(owned) > 1 or len(chunk.waiting) == 1:
            del owned[chunk]
        else:
            half = [chunk.waiting.pop() for _ in range(len(chunk.waiting) // 2)]
            chunk = _Chunk(deque(reversed(half)), len(half))
            self._chunk_of.update((request.id, chunk) for request in half)
        self._waiting_at[victim] -= len(chunk.waiting)
        return chunk


def _opening(request: Request) -> str:
    """Return the first characters of a request's texts: those of shorter requests are the same only if these are equal."""
    texts = [part.text for message in request.messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(texts)[:OPENING]
