"""CLASH's string matching, strict and relaxed, as in its paper and its published code (Appendices A.1, A.2)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping

from benchmarks.clash.clash_constants import (
    CONFLICT,
    DISTRACTOR,
    IMAGE,
    LABEL_OF_ROLE,
    LABELS,
    LETTERS,
    ROLES,
    TEXT,
    Role,
    is_multiple_choice,
    letter_key,
)
from benchmarks.text.stemming import stem
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge

RoleMatches = tuple[tuple[Role, ...], str]
"""The roles of the matches, each at most once, and the rule with the words that matched."""

References = Mapping[str, tuple[str, ...]]

_MAX_QUOTED = 60


def match_words(rule: str, candidates: Mapping[Role, tuple[str, ...]], stands: Callable[[str], bool]) -> RoleMatches:
    """Return the roles with words that occur in the answer. Blank words never occur."""
    matches = {}
    for role, phrases in candidates.items():
        words = next((words for words in phrases if words.strip() and stands(words)), None)
        if words is not None:
            matches[role] = words
    if not matches:
        return (), f"{rule}: none of the words it looks for"
    return tuple(
        matches
    ), f"{rule}: {', '.join(f'{words[:_MAX_QUOTED]!r} ({role})' for role, words in matches.items())}"


STRING_MATCHING = "string matching"
"""The method of both judges, which label open answers by one rule."""


class _Matching(AnswerJudge):
    """Multiple choice by the chosen letter, open answers by the words in them (Appendices A.1, A.2).

    ``flags`` are the labels of every matching option or answer, as the published code counts them; ``label`` is the
    first of them in the order conflict, image, text, distractor, or INCORRECT if nothing matches. An answer that is
    empty, or nothing but reasoning, is unparsed.
    """

    version = "1"
    benchmarks = ("clash",)
    method = STRING_MATCHING

    @abstractmethod
    def choose(self, answer: str, references: References) -> RoleMatches:
        """Return the options that a multiple-choice answer chooses."""

    def label_answer(self, answer: str, record: Record) -> Verdict:
        match = self.choose if is_multiple_choice(record.instance.condition) else match_open_answer
        roles, reason = match(answer, record.instance.references)
        matched = {LABEL_OF_ROLE[role] for role in roles}
        flags = tuple(label for label in LABELS if label in matched)
        return Verdict(self.id, "labelled", flags[0] if flags else "INCORRECT", reason, flags=flags)


class Strict(_Matching):
    """Multiple choice by exactly one bracketed letter (section 4.1); open answers as in ``relaxed`` (Appendix A.2)."""

    name = "strict"
    description = "CLASH: one bracketed letter for multiple choice, the words of the answers for open questions"

    def choose(self, answer: str, references: References) -> RoleMatches:
        return strict_choice(answer, references)


class Relaxed(_Matching):
    """Multiple choice by a bracketed letter, otherwise a lone letter, otherwise an option's words (Appendix A.1)."""

    name = "relaxed"
    description = "CLASH: as strict, but multiple choice may also be a lone letter or an option's words"

    def choose(self, answer: str, references: References) -> RoleMatches:
        return relaxed_choice(answer, references)


_BRACKETED = re.compile(r"\(([A-D])\)")


def strict_choice(answer: str, references: References) -> RoleMatches:
    """Return the option whose letter is bracketed in ``answer``; none if no letter is, or several different ones are."""
    return _bracketed(answer, references) or ((), "strict choice matching: no letter in brackets")


def relaxed_choice(answer: str, references: References) -> RoleMatches:
    """Return the option by the three steps of Appendix A.1, in order: a bracketed letter, a lone letter, an option's words.

    As in the published code, a lone letter is the whole answer and may be lower case, and the conflict option is not
    matched by its words. The words of several options can occur in one answer.
    """
    bracketed = _bracketed(answer, references)
    if bracketed is not None:
        return bracketed
    if len(answer) == 1 and answer.upper() in LETTERS:
        return _option(answer.upper(), references), f"relaxed choice matching: the letter {answer} alone"

    def stands(words: str) -> bool:
        return re.search(rf"\b{re.escape(words)}\b", answer, re.IGNORECASE) is not None

    candidates = {role: references.get(role, ()) for role in (IMAGE, TEXT, DISTRACTOR)}
    return match_words("relaxed choice matching", candidates, stands)


def _bracketed(answer: str, references: References) -> RoleMatches | None:
    letters = sorted(set(_BRACKETED.findall(answer)))
    if not letters:
        return None
    if len(letters) > 1:
        return (), f"choice matching: several letters in brackets, ({'), ('.join(letters)})"
    return _option(letters[0], references), f"choice matching: ({letters[0]})"


def _option(letter: str, references: References) -> tuple[Role, ...]:
    return tuple(role for role in ROLES if letter in references.get(letter_key(role), ()))


_CONFLICT_WORDS = ("conflict", "contradict")
_ARTICLES = frozenset({"the", "a", "an"})
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_REWORDED = {str(number): word for number, word in enumerate(_NUMBERS)} | {
    "wooden": "wood",
    "golden": "gold",
    "sandy": "sand",
    "brightly": "bright",
}


def match_open_answer(answer: str, references: References) -> RoleMatches:
    """Return the matches of a conflict, the image's answer and the text's answer in ``answer``, as whole normalised words.

    They do not exclude one another. The distractor is not matched: an open question does not display it.
    """
    normal_answer = f" {normalise(answer)} "

    def stands(words: str) -> bool:
        # Without this check, words that are only articles would occur in every answer.
        normal = normalise(words)
        return bool(normal) and f" {normal} " in normal_answer

    candidates = {CONFLICT: _CONFLICT_WORDS, IMAGE: references.get(IMAGE, ()), TEXT: references.get(TEXT, ())}
    return match_words("relaxed open matching", candidates, stands)


def normalise(text: str) -> str:
    """Return the words of ``text``, joined by spaces: lower case, no articles, numbers to ten spelled out, stemmed."""
    words = (word for word in re.findall(r"\w+", text.lower()) if word not in _ARTICLES)
    return " ".join(stem(_REWORDED.get(word, word)) for word in words)
