"""Where an answer mentions the value of a reference: quantities, names, lists, formulas, yes and no, long options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.text.answer_equality import coarse_type, same_value
from judges.cmc_rules.clauses import Clause, fold
from judges.cmc_rules.cues import APPROXIMATE, NO, YES, compiled
from judges.cmc_rules.formulas import formula_of, found_in
from judges.cmc_rules.quantities import Quantity, agreement, apart, quantities, question_magnitude
from judges.cmc_rules.words import (
    ARTICLES,
    KINDS,
    STOP_STEMS,
    Token,
    content,
    derived,
    one_letter_off,
    opposed,
    stem,
    symbolic,
    symbols,
    tokens,
)

_YES_NO = {"yes": True, "true": True, "correct": True, "no": False, "false": False, "incorrect": False}
_YES, _NO = compiled(YES), compiled(NO)
_APPROXIMATE = re.compile(compiled(APPROXIMATE).pattern + "|[~≈]")
_PERCENT_QUESTION = re.compile(r"percent|per cent|%|\b(?:share|proportion|fraction)\b")
_COUNT_QUESTION = re.compile(r"\bhow many (?!percent|per cent|%)")
_RANK_QUESTION = re.compile(r"\b(?:rank|place|position|floor)")
_PERSON_QUESTION = re.compile(
    r"\b(?:who|whose|whom|painter|artist|composer|author|president|architect|sculptor|philosopher|scientist)\b"
)
_ARITHMETIC = re.compile(r"[0-9=+*/^√(]")
_NO_UNIT = re.compile(r"(?:\s?[a-z]{1,3})?,\s*[a-z]|\s+(?:is|are|was|were|of the)\b|/|.*(?:[θπ]|\b(?:sin|cos|tan)\b)")
_UNIT_ALONE = re.compile(r"\s?[a-zµω°%/^0-9·-]{1,12}")
_LIST = re.compile(r"\s*(?:,|;|/|&|\band\b|\n)\s*(?:and\s+)?")
_UNORDERED = re.compile(r"\b(?:and|or)\b|&")
_DECLINE = re.compile(r"decreas|declin|drop|fell|fall|down|loss|lower|reduc|below|shr[aiu]nk|negative|minus")
_ANSWERED_BY = re.compile(
    r"(?:according to|as per|per the|given|because|since|based on|it|they|he|she|there|this|that|the|as)\b"
)
_BEFORE_ANSWER = {
    *("and", "is", "be", "was", "a", "would", "clear", "clearly", "answer", "so", "hence", "therefore", "thus"),
    *("say", "says", "said", "states", "indicates", "suggests", "claims"),
}
_IMAGE_TAG = re.compile(r"<image ?[0-9]+>")
_DENYING = frozenset({"not", "no", "cannot", "never", "neither", "nor", "without", "none"})
_SHORT_LIST_PART = 4
_LONGEST_NAME = 3
_LONGER = stem("longer")
_FILLING = frozenset(
    map(stem, ("think", "believe", "one", "kind", "type", "sort", "thing", "likely", "clearly", "answer"))
)
_FUZZY_LEAST, _FUZZY_COVER, _FUZZY_LEAD = 3, 0.6, 0.2
_COPIED, _FUZZY_PRECISE = 0.75, 0.4
"""A long option is meant where at least ``_FUZZY_COVER`` of its words are there (all of them, if it has no more than
``_FUZZY_LEAST``), and ``_FUZZY_LEAD`` more than of the other source's."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference's value in a clause, at ``start`` to ``end`` of its text."""

    start: int
    end: int
    exact: bool = True
    off: float = 0.0
    """How far a rounding lies from the reference, as a part of itself."""


@dataclass(frozen=True, slots=True)
class ClauseWords:
    """A clause with its tokens and quantities, taken once for all references."""

    clause: Clause
    tokens: tuple[Token, ...]
    quantities: tuple[Quantity, ...]
    approximate: bool


def words_of(clause: Clause) -> ClauseWords:
    """What a clause is made of."""
    approximate = _APPROXIMATE.search(clause.text) is not None
    return ClauseWords(clause, tokens(clause.text), quantities(clause.text), approximate)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """What of a question bears on reading the answer."""

    folded: str
    tokens: tuple[Token, ...]
    content: frozenset[str]
    quantities: tuple[Quantity, ...]
    magnitude: float | None
    in_percent: bool


@lru_cache(maxsize=256)
def read_question(question: str) -> ParsedQuestion:
    """A question, folded and taken apart."""
    folded = fold(_IMAGE_TAG.sub(" ", question))
    words = tokens(folded)
    in_percent = _PERCENT_QUESTION.search(folded) is not None and not _COUNT_QUESTION.search(folded)
    magnitude = question_magnitude(folded)
    return ParsedQuestion(folded, words, frozenset(content(words)), quantities(folded), magnitude, in_percent)


class Reference:
    """One acceptable answer of one source, ready to be looked for."""

    def __init__(self, answer: str, question: ParsedQuestion) -> None:
        self.question = question
        self.named = [w[:1].isupper() for w in answer.split()]
        self.folded = fold(answer).strip(" \n\"'").rstrip(" .,;:!?\"'")
        every = tokens(self.folded)
        self.tokens = tuple(t for t in every if t.stem not in ARTICLES) or every
        self.content = content(self.tokens)
        self.polarity = _YES_NO.get(self.folded)
        self.is_year = coarse_type(answer) == "year"
        self.quantity = self._whole_quantity()
        self.formula = formula_of(self.folded) if self.quantity is None else ""
        self.parts = self._parts()
        self.spellings = self._spellings()

    def _whole_quantity(self) -> Quantity | None:
        name, sign, value = self.folded.rpartition("=")
        named = sign and "=" not in name and len(name.split()) <= _LONGEST_NAME
        text = value.strip() if named else self.folded
        found = quantities(text)
        if len(found) != 1 or text[: found[0].start].strip(" $("):
            return None
        quantity, rest = found[0], text[found[0].end :]
        arithmetic = _ARITHMETIC.search(rest) and quantity.dimension is None and not _UNIT_ALONE.fullmatch(rest)
        if arithmetic or len(rest.split()) > 3 or _NO_UNIT.match(rest):
            return None
        if quantity.unit == "a":
            return replace(quantity, unit="amp")
        bare = not quantity.unit and quantity.kind == "number" and not self.is_year
        return replace(quantity, unit="%") if bare and self.question.in_percent else quantity

    def _parts(self) -> tuple[Reference, ...]:
        if self.quantity or self.formula:
            return ()
        parts = [p for p in _LIST.split(self.folded.strip("[]()")) if p.strip()]
        short = len(parts) > 1 and all(len(p.split()) <= _SHORT_LIST_PART for p in parts)
        return tuple(Reference(p, self.question) for p in parts) if short else ()

    def _spellings(self) -> list[list[str]]:
        """The words of the answer; and of a name, with its first words or all as initials ("DR Congo")."""
        words = [t.stem for t in self.tokens]
        main = [w for w in words if w not in STOP_STEMS]
        spellings = [words] if words else []
        if any(self.named) and 2 <= len(main) <= 5 and not any(map(symbolic, main)):
            short = (["".join(w[0] for w in main[:k]), *main[k:]] for k in range(2, len(main) + 1))
            spellings += [s for s in short if s[0] not in STOP_STEMS]
        return spellings

    @property
    def phrase(self) -> str:
        """The answer where its exact words are enough to know it by: a text of several words, else ""."""
        known = len(self.tokens) > 1 or (self.formula and len(self.folded) > 1)
        return self.folded if known and not self.quantity and self.polarity is None else ""

    # --- what is said ----------------------------------------------------------------------------

    def mentions(self, words: ClauseWords) -> list[Mention]:
        """Where the clause mentions this answer in so many words, or as a quantity of the same value."""
        if self.polarity is not None:
            text = words.clause.text
            found = (_YES if self.polarity else _NO).finditer(text)
            return [Mention(m.start(), m.end()) for m in found if _stands_as_answer(text, m.start(), m.end())]
        if self.quantity is not None:
            grades = [(got, self.agrees(got, words)) for got in words.quantities]
            return [
                Mention(q.start, q.end, grade == 2, 0.0 if grade == 2 else self._off(q))
                for q, grade in grades
                if grade and not self._restated(q, words)
            ]
        if self.formula:
            return [Mention(*span, False) for span in found_in(self.formula, words.clause.text)]
        return self._named(words) or self._listed(words)

    def agrees(self, got: Quantity, words: ClauseWords) -> int:
        """2 where a quantity of the answer has this value, 1 where it is a rounding of it, else 0."""
        if self.quantity is None:
            return 0
        if self.quantity.value < 0 < got.value and _DECLINE.search(words.clause.text):
            got = replace(got, value=-got.value)
        if got.kind == "ordinal" and self.quantity.kind == "number" and _RANK_QUESTION.search(self.question.folded):
            got = replace(got, kind="number")
        asked = self.question.magnitude
        return agreement(self.quantity, got, asked=asked, approximate=words.approximate, year=self.is_year)

    def _off(self, got: Quantity) -> float:
        return apart(self.quantity, got, asked=self.question.magnitude) if self.quantity else 0.0

    def _restated(self, got: Quantity, words: ClauseWords) -> bool:
        """Whether the number only repeats the question: it stands there too, beside the same word."""
        asked = [q for q in self.question.quantities if (q.value, q.magnitude) == (got.value, got.magnitude)]
        beside = {side for q in asked for side in _beside(self.question.tokens, q)}
        return bool(beside & _beside(words.tokens, got)) if asked else False

    def _named(self, words: ClauseWords) -> list[Mention]:
        return [m for wanted in self.spellings for m in _runs(wanted, words.tokens)]

    def _listed(self, words: ClauseWords) -> list[Mention]:
        each = [p.mentions(words) for p in self.parts]
        if not each or not all(each):
            return []
        ordered = "/" in self.folded or (any(p.symbolic for p in self.parts) and not _UNORDERED.search(self.folded))
        if ordered and not _in_turn(each):
            return []
        return [Mention(min(m[0].start for m in each), max(m[0].end for m in each))]

    # --- what is meant ---------------------------------------------------------------------------

    def meant(self, words: ClauseWords, others: Sequence[Reference], stated: int | None) -> list[Mention]:
        """Where the clause means this answer without quoting it: a name one letter off, the words that tell the answer
        from the question and from the others, or most words of a long option. From ``stated`` on, if it is not None,
        the clause is nothing but the answer."""
        if self.quantity or self.polarity is not None or self.formula or self.parts:
            return []
        said = [t for t in words.tokens if t.start >= (stated or 0)]
        if self._denied(said):
            return self._misspelt(words.tokens)
        present = frozenset(t.stem for t in words.tokens)
        extra = frozenset() if stated is None else self._beyond(said)
        telling = self._telling(others)
        if telling and telling <= present and self.cover(present) > 0 and not (extra and self._left_out(present)):
            return _over(words.tokens, telling)
        return self._misspelt(words.tokens) or (self._covered(words.tokens, others, extra) if self._long() else [])

    @property
    def symbolic(self) -> bool:
        """Whether the answer is a symbol or a number, not words."""
        return bool(self.formula) or all(symbolic(t.stem) for t in self.tokens)

    def _denied(self, said: Sequence[Token]) -> bool:
        """Whether what is said has another number, letter or name of a kind than this answer, or a negation more or
        less."""
        stems, wanted = {t.stem for t in said}, {t.stem for t in self.tokens}
        denying = _DENYING - {"no"} if _LONGER in stems else _DENYING
        if stems.isdisjoint(denying) != wanted.isdisjoint(_DENYING):
            return True
        shown = iter(symbols(said))
        if not all(s in shown for s in symbols(self.tokens)):
            return True
        return any(wanted & kind and (stems - wanted) & kind for kind in KINDS)

    def _beyond(self, said: Sequence[Token]) -> frozenset[str]:
        """The words that are said and are not this answer's."""
        return frozenset(
            s
            for s in content(said)
            if s not in self.content and s not in _FILLING and not any(derived(s, w) for w in self.content)
        )

    def _left_out(self, present: frozenset[str]) -> frozenset[str]:
        surname = len(self.tokens) < 5 and self._is_person()
        left = () if surname else self.content
        return frozenset(w for w in left if w not in present and not any(derived(w, p) for p in present))

    def cover(self, present: frozenset[str]) -> float:
        """The part of this answer's words that are there, 0 where one of them is denied by its opposite."""
        wanted = frozenset(self.content)
        if not wanted or any(opposed(w, p) for w in wanted - present for p in present - wanted):
            return 0.0
        return sum(1 for w in wanted if w in present or any(derived(w, p) for p in present)) / len(wanted)

    def _telling(self, others: Sequence[Reference]) -> frozenset[str]:
        surname = 1 < len(self.tokens) < 5 and self._is_person()
        own = frozenset(w for w in self.content if symbolic(w) or w not in self.question.content)
        own = own - {w for o in others for w in o.content} and own
        return frozenset({self.tokens[-1].stem}) if own and surname else own

    def _is_person(self) -> bool:
        return self.named[:1] == self.named[-1:] == [True] and _PERSON_QUESTION.search(self.question.folded) is not None

    def _misspelt(self, present: Sequence[Token]) -> list[Mention]:
        size = len(self.tokens)
        if size != len(self.named) or not all(self.named):
            return []
        for i in range(len(present) - size + 1):
            pairs = zip(self.tokens, present[i : i + size], strict=True)
            off = [(wanted.stem, shown.stem) for wanted, shown in pairs if wanted.stem != shown.stem]
            if len(off) == 1 and len(off[0][0]) >= 6 and one_letter_off(*off[0]):
                return [Mention(present[i].start, present[i + size - 1].end, False)]
        return []

    def _long(self) -> bool:
        return len(self.content) >= _FUZZY_LEAST

    def _covered(self, present: Sequence[Token], others: Sequence[Reference], extra: frozenset[str]) -> list[Mention]:
        stems = frozenset(t.stem for t in present)
        cover = self.cover(stems)
        rival = max((o.cover(stems) for o in others), default=0.0)
        least = _FUZZY_COVER if len(self.content) > _FUZZY_LEAST else 1.0
        if cover < least or cover - rival < _FUZZY_LEAD:
            return []
        size, new = len(frozenset(self.content)), len(extra - self.question.content)
        if new and cover < 1 and (_copied(cover, size, new) or cover * size / (size + new) < _FUZZY_PRECISE):
            return []
        return _over(present, {s for s in stems if any(s == w or derived(s, w) for w in self.content)})


