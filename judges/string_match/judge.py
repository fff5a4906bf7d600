"""The judges ``strict`` and ``relaxed``: CLASH's answers labelled by string matching."""

from __future__ import annotations

from abc import abstractmethod

from benchmarks.clash.constants import LABEL_OF_ROLE, LABELS, is_multiple_choice
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record, Verdict
from judges.base import FunctionJudge
from judges.string_match.multiple_choice import relaxed_choice, strict_choice
from judges.string_match.open_answers import match_open_answer
from judges.string_match.role_matches import References, RoleMatches

STRING_MATCHING = "string matching"
"""The method of both judges, which label open answers by one rule."""


class _Matching(FunctionJudge):
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

    def judge(self, record: Record) -> Verdict:
        text = record.answer.text if record.answer else ""
        answer = visible_answer(text)
        if not answer:
            return self.empty(text)
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
