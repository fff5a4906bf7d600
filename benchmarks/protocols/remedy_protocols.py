"""Remedies at inference: protocols that spend more calls on an instance than the one that its benchmark asks for."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from benchmarks.protocols.protocols import Protocol, candidate_values
from benchmarks.protocols.without_sources import shows_no_source
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter
from benchmarks.vocabulary import Generation, Instance, Message, Request, Stated, Text, digest

DIRECT: Final = "direct"
READ: Final = "read-then-compare"
VOTE: Final = "self-consistency"
VERIFY: Final = "verify"
REMEDIES: Mapping[str, str] = {
    READ: "the model first reads each source, then answers with what it read",
    VOTE: "the model answers several times, sampled, and the answers vote",
    VERIFY: "the model checks its own answer against each source, then answers again",
}
"""Name to one-line description."""

SAMPLES = 5
"""The default number of samples of a vote."""

VOTE_TEMPERATURE = 0.7
"""The temperature of a vote's samples where the benchmark's decoding is greedy (Wang et al. 2023, section 3.1)."""

NOTE_TOKENS = 256
"""The tokens that a step of reading or checking may take at least; a benchmark's own limit is made for its short answers."""

READ_FIRST = (
    "Do not answer yet. First read each source on its own: for every image and every text above, write one line with what that "
    "source alone says about the question, or that it says nothing about it."
)
COMPARE = (
    "Now compare what you read from the sources, and answer the question. Write nothing but the answer, in the form that was "
    "asked for above."
)
CHECK = (
    "Check your answer against each source on its own: for every image and every text above, write one line that says whether "
    "that source supports your answer, contradicts it, or says nothing about it."
)
ANSWER_AGAIN = (
    "Now answer the question again: repeat your answer if it stands, or correct it. Write nothing but the answer, in the form "
    "that was asked for above."
)
NOTHING = "(nothing)"
"""The model's turn where it wrote nothing, since no chat template takes an empty one."""


def calls_per_answer(protocol: str, samples: int | None = None) -> int:
    """Return the number of model calls of an answer under a protocol, as a multiple of those of the benchmark's own."""
    return {READ: 2, VERIFY: 3, VOTE: samples or SAMPLES}.get(protocol, 1)


class _Conversation(Protocol):
    """A conversation that begins with a benchmark's own request; a step that failed ends it.

    A question without sources has nothing to read or to check, so it is asked as it is.
    """

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        if shows_no_source(instance.condition):
            return self._protocol.next(instance, generations)
        request = self._protocol.next(instance, ())
        if request is None or any(generation.finish_reason == "error" for generation in generations):
            return None
        return self._step(request, [visible_answer(generation.text) or NOTHING for generation in generations])

    @abstractmethod
    def _step(self, request: Request, replies: Sequence[str]) -> Request | None:
        """Return the step after these replies; ``request`` is the benchmark's own."""


class ReadThenCompare(_Conversation):
    """Two calls: what each source says, then the answer with that in view."""

    name = READ

    def _step(self, request: Request, replies: Sequence[str]) -> Request | None:
        *before, question = request.messages
        reading = replace(question, parts=(*question.parts, Text(f"\n\n{READ_FIRST}")))
        if not replies:
            return _notes(replace(request, messages=(*before, reading), is_continued=True))
        if len(replies) == 1:
            return replace(request, step=1, messages=(*before, reading, *_turn(replies[0], COMPARE)))
        return None


class Verify(_Conversation):
    """Three calls: the benchmark's own, a check of its answer against each source, and the answer that stands."""

    name = VERIFY

    def _step(self, request: Request, replies: Sequence[str]) -> Request | None:
        if not replies:
            return replace(request, is_continued=True)
        checking = (*request.messages, *_turn(replies[0], CHECK))
        if len(replies) == 1:
            return _notes(replace(request, step=1, messages=checking, is_continued=True))
        if len(replies) == 2:
            return replace(request, step=2, messages=(*checking, *_turn(replies[1], ANSWER_AGAIN)))
        return None


class SelfConsistency(Protocol):
    """A number of samples of one request, and the answer that most of them give (Wang et al. 2023).

    Each sample has a seed of its own, derived from the run's, so that it is the same when a run resumes. The last step calls no
    model: it states the first of the answers with the most votes.
    """

    def __init__(self, protocol: Protocol, options: Callable[[Instance], tuple[str, ...]], samples: int) -> None:
        self.name = f"{VOTE} of {samples}"
        self._protocol = protocol
        self._options = options
        self._samples = samples

    def next(self, instance: Instance, generations: Sequence[Generation]) -> Request | None:
        request, step = self._protocol.next(instance, ()), len(generations)
        is_over = step > self._samples or any(generation.finish_reason == "error" for generation in generations)
        if request is None or is_over:
            return None
        if step < self._samples:
            seed = int(digest([request.decoding.seed, step])[:8], 16)
            decoding = replace(request.decoding, seed=seed)
            return replace(request, step=step, decoding=decoding, is_continued=step + 1 < self._samples)
        answers = [generation.text for generation in generations]
        return replace(request, step=step, form=vote(instance, answers, self._options(instance)))


def vote(instance: Instance, answers: Sequence[str], options: Sequence[str]) -> Stated:
    """Return the first of the answers with the most votes, with the log of the votes' shares as its scores.

    Answers are the same if they choose the same option, or state the same value. Empty answers have no vote, but count in the
    shares.
    """
    letters = "".join(option.strip("()") for option in options if len(option.strip("()")) == 1)
    choices = [_choice(answer, letters) for answer in answers]
    same = partial(_same, question=instance.question)
    votes = [sum(bool(choice) and same(choice, other) for other in choices) for choice in choices]
    winner = votes.index(max(votes))

    def score(value: str) -> float | None:
        count = sum(same(choice, value) for choice in choices if choice) if value else 0
        return math.log(count / len(answers)) if count else None

    if options:
        values = [option.strip("()") for option in options]
        is_option = any(same(choices[winner], value) for value in values)
        return Stated(answers[winner], tuple(map(score, values)) if is_option else ())
    return Stated(answers[winner], (*map(score, candidate_values(instance)), None, score(choices[winner])))


def _choice(answer: str, letters: str) -> str:
    visible = visible_answer(answer)
    letter = marked_letter(visible, letters) if letters else None
    return letter[0] if letter is not None and letter[0] is not None else visible


def _same(choice: str, other: str, question: str) -> bool:
    from benchmarks.values import compare  # run specs import this module, and reading values takes a while to import

    return choice == other or compare(choice, other, question).verdict == "same"


def _notes(request: Request) -> Request:
    decoding = request.decoding
    return replace(request, decoding=replace(decoding, max_tokens=max(decoding.max_tokens, NOTE_TOKENS)))


def _turn(reply: str, prompt: str) -> tuple[Message, Message]:
    return Message("assistant", (Text(reply),)), Message("user", (Text(prompt),))
