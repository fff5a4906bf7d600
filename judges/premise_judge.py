"""``premise``: whether an answer objects to what its question takes for granted (MMMC)."""

from __future__ import annotations

import re

from benchmarks.text.option_letter import structured_answer
from benchmarks.vocabulary import Record, Verdict
from judges.base import AnswerJudge

_LONGEST_VALUE = 6
"""The number of words up to which an answer without a negation is a value, which goes along with the question."""

_IN_IMAGE = r"(?:in|of|on|from) (?:the|this|that) (?:image|picture|photo|scene)"
_SEEN = r"(?:visible|shown|present|depicted|seen|pictured|mentioned|included|there)"
_OBJECTS = re.compile(
    r"\bthere(?:'s| is| are| was| were| does not seem to be| appears to be| seems to be)? (?:no|not an?y?|n't an?y?)\b"
    r"|\bthere (?:isn't|aren't|wasn't|weren't)\b"
    rf"|\b(?:not|n't|never|nowhere)(?: \w+)? {_SEEN}\b"
    r"|\b(?:image|picture|photo|scene) (?:does not|doesn't|do not|cannot|never|lacks?|has no|shows no|contains no)\b"
    rf"|\bno [\w' -]{{1,40}} (?:is|are|can be) (?:\w+ )?{_SEEN}\b|\bno [\w' -]{{1,40}} {_IN_IMAGE}\b"
    r"|\b(?:i|we|you) (?:do not|don't|cannot|can't|could not|couldn't) (?:\w+ )?(?:see|find|tell|determine|identify|know)\b"
    r"|\b(?:question|premise) (?:is|seems|assumes|contains|mentions|refers)\b"
    r"|\b(?:cannot|can't) (?:be )?(?:determined|told|answered|answer|seen)\b"
)
_NEGATES = re.compile(r"\b(?:no|not|none|nothing|nobody|never|neither|without|cannot|unable|unclear|instead|\w+n't)\b")


class Premise(AnswerJudge):
    """ABSTAIN if an answer says that the image does not hold what is asked about, NEITHER if it is a bare value without negation.

    A sentence that does neither may correct the question in passing, and is undecided.
    """

    name = "premise"
    version = "1"
    benchmarks: tuple[str, ...] = ()  # data sets name it
    caveat = "which leaves most sentences undecided"
    description = "ABSTAIN or NEITHER by whether an answer objects to its question, or undecided"

    def label_answer(self, answer: str, record: Record) -> Verdict:
        text = " ".join(structured_answer(answer).casefold().replace("’", "'").split())
        if _OBJECTS.search(text):
            return Verdict(self.id, "labelled", "ABSTAIN", "it says that the image does not hold what is asked about")
        if not _NEGATES.search(text) and len(text.split()) <= _LONGEST_VALUE:
            return Verdict(self.id, "labelled", "NEITHER", "it is a value, without a negation")
        return Verdict(self.id, "undecided", reason="a sentence that may or may not object to the question")
