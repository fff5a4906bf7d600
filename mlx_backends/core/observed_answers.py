"""Observed answers: what the sequential answers of a run show about its model, so that no check computes them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.vocabulary import Message, Request
from mlx_backends.core.logits_recorders import LogitsRecorder

OBSERVED_TOKENS = 8
"""Number of first tokens of an answer that are observed."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAnswer:
    """The beginning of a sequential answer: its first ``tokens``, and the ``logits`` before each, (tokens, vocabulary).

    The logits are those before the request's form restricted them. ``image_rows`` is as
    :meth:`mlx_backends.base.Backend.image_rows` returns it. ``prefill_s`` are the seconds to the first token, ``decode_s``
    those of the others; there were ``length`` tokens in all.
    """

    tokens: Sequence[int]
    logits: Any
    image_rows: Any | None
    prefill_s: float
    decode_s: float
    length: int


@dataclass(eq=False)
class AnswerObserver:
    """Observer of one answer in progress; ``image_rows`` are those of its prompt."""

    recorder: LogitsRecorder = field(default_factory=lambda: LogitsRecorder(OBSERVED_TOKENS))
    image_rows: Any | None = None

    def observed(self, tokens: Sequence[int], prefill_s: float, decode_s: float) -> ObservedAnswer | None:
        """Return the answer of these ``tokens`` and times; None for one without a token."""
        import numpy as np

        first = list(tokens[:OBSERVED_TOKENS])
        if not first or len(self.recorder.logits) < len(first):
            return None
        logits = np.stack(self.recorder.logits[: len(first)])
        return ObservedAnswer(first, logits, self.image_rows, prefill_s, decode_s, len(tokens))


_Key = tuple[str, tuple[Message, ...]]


def key_of(request: Request) -> _Key:
    """Return what identifies the prompt of a request, whatever its decoding and form."""
    return request.id, request.messages


class ObservedAnswers:
    """The observed answers of one backend, and the requests whose answers are to be observed."""

    def __init__(self) -> None:
        self._expected: set[_Key] = set()
        self._answers: dict[_Key, ObservedAnswer] = {}

    def expect(self, requests: Iterable[Request]) -> None:
        """Observe the next answers to ``requests``."""
        self._expected.update(map(key_of, requests))

    def observer(self, request: Request) -> AnswerObserver | None:
        """Return an observer for the answer to ``request``; None if it is not to be observed."""
        return AnswerObserver() if key_of(request) in self._expected else None

    def add(self, request: Request, answer: ObservedAnswer | None) -> None:
        """Take the answer to a request."""
        self._expected.discard(key_of(request))
        if answer is not None:
            self._answers[key_of(request)] = answer

    def get(self, request: Request) -> ObservedAnswer | None:
        """Return the observed answer to ``request``; None if there is none."""
        return self._answers.get(key_of(request))

    def values(self) -> list[ObservedAnswer]:
        """Return all observed answers."""
        return list(self._answers.values())

    def clear(self) -> None:
        """Forget all answers, and expect none."""
        self._expected.clear()
        self._answers.clear()
