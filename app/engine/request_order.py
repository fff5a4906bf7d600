"""Order of a run's requests: those that show the same image are adjacent, and among them those with a shared prefix.

An engine then encodes each image once, and reads each prefix once, with caches that hold little more than one image's prompts.
The order of a whole run takes a few bytes an instance; the requests themselves are read a window at a time. A request's place
has no influence on its answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from app.store.run_store import RunStore
from app.store.store_types import PendingInstance
from benchmarks.protocols.protocols import Protocol
from benchmarks.vocabulary import Media, Request, canonical_json, part_to_json

WINDOW = 256
"""The number of requests that are read and ordered at a time, at least; all that show an image are in one window."""

MOST = 4 * WINDOW
"""The most requests of a window: those that show one image are divided if there are more."""

PendingRequest = tuple[PendingInstance, Request]

Order: TypeAlias = "tuple[array[int], array[int]]"
"""The order of pending instances: what :meth:`app.store.run_store.RunStore.order_by_image` returns."""


def ordered_requests(
    store: RunStore,
    protocol: Protocol,
    conditions: Sequence[str] = (),
    *,
    only: Sequence[int] | None = None,
    order: Order | None = None,
) -> Iterator[PendingRequest]:
    """Yield the next request of each pending instance of ``conditions`` (all if empty), in the order above.

    ``only`` restricts the ordinals, and ``order`` is their order if it is known. The images stand in the order in which they come
    first in the run; an instance without one stands where its example comes first.
    """
    for window in _windows(*(order or store.order_by_image(conditions, only=only))):
        pending = store.pending(conditions, only=window)
        yield from order_by_prefix(_requests(pending, protocol))


def order_by_prefix(requests: Iterable[PendingRequest]) -> list[PendingRequest]:
    """Return ``requests`` with those that show the same image adjacent, and among these those with a shared prefix."""
    clusters: dict[str, int] = {}
    keys = []
    waiting = list(requests)
    for number, (pending, request) in enumerate(waiting):
        images = [part.sha256 for message in request.messages for part in message.parts if isinstance(part, Media)]
        cluster = f"image {images[0]}" if images else f"group {pending.instance.group}"
        keys.append((clusters.setdefault(cluster, len(clusters)), _prefix_key(request), number))
    return [waiting[number] for *_, number in sorted(keys)]


def _windows(ordinals: array[int], clusters: array[int]) -> Iterator[array[int]]:
    """Yield the ordinals in windows of whole clusters, of ``WINDOW`` or a few more, and at most ``MOST``."""
    start = 0
    for end in range(1, len(ordinals) + 1):
        is_cut = end == len(ordinals) or (end - start >= WINDOW and clusters[end] != clusters[end - 1])
        if is_cut or end - start == MOST:
            yield ordinals[start:end]
            start = end


def _requests(instances: Iterable[PendingInstance], protocol: Protocol) -> Iterator[PendingRequest]:
    for pending in instances:
        request = protocol.next(pending.instance, pending.generations)
        if request is None:
            raise RuntimeError(f"{pending.instance.id} is pending, but its protocol has no request for it")
        yield pending, request


def _prefix_key(request: Request) -> tuple[str, ...]:
    """Return the pieces of a request's prompt in order; sorting by them makes shared prefixes adjacent."""
    return tuple(
        piece
        for message in request.messages
        for piece in (
            message.role,
            *(canonical_json(part_to_json(part)) if isinstance(part, Media) else part.text for part in message.parts),
        )
    )
