"""Protocols: the model calls that an instance takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.vocabulary import (
    NOT_SHOWN,
    SHOWN_TEXT,
    Candidates,
    Decoding,
    Generation,
    Instance,
    Likelihood,
    Message,
    Request,
    Text,
)

ABSTENTION = "The sources disagree, so the answer cannot be determined."
"""The abstention that is scored beside an open answer, unless a benchmark's prompts ask for another."""

_LIKELIEST = ", the likeliest option"
"""The end of the name of a protocol that scores options."""


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
        return Request(
            instance.id, 0, (message,), self.decoding, question=instance.question, references=instance.references
        )


class SystemProtocol(Protocol):
    """A benchmark's own protocol, with a system text before every conversation."""

    def __init__(self, protocol: Protocol, system: str) -> None:
        self._protocol = protocol
        self._message = Message("system", (Text(system),))
        self.name = protocol.name

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request = self._protocol.next(instance, generations)
        return None if request is None else replace(request, messages=(self._message, *request.messages))


class LikelihoodProtocol(Protocol):
    """A benchmark's own protocol, with likelihoods.

    Instances of given options are answered by the likeliest of them (Brown et al. 2020, 2.4). Answers to open questions are
    generated as usual, and candidates scored beside the last one.
    """

    def __init__(self, protocol: Protocol, options: Callable[[Instance], tuple[str, ...]], abstention: str) -> None:
        self._protocol = protocol
        self._options = options
        self._abstention = abstention
        self.name = protocol.name + _LIKELIEST

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request = self._protocol.next(instance, generations)
        if request is None:
            return None
        if options := self._options(instance):
            return replace(request, form=Likelihood(options))
        if request.form is not None or self._has_next(instance, generations, request):
            return request
        return replace(request, form=Candidates(candidate_values(instance), self._abstention))

    def _has_next(self, instance: Instance, generations: Sequence[Generation], request: Request) -> bool:
        """Return whether another step follows ``request``; the answer that is scored is the last one."""
        return self._protocol.next(instance, (*generations, Generation(request.id, "", "stop"))) is not None


def answered_by(name: str, *, scored: bool, generated: bool) -> str:
    """Return a protocol's name as it is true of a run's answers, of which options were scored, or text generated, or both.

    Runs store the name of a :class:`LikelihoodProtocol` whatever their questions are.
    """
    plain = name.removesuffix(_LIKELIEST)
    if plain == name or not generated:
        return name
    return f"{name}, or generated with likelihoods" if scored else f"{plain}, generated with likelihoods"


def candidate_values(instance: Instance) -> tuple[str, str]:
    """Return the image's and the text's value; empty where the condition shows no such source."""
    hidden = instance.references.get(NOT_SHOWN, ())
    references = {name: values for name, values in instance.references.items() if name not in hidden}
    text = references.get(SHOWN_TEXT) or references.get("text") or ("",)
    return (*references.get("image", ()), "")[0], text[0]
