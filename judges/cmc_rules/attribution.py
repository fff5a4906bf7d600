"""The speaker to whom an answer attributes a value: the image, the text, a supposition, or the answer itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judges.cmc_rules import cues
from judges.cmc_rules.clauses import Clause
from judges.cmc_rules.cues import compiled, either
from judges.cmc_rules.lazy_pattern import lazy

CONDITIONAL = "if"
"""The speaker of a value that holds only on a condition."""

_NAMES = rf"(?:(?P<image>{either(cues.IMAGE)})|(?P<text>{either(cues.TEXT)}))(?![^\W_\u2e80-\u9fff])"
_SOURCE = lazy(rf"(?<![^\W_\u2e80-\u9fff]){_NAMES}")
_FILLER = r"(?:(?:the|this|retrieved|provided|from|per|according to|in|as|shown|stated|given)\s+)*"
_AFTER = lazy(
    rf"[\s)\"'*%]*(?:(?P<aside>\()|(?P<by>(?:is |was |being |as )?"
    rf"(?:named|stated|given|shown|mentioned|reported|claimed) (?:in|by)|according to|as per|per|by)|in|from|for|on)\s*"
    rf"{_FILLER}{_NAMES}"
)
_HEADER = lazy(
    rf"\W*(?:(?:the|retrieved|provided|from|in)\s+)*{_NAMES}(?:\s+(?:evidence|source|value|analysis|says))*\s*:?\W*"
)
_JOINED = lazy(r"(?: evidence)?(?: and|,| as well as| &)(?: the)?(?: \w+)?\s*")
_ATTRIBUTED_TO = lazy(rf"(?:{either(cues.ATTRIBUTED)})\s+(?:(?:the|this|dem|der|el)\s+)?(?:\w+\s+)?$")
_ATTRIBUTING = lazy(rf"(?:{either(cues.ATTRIBUTED)})(?!\w)")
_STATED = compiled(cues.STATED)
_OUTRIGHT = lazy(rf"\baccording to\b|\bas per\b|{_STATED.pattern}")
_BASIS = lazy(rf"(?:{cues.BASIS})\s+(?:the\s+)?(?:\w+\s+)?$")
_REPORTING = compiled(cues.REPORTING)
_VERB = lazy(r"(?:\s+(?:evidence|data|source|only|also|\w+ly))*\s+(?!is\b|was\b|as\b|its\b|this\b|thus\b)[a-z]+s\b")
_ELIDED = lazy(r"(?: evidence| source| value)?[\s(:,\"'-]*(?:the |a |about |around )?")
_COPULA = lazy(r"\s+(?:\w+\s+){0,2}(?:is|was)\b")
_CONCLUDED = lazy(f"{compiled(cues.EXPLICIT).pattern}|{compiled(cues.CONCLUDING).pattern}")
_PRONOUN = lazy(r"\s*(?:and |but )?(?:it|this|which|that)\s+(?:\w+\s+)?")
_FACTIVE = compiled(cues.FACTIVE)
_FORCED = lazy(
    r"if (?:(?:i|we|one|you) (?:had|have|has|must|were|was|am|are|need)|forced|pressed|pushed|required|necessary)"
)


def find_sources(text: str) -> list[re.Match[str]]:
    """Return all matches of names of the image or the text."""
    return list(_SOURCE.finditer(text))


def source_of(match: re.Match[str]) -> str:
    """Return "image" or "text", for a match of a source's name."""
    return "image" if match["image"] else "text"


def quotes_answer(text: str) -> bool:
    """Return whether a clause says "according to" or "states the answer", which makes "the answer is" the source's words."""
    return _OUTRIGHT.search(text) is not None


class Attribution:
    """The speakers in the clauses of one answer."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.clauses = clauses
        self.named = [find_sources(c.masked) for c in clauses]

    def speaker_of(self, index: int, start: int, end: int) -> tuple[str, str]:
        """Return the speaker of a mention in clause ``index``, and the source in which it is only located.

        The speaker is a source, "if" for a supposition, or "" for the answer itself; "the value in the chart is" only
        locates.
        """
        clause = self.clauses[index]
        text = clause.masked
        if self._is_conditional(index):
            return CONDITIONAL, ""
        after = _AFTER.match(text, end)
        if after and (after["aside"] or after["by"]):
            return source_of(after), ""
        located = source_of(after) if after else ""
        if text[start:end] != clause.text[start:end]:
            return "text", located
        nouns = [m for m in self.named[index] if m.end() <= start]
        if not nouns:
            return self._inherited_speaker(index, text[:start]), located
        noun, between = nouns[-1], text[nouns[-1].end() : start]
        joined = len(nouns) > 1 and _JOINED.fullmatch(text[nouns[-2].end() : noun.start()])
        if joined and source_of(nouns[-2]) != source_of(noun):
            return "", located
        lead = text[: noun.start()]
        if _STATED.search(between):
            return source_of(noun), located
        if _CONCLUDED.search(between) or (between.startswith(",") and _BASIS.search(lead)):
            return "", located
        reports = _REPORTING.search(between) or _VERB.match(between) or _ELIDED.fullmatch(between) or ":" in between
        if reports or _ATTRIBUTED_TO.search(lead):
            return source_of(noun), located
        return "", located or (source_of(noun) if _COPULA.match(between) else "")

    def contrasted(self, index: int) -> bool:
        """Return whether the clause is the stressed half of a contrast: "While the text says ..., the chart shows ..."."""
        clause = self.clauses[index]
        opening = next(c for c in self.clauses if c.sentence == clause.sentence)
        if opening.lead in cues.CONCEDING and clause.lead not in cues.CONCEDING:
            return True
        return clause.lead in ("but", "however", "yet", "nevertheless") and bool(_FACTIVE.search(clause.masked))

    def _inherited_speaker(self, index: int, head: str) -> str:
        """Return the speaker that an earlier clause sets: "According to the text, ...", "it says ...", a heading."""
        if not index:
            return ""
        previous, nouns = self.clauses[index - 1], self.named[index - 1]
        if _PRONOUN.match(head) and _REPORTING.search(head):
            earlier = nouns or (self.named[index - 2] if index > 1 else [])
            if earlier:
                return source_of(earlier[0])
        same_sentence = previous.sentence == self.clauses[index].sentence
        if same_sentence and nouns and _ATTRIBUTING.match(previous.masked.strip()):
            return source_of(nouns[0])
        header = _HEADER.fullmatch(previous.masked) if self.clauses[index].sentence - previous.sentence <= 1 else None
        return source_of(header) if header else ""

    def _is_conditional(self, index: int) -> bool:
        clause, previous = self.clauses[index], self.clauses[max(index - 1, 0)]
        condition = clause if clause.lead == "if" or not index else previous
        same_sentence = condition.sentence == clause.sentence and condition.lead == "if"
        return same_sentence and not _FORCED.match(condition.masked.lstrip())
