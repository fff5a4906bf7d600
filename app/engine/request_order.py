"""The order in which a run asks: what begins alike follows each other, so that an engine can compute it once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from app.store.rows import PendingInstance
from benchmarks.base import Media, Request, canonical_json, part_to_json

WINDOW = 256
"""So many requests are looked at ahead and put into order; no more are held in memory."""

Asked = tuple[PendingInstance, Request]


def adjacent(asked: Iterable[Asked]) -> Iterator[Asked]:
    """``asked`` in an order in which requests that begin alike are adjacent, a window at a time.

    An example's siblings stay together, and so do the examples that show the same image; within those, requests are ordered
    by their parts. Which answer a request gets does not depend on its place.
    """
    rest = iter(asked)
    while window := list(islice(rest, WINDOW)):
        yield from _ordered(window)


def _ordered(window: Sequence[Asked]) -> list[Asked]:
    images: dict[str, str] = {}
    """Of each group, the first image that one of its requests shows."""
    for pending, request in window:
        for sha256 in _images(request)[:1]:
            images.setdefault(pending.instance.group, f"image {sha256}")
    clusters: dict[str, int] = {}
    keys = []
    for number, (pending, request) in enumerate(window):
        group = pending.instance.group
        cluster = clusters.setdefault(images.get(group, f"group {group}"), len(clusters))
        keys.append((cluster, _beginning(request), number))
    return [window[number] for *_, number in sorted(keys)]


def _images(request: Request) -> list[str]:
    return [part.sha256 for message in request.messages for part in message.parts if isinstance(part, Media)]


def _beginning(request: Request) -> tuple[str, ...]:
    """What a request's prompt is made of, in order; strings that begin alike are adjacent when they are sorted."""
    return tuple(
        piece
        for message in request.messages
        for piece in (
            message.role,
            *(canonical_json(part_to_json(part)) if isinstance(part, Media) else part.text for part in message.parts),
        )
    )
