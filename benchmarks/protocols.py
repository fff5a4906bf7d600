"""How one instance becomes model calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.base import Benchmark, Decoding, Generation, Instance, Likelihood, Message, Protocol, Request


class DirectProtocol(Protocol):
    """One question, one answer: the instance's parts as a single user turn."""

    name = "direct"

    def __init__(self, decoding: Decoding) -> None:
        self.decoding = decoding

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        if generations:
            return None
        message = Message("user", instance.parts)
        return Request(instance.id, 0, (message,), self.decoding, references=instance.references)


class LikelihoodProtocol(Protocol):
    """A benchmark's own protocol, with instances of given options answered by the likeliest of them (Brown et al. 2020, 2.4)."""

    def __init__(self, benchmark: Benchmark, decoding: Decoding) -> None:
        self._benchmark = benchmark
        self._protocol = benchmark.protocol(decoding)
        self.name = f"{self._protocol.name}, the likeliest option"

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request = self._protocol.next(instance, generations)
        options = self._benchmark.options(instance)
        return replace(request, form=Likelihood(options)) if request is not None and options else request
