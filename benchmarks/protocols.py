"""Protocols: the model calls that an instance takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.vocabulary import Decoding, Generation, Instance, Likelihood, Message, Request


class Protocol(ABC):
    """The model calls of one instance: a pure function, replayed from what is stored."""

    name: str

    @abstractmethod
    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        """Return the next request, given the generations so far in order of step, or None when the instance is done."""


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

    def __init__(self, protocol: Protocol, options: Callable[[Instance], tuple[str, ...]]) -> None:
        self._protocol = protocol
        self._options = options
        self.name = f"{protocol.name}, the likeliest option"

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request = self._protocol.next(instance, generations)
        options = self._options(instance)
        return replace(request, form=Likelihood(options)) if request is not None and options else request