def same_reference(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sources support the same answer."""
    return any(same_value(a, b) for a in one for b in other)


def _copied(cover: float, size: int, new: int) -> bool:
    """Whether the words are another option's of the same wording: nearly all, and others for those that are missing."""
    return cover >= _COPIED and new <= (1 - cover) * size + 1


def _in_turn(each: Sequence[Sequence[Mention]]) -> bool:
    """Whether the mentions of a list's parts follow each other in the list's order."""
    end = 0
    for mentions in each:
        after = [m.end for m in mentions if m.start >= end]
        if not after:
            return False
        end = min(after)
    return True


def _runs(wanted: Sequence[str], present: Sequence[Token]) -> list[Mention]:
    shown = [t for t in present if t.stem not in ARTICLES or t.stem in wanted]
    size = len(wanted)
    return [
        Mention(shown[i].start, shown[i + size - 1].end)
        for i in range(len(shown) - size + 1)
        if shown[i].stem == wanted[0] and all(shown[i + k].stem == wanted[k] for k in range(1, size))
    ]


def _over(present: Sequence[Token], stems: frozenset[str] | set[str]) -> list[Mention]:
    found = [t for t in present if t.stem in stems]
    return [Mention(found[0].start, found[-1].end, False)] if found else []


def _beside(words: Sequence[Token], got: Quantity) -> set[str]:
    before = [f"{t.stem}<" for t in words if t.end <= got.start][-1:]
    after = [f">{t.stem}" for t in words if t.start >= got.end][:1]
    return {side for side in (*before, *after) if side.strip("<>") not in ("is", "be", "of")}


def _stands_as_answer(text: str, start: int, end: int) -> bool:
    """Whether a yes or no is an answer and not a determiner ("no increase")."""
    before, after, word = text[:start].rstrip(), text[end:].lstrip(" "), text[start:end]
    closed = not after or after[0] in ",.;:!?)(\"'-—*\n…]" or _ANSWERED_BY.match(after) is not None
    last = before.split()[-1:] or [""]
    opened = not before or before[-1] in ",.;:!?(\"'-—*\n[=→" or last[0] in _BEFORE_ANSWER
    if word in ("correct", "incorrect", "true", "false", "negative", "indeed"):
        return (closed and opened) or last[0] in ("is", "that's", "statement")
    if " " in word or word in ("untrue", "nope", "yeah", "yep"):
        return True
    return (closed and opened) or (closed and word in ("yes", "no")) or (opened and word == "yes")
