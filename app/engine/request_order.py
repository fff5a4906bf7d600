"""Order of a run's requests: requests with a shared prefix are adjacent, so that an engine computes the prefix once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from app.store.data_types import PendingInstance
from benchmarks.vocabulary import Media, Request, canonical_json, part_to_json

WINDOW = 256
"""The number of requests that are held in memory and ordered at a time."""

PendingRequest = tuple[PendingInstance, Request]


def order_by_prefix(requests: Iterable[PendingRequest]) -> Iterator[PendingRequest]:
    """Yield ``requests`` with those that share a prefix adjacent, one window at a time.

    An example's siblings stay together, and so do examples with the same image; within those, requests are ordered by their
    parts. A request's place has no influence on its answer.
    """
    iterator = iter(requests)
    while window := list(islice(iterator, WINDOW)):
        yield from _ordered(window)


def _ordered(window: Sequence[PendingRequest]) -> list[PendingRequest]:
    images: dict[str, str] = {}
    """The first image in the requests of each group."""
    for pending, request in window:
        for sha256 in _images(request)[:1]:
            images.setdefault(pending.instance.group, f"image {sha256}")
    clusters: dict[str, int] = {}
    keys = []
    for number, (pending, request) in enumerate(window):
        group = pending.instance.group
        cluster = clusters.setdefault(images.get(group, f"group {group}"), len(clusters))
        keys.append((cluster, _prefix_key(request), number))
    return [window[number] for *_, number in sorted(keys)]


def _images(request: Request) -> list[str]:
    return [part.sha256 for message in request.messages for part in message.parts if isinstance(part, Media)]


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
