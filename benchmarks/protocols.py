"""How one instance becomes model calls."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.base import Decoding, Generation, Instance, Message, Protocol, Request


class Direct(Protocol):
    """One question, one answer: the instance's parts as a single user turn."""

    name = "direct"

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        if generations:
            return None
        message = Message("user", instance.parts)
        return Request(instance.id, 0, (message,), self.decoding, references=instance.references)
