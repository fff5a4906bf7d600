"""Answers that are none in a way worth saying: cut while reasoning, degenerate, or the same whatever is displayed.

They keep their labels and stay in every denominator; the sentences stand beside a run's result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from benchmarks.text.reasoning import Reply, read_reply
from benchmarks.vocabulary import Instance, Media

_LEAST_REPEATS = 5
_LEAST_LOOP = 100
"""Characters of a repetition that follows other text: a table may have a row of empty cells."""
_LONGEST_UNIT = 200
"""Characters of what is repeated."""
_LEAST_UNBROKEN = {False: 8, True: 16}
"""Characters of a repetition without a space, by whether it is a number: 1111 may be a value, and 5555555555 a telephone's."""

_LEAST_ANSWERS, _LEAST_DIFFERENT = 8, 4
_SAME_SHARE = 0.9
_MOST_TEXTS = 4096
"""Different texts that are told apart; a run with more has no one text."""
_CHOICES = frozenset({"yes", "no", "true", "false"})
_PUNCTUATION = ".,;:!?\"'`*()[]…。，！"
_LARGER = 4
"""The factor of the limit to try where answers are cut while reasoning: lengths of reasoning have a long tail."""


def is_cut_reasoning(text: str, reply: Reply, finish_reason: str, generated: int) -> bool:
    """Return whether the limit of tokens ended an answer within its reasoning; ``generated`` is the number of stored tokens.

    A text that is empty and has no tokens is that of a server that does not send its model's reasoning.
    """
    is_hidden = not text.strip() and not generated
    return finish_reason == "length" and not reply.answer and (reply.reasons or is_hidden)


def is_repetition(text: str) -> bool:
    """Return whether a text is one word, token or phrase over and over, or ends with a loop that is most of it.

    The last occurrence may be cut.
    """
    text = " ".join(text.split())
    loop = text[len(text) // 3 :]
    return _is_loop(text) or (len(loop) >= _LEAST_LOOP and _is_loop(loop))


def _is_loop(text: str) -> bool:
    period = _period(text)
    if not period or len(text) + 1 < _LEAST_REPEATS * period:
        return False
    return " " in text or len(text) >= _LEAST_UNBROKEN[text.isdigit()]


def _period(text: str) -> int:
    """Return the length of the shortest text of which ``text`` and a space is a repetition; 0 if none is short enough."""
    beginning = text[:8]
    period = text.find(beginning, 1)
    while 0 < period <= _LONGEST_UNIT:
        if text.startswith(text[period:]):
            return period
        period = text.find(beginning, period + 1)
    return 0


def _plain(text: str) -> str:
    """Return a text without case, and without the punctuation around its words; as it is if there is nothing else."""
    return " ".join(word.strip(_PUNCTUATION) for word in text.casefold().split()).strip() or text


@dataclass
class AnswerQuality:
    """The quality of a run's answers, errors excluded.

    Attributes:
        answers: The number of answers.
        repeated: Those that are one word, token or phrase repeated (:func:`is_repetition`).
        control: Those of nothing but control tokens and blanks, or of nothing at all.
        cut: Those that ended at the limit of tokens within their reasoning.
        max_tokens: The limit that was set; None if it is not known.
        limit: The limit at which answers ended: that, or the tokens of the longest of them; None if neither is known.
        pictured: The answers in free form to a prompt with a picture.
        choices: Texts that a prompt may ask for, such as the benchmark's labels.
    """

    choices: Collection[str] = ()
    max_tokens: int | None = None
    answers: int = 0
    repeated: int = 0
    control: int = 0
    cut: int = 0
    limit: int | None = None
    pictured: int = 0
    _texts: Counter[str] = field(default_factory=Counter)
    _pictures: set[str] = field(default_factory=set)
    _references: Counter[int] = field(default_factory=Counter)
    _plain_choices: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._plain_choices = frozenset(map(_plain, self.choices))

    def add(
        self,
        instance: Instance,
        text: str,
        finish_reason: str,
        tokens: int | None,
        *,
        generated: int,
        options: Callable[[Instance], Sequence[str]],
    ) -> str:
        """Add an answer, and return it without its reasoning.

        ``tokens`` are those that were counted, ``generated`` those that are stored; ``options`` returns what a prompt names.
        """
        reply = read_reply(text)
        if finish_reason == "error":
            return reply.answer
        self.answers += 1
        if finish_reason == "length":
            self.limit = self.max_tokens or max(self.limit or 0, tokens or 0) or None
        is_cut = is_cut_reasoning(text, reply, finish_reason, generated)
        self.cut += is_cut
        self.control += not (reply.answer or reply.reasons or is_cut)
        self.repeated += is_repetition(reply.answer)
        pictures = [part.sha256 for part in instance.parts if isinstance(part, Media) and part.modality == "image"]
        if pictures and reply.answer and not options(instance):
            self._add_text(instance, reply.answer, "".join(pictures))
        return reply.answer

    def _add_text(self, instance: Instance, answer: str, pictures: str) -> None:
        self.pictured += 1
        if len(self._texts) <= _MOST_TEXTS:
            text = _plain(answer)
            self._texts["" if self._is_choice(text) else text[:1000]] += 1
        if len(self._pictures) < _LEAST_DIFFERENT:
            self._pictures.add(pictures)
        if len(self._references) <= _MOST_TEXTS:
            values = {value.casefold() for values in instance.references.values() for value in values}
            self._references.update(map(hash, values))

    @property
    def same(self) -> int:
        """The number of answers that are one text, though pictures and right answers differ; 0 if there is no such text.

        A choice, such as yes, a letter or a label, is none: a bias towards one is a result.
        """
        if self.pictured < _LEAST_ANSWERS or min(len(self._pictures), len(self._references)) < _LEAST_DIFFERENT:
            return 0
        ((text, count),) = self._texts.most_common(1)
        differ = self._references.most_common(1)[0][1] < self.pictured / 2
        return (
            count if text and differ and len(self._texts) <= _MOST_TEXTS and count >= _SAME_SHARE * self.pictured else 0
        )

    @property
    def cut_clause(self) -> str:
        """The number of answers that were cut while reasoning, and a limit to try; empty if there are none."""
        if not self.cut:
            return ""
        advice = "" if self.limit is None else f"; try --max-tokens {_LARGER * self.limit}"
        return f"{self.cut:,} of {self.answers:,} answers gave no answer (cut while reasoning{advice})"

    @property
    def clauses(self) -> tuple[str, ...]:
        """A clause on each kind of answer that occurs."""
        of = f"of {self.answers:,} answers"
        clauses = [self.cut_clause] if self.cut else []
        if self.control:
            clauses.append(f"{self.control:,} {of} are empty, or hold nothing but control tokens or blanks")
        if self.repeated:
            clauses.append(f"{self.repeated:,} {of} are one token or phrase repeated")
        if (same := self.same) > self.repeated:
            amount = f"all {same:,}" if same == self.pictured else f"{same:,} of {self.pictured:,}"
            clauses.append(f"{amount} answers to different pictures are the same text")
        return tuple(clauses)

    def _is_choice(self, text: str) -> bool:
        """Return whether a text is one of a few that a prompt may ask for."""
        return len(text) <= 1 or text in _CHOICES or text in self._plain_choices
