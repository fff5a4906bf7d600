"""Mentions of a reference's value in an answer: quantities, names, lists, formulas, yes and no, long options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from benchmarks.text.answer_equality import coarse_type, same_value
from judges.cmc_rules.clauses import Clause, fold
from judges.cmc_rules.compounds import Quantity
from judges.cmc_rules.cues import APPROXIMATE, HARDLY, NO, YES, compiled
from judges.cmc_rules.formulas import find_formula, parse_formula
from judges.cmc_rules.lazy_pattern import lazy
from judges.cmc_rules.moments import parse_moment
from judges.cmc_rules.quantities import find_quantities, match_grade, question_magnitude, relative_distance
from judges.cmc_rules.telephone import telephone_pattern
from judges.cmc_rules.words import (
    ARTICLES,
    KINDS,
    NUMERALS,
    STOP_STEMS,
    SUBSTANCES,
    TITLES,
    Token,
    are_opposites,
    content_stems,
    find_symbols,
    is_derived,
    is_symbol,
    one_letter_off,
    stem,
    tokenize,
)

_YES_NO = {"yes": True, "true": True, "correct": True, "no": False, "false": False, "incorrect": False}
_YES, _NO, _HARDLY = compiled(YES), compiled(NO), compiled(HARDLY)
_APPROXIMATE = lazy(compiled(APPROXIMATE).pattern + "|[~≈]")
_PERCENT_QUESTION = lazy(r"percent|per cent|%|\b(?:share|proportion|fraction)\b")
_COUNT_QUESTION = lazy(r"\bhow many (?!percent|per cent|%)")
_RANK_QUESTION = lazy(r"\b(?:rank|place|position|floor)")
_PERSON_QUESTION = lazy(
    r"\b(?:who|whose|whom|painter|artist|composer|author|president|architect|sculptor|philosopher|scientist)\b"
)
_ARITHMETIC = lazy(r"[0-9=+*/^√(]")
_NO_UNIT = lazy(r"(?:\s?[a-z]{1,3})?,\s*[a-z]|\s+(?:is|are|was|were|of the)\b|/|.*(?:[θπ]|\b(?:sin|cos|tan)\b)")
_SECOND_NUMBER = lazy(r"[,;]\s*[-+$€£]?\.?[0-9]")
_UNIT_ALONE = lazy(r"\s?[a-zµω°%/^0-9·-]{1,12}")
_LIST = lazy(r"\s*(?:,|;|/|&|\band\b|\n)\s*(?:and\s+)?")
_LISTED = r"(?:[^\W\d][\w' .&-]{2,60}|[12][0-9]{3})"
_BRACKETED = lazy(rf"^\[({_LISTED}(?:, ?{_LISTED}){{1,9}})\]$")
_UNORDERED = lazy(r"\b(?:and|or)\b|&")
_DECLINE = lazy(r"decreas|declin|drop|fell|fall|down|loss|lower|reduc|below|shr[aiu]nk|negative|minus")
_ANSWERED_BY = lazy(
    r"(?:according to|as per|per the|given|because|since|based on|it|they|he|she|there|this|that|the|as)\b"
)
_BEFORE_ANSWER = {
    *("and", "is", "be", "was", "a", "would", "clear", "clearly", "answer", "so", "hence", "therefore", "thus"),
    *("say", "says", "said", "states", "indicates", "suggests", "claims"),
}
_IMAGE_TAG = lazy(r"<image ?[0-9]+>")
_DENYING = frozenset({"not", "no", "cannot", "never", "neither", "nor", "without", "none"})
_CHANGES = frozenset(map(stem, ("increase", "decrease")))
_SITE = lazy(r"(?:www\.)?[\w-]{4,40}\.(?:com|org|net|io)")
_SHORT_LIST_PART = 4
_LONGEST_NAME, _LONG_WORD = 3, 7
_LONGER = stem("longer")
_FILLING = frozenset(
    map(stem, ("think", "believe", "one", "kind", "type", "sort", "thing", "likely", "clearly", "answer"))
)
_FUZZY_LEAST, _FUZZY_COVER, _FUZZY_LEAD = 3, 0.6, 0.2
_COPIED, _FUZZY_PRECISE = 0.75, 0.4
"""Thresholds for long options.

A long option is implied if at least ``_FUZZY_COVER`` of its words occur (all of them, if it has no more than
``_FUZZY_LEAST``), and ``_FUZZY_LEAD`` more than of the other source's.
"""


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference's value in a clause, from ``start`` to ``end`` of its text."""

    start: int
    end: int
    exact: bool = True
    distance: float = 0.0
    """The distance of a rounding from the reference, as a fraction of the rounding."""


@dataclass(frozen=True, slots=True)
class ClauseWords:
    """A clause with its tokens and quantities, computed once for all references."""

    clause: Clause
    tokens: tuple[Token, ...]
    quantities: tuple[Quantity, ...]
    approximate: bool


def analyse_clause(clause: Clause) -> ClauseWords:
    """Return a clause with its tokens and quantities."""
    approximate = _APPROXIMATE.search(clause.text) is not None
    return ClauseWords(clause, tokenize(clause.text), find_quantities(clause.text), approximate)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """The features of a question that bear on reading the answer."""

    folded: str
    tokens: tuple[Token, ...]
    content: frozenset[str]
    quantities: tuple[Quantity, ...]
    magnitude: float | None
    in_percent: bool


@lru_cache(maxsize=256)
def parse_question(question: str) -> ParsedQuestion:
    """Return a question, folded and analysed."""
    folded = fold(_IMAGE_TAG.sub(" ", question))
    words = tokenize(folded)
    in_percent = _PERCENT_QUESTION.search(folded) is not None and not _COUNT_QUESTION.search(folded)
    magnitude = question_magnitude(folded)
    return ParsedQuestion(
        folded, words, frozenset(content_stems(words)), find_quantities(folded), magnitude, in_percent
    )


class Reference:
    """One acceptable answer of one source, prepared for searching."""

    def __init__(self, answer: str, question: ParsedQuestion) -> None:
        self.question = question
        self.named = [w[:1].isupper() for w in answer.split()]
        self.folded = _BRACKETED.sub(r"\1", fold(answer).strip(" \n\"'").rstrip(" .,;:!?\"'"))
        all_tokens = tokenize(self.folded)
        self.tokens = tuple(t for t in all_tokens if t.stem not in ARTICLES) or all_tokens
        self.content = content_stems(self.tokens)
        self.polarity = _YES_NO.get(self.folded)
        self.is_year = coarse_type(answer) == "year"
        self.moment = parse_moment(self.folded, question.folded)
        self.telephone = None if self.moment else telephone_pattern(self.folded)
        self.quantity = None if self.moment or self.telephone else self._whole_quantity()
        named = self.quantity is None and self.moment is None and self.telephone is None
        self.formula = parse_formula(self.folded) if named else ""
        self.parts = self._parts()
        self.spellings = self._spellings()

    def _whole_quantity(self) -> Quantity | None:
        name, sign, value = self.folded.rpartition("=")
        named = sign and "=" not in name and len(name.split()) <= _LONGEST_NAME
        text = value.strip() if named else self.folded
        numbers = find_quantities(text)
        if len(numbers) != 1 or text[: numbers[0].start].strip(" $("):
            return None
        quantity, rest = numbers[0], text[numbers[0].end :]
        arithmetic = _ARITHMETIC.search(rest) and quantity.dimension is None and not _UNIT_ALONE.fullmatch(rest)
        if arithmetic or _SECOND_NUMBER.search(rest) or len(rest.split()) > 3 or _NO_UNIT.match(rest):
            return None
        if quantity.unit == "a":
            return replace(quantity, unit="amp")
        bare = not quantity.unit and quantity.kind == "number" and not self.is_year
        return replace(quantity, unit="%") if bare and self.question.in_percent else quantity

    def _parts(self) -> tuple[Reference, ...]:
        if self.quantity or self.formula or self.moment or self.telephone:
            return ()
        parts = [p for p in _LIST.split(self.folded.strip("[]()")) if p.strip()]
        short = len(parts) > 1 and all(len(p.split()) <= _SHORT_LIST_PART for p in parts)
        return tuple(Reference(p, self.question) for p in parts) if short else ()

    def _spellings(self) -> list[list[str]]:
        """Return the words of the answer, also with another notation of its number ("type two" for "Type 2").

        For a name, also without its title, and with its first words or all as initials ("DR Congo").
        """
        words = [t.stem for t in self.tokens]
        main = [w for w in words if w not in STOP_STEMS]
        spellings = [words] if words else []
        if any(self.named) and 2 <= len(main) <= 5 and not any(map(is_symbol, main)):
            short = (["".join(w[0] for w in main[:k]), *main[k:]] for k in range(2, len(main) + 1))
            spellings += [s for s in short if s[0] not in STOP_STEMS]
            spellings += [words[:-1]] if _SITE.fullmatch(self.folded) else []
            spellings += [untitled] if 2 <= len(untitled := [w for w in words if w not in TITLES]) < len(words) else []
        numbered = [i for i, w in enumerate(words) if w in NUMERALS] if len(words) > 1 else []
        if len(numbered) == 1:
            (at,) = numbered
            spellings += [[*words[:at], w, *words[at + 1 :]] for w in NUMERALS[words[at]] if w != words[at]]
        return spellings

    @property
    def phrase(self) -> str:
        """The answer if its exact words suffice to recognise it, as for a text of several words; otherwise ""."""
        recognisable = len(self.tokens) > 1 or (self.formula and len(self.folded) > 1)
        return self.folded if recognisable and not self.quantity and self.polarity is None else ""

    # --- what is said ----------------------------------------------------------------------------

    def mentions(self, words: ClauseWords) -> list[Mention]:
        """Return the mentions of this answer in the clause, word for word or as a quantity of the same value."""
        if self.polarity is not None:
            text = words.clause.text
            matches = (_YES if self.polarity else _NO).finditer(text)
            return [Mention(m.start(), m.end()) for m in matches if _stands_as_answer(text, m.start(), m.end())]
        if self.quantity is not None:
            grades = [(quantity, self.agrees(quantity, words)) for quantity in words.quantities]
            return [
                Mention(q.start, q.end, grade == 2, 0.0 if grade == 2 else self._distance(q))
                for q, grade in grades
                if grade and not self._repeats_question(q, words)
            ]
        if self.telephone:
            return [Mention(*m.span()) for m in self.telephone.finditer(words.clause.text)]
        if self.formula:
            return [Mention(*span, False) for span in find_formula(self.formula, words.clause.text)]
        return [m for m in self._name_mentions(words) if not self._repeats_change(m, words)] or self._list_mentions(
            words
        )

    def agrees(self, quantity: Quantity, words: ClauseWords) -> int:
        """Return 2 if a quantity of the answer has this value, 1 if it is a rounding of it, otherwise 0."""
        if self.quantity is None:
            return 0
        if self.quantity.value < 0 < quantity.value and _DECLINE.search(words.clause.text):
            quantity = replace(quantity, value=-quantity.value)
        if (
            quantity.kind == "ordinal"
            and self.quantity.kind == "number"
            and _RANK_QUESTION.search(self.question.folded)
        ):
            quantity = replace(quantity, kind="number")
        magnitude = self.question.magnitude
        return match_grade(
            self.quantity, quantity, magnitude=magnitude, approximate=words.approximate, year=self.is_year
        )

    def _distance(self, quantity: Quantity) -> float:
        return relative_distance(self.quantity, quantity, magnitude=self.question.magnitude) if self.quantity else 0.0

    def _repeats_question(self, quantity: Quantity, words: ClauseWords) -> bool:
        """Return whether the number only repeats the question: it occurs there too, next to the same word."""
        repeats = [
            q for q in self.question.quantities if (q.value, q.magnitude) == (quantity.value, quantity.magnitude)
        ]
        neighbours = {side for q in repeats for side in _neighbours(self.question.tokens, q)}
        return bool(neighbours & _neighbours(words.tokens, quantity)) if repeats else False

    def _repeats_change(self, mention: Mention, words: ClauseWords) -> bool:
        """Return whether "the pressure rises" only repeats a change that the question names of the same subject."""
        if len(self.tokens) != 1 or self.tokens[0].stem not in _CHANGES:
            return False
        subjects = [
            a.stem for a, b in pairwise(self.question.tokens) if b.stem in _CHANGES and a.stem not in STOP_STEMS
        ]
        subject = next((t.stem for t in reversed(words.tokens) if t.end <= mention.start), "")
        return subject in subjects

    def _name_mentions(self, words: ClauseWords) -> list[Mention]:
        return [m for spelling in self.spellings for m in _find_runs(spelling, words.tokens)]

    def _list_mentions(self, words: ClauseWords) -> list[Mention]:
        part_mentions = [p.mentions(words) for p in self.parts]
        if not part_mentions or not all(part_mentions):
            return []
        ordered = "/" in self.folded or (any(p.symbolic for p in self.parts) and not _UNORDERED.search(self.folded))
        if ordered and not _in_order(part_mentions):
            return []
        return [Mention(min(m[0].start for m in part_mentions), max(m[0].end for m in part_mentions))]

    # --- what is meant ---------------------------------------------------------------------------

    def implied_mentions(
        self, words: ClauseWords, others: Sequence[Reference], answer_start: int | None
    ) -> list[Mention]:
        """Return the mentions of this answer that do not quote it.

        These are a name one letter off, the words that distinguish the answer from the question and from the others, or
        most words of a long option. From ``answer_start`` on, unless it is None, the clause is nothing but the answer.
        """
        if self.quantity or self.polarity is not None or self.formula or self.parts:
            return []
        answer_tokens = [t for t in words.tokens if t.start >= (answer_start or 0)]
        if self._is_denied(answer_tokens):
            return self._misspelt(words.tokens)
        present = frozenset(t.stem for t in words.tokens)
        extra = frozenset() if answer_start is None else self._extra_words(answer_tokens)
        telling = self._distinctive(others)
        if (
            telling
            and telling <= present
            and self.coverage(present) > 0
            and not (extra and self._missing_words(present))
        ):
            return _span_of(words.tokens, telling)
        return self._misspelt(words.tokens) or (self._covering(words.tokens, others, extra) if self._is_long() else [])

    @property
    def symbolic(self) -> bool:
        """True if the answer is a symbol, a number or a substance's formula, not words."""
        return bool(self.formula) or self.folded in SUBSTANCES or all(is_symbol(t.stem) for t in self.tokens)

    def _is_denied(self, answer_tokens: Sequence[Token]) -> bool:
        """Return whether the tokens hold another number, letter or name of a kind than this answer, or differ in negation."""
        stems, own_stems = {t.stem for t in answer_tokens}, {t.stem for t in self.tokens}
        denying = _DENYING - {"no"} if _LONGER in stems else _DENYING
        if stems.isdisjoint(denying) != own_stems.isdisjoint(_DENYING):
            return True
        answer_symbols = iter(find_symbols(answer_tokens))
        if not all(s in answer_symbols for s in find_symbols(self.tokens)):
            return True
        return any(own_stems & kind and (stems - own_stems) & kind for kind in KINDS)

    def _extra_words(self, answer_tokens: Sequence[Token]) -> frozenset[str]:
        """Return the words in the tokens that are not this answer's."""
        return frozenset(
            s
            for s in content_stems(answer_tokens)
            if s not in self.content and s not in _FILLING and not any(is_derived(s, w) for w in self.content)
        )

    def _missing_words(self, present: frozenset[str]) -> frozenset[str]:
        surname = len(self.tokens) < 5 and self._is_person()
        required = () if surname else self.content
        return frozenset(w for w in required if w not in present and not any(is_derived(w, p) for p in present))

    def coverage(self, present: frozenset[str]) -> float:
        """Return the fraction of this answer's words that are present; 0 if one of them is denied by its opposite."""
        own_stems = frozenset(self.content)
        if not own_stems or any(are_opposites(w, p) for w in own_stems - present for p in present - own_stems):
            return 0.0
        return sum(1 for w in own_stems if w in present or any(is_derived(w, p) for p in present)) / len(own_stems)

    def _distinctive(self, others: Sequence[Reference]) -> frozenset[str]:
        surname = 1 < len(self.tokens) < 5 and self._is_person()
        distinctive = frozenset(w for w in self.content if is_symbol(w) or w not in self.question.content)
        distinctive = distinctive - {w for o in others for w in o.content} and distinctive
        return frozenset({self.tokens[-1].stem}) if distinctive and surname else distinctive

    def _is_person(self) -> bool:
        return self.named[:1] == self.named[-1:] == [True] and _PERSON_QUESTION.search(self.question.folded) is not None

    def _misspelt(self, present: Sequence[Token]) -> list[Mention]:
        size = len(self.tokens)
        if size != len(self.named):
            return []
        if not all(self.named):
            return [
                Mention(t.start, t.end, False) for t in present if size == 1 and _has_letter_slip(self.tokens[0], t)
            ]
        for i in range(len(present) - size + 1):
            pairs = zip(self.tokens, present[i : i + size], strict=True)
            off = [(expected.stem, actual.stem) for expected, actual in pairs if expected.stem != actual.stem]
            if len(off) == 1 and len(off[0][0]) >= 6 and one_letter_off(*off[0]):
                return [Mention(present[i].start, present[i + size - 1].end, False)]
        return []

    def _is_long(self) -> bool:
        return len(self.content) >= _FUZZY_LEAST

    def _covering(self, present: Sequence[Token], others: Sequence[Reference], extra: frozenset[str]) -> list[Mention]:
        stems = frozenset(t.stem for t in present)
        cover = self.coverage(stems)
        rival = max((o.coverage(stems) for o in others), default=0.0)
        least_cover = _FUZZY_COVER if len(self.content) > _FUZZY_LEAST else 1.0
        if cover < least_cover or cover - rival < _FUZZY_LEAD:
            return []
        size, new = len(frozenset(self.content)), len(extra - self.question.content)
        if new and cover < 1 and (_is_near_copy(cover, size, new) or cover * size / (size + new) < _FUZZY_PRECISE):
            return []
        return _span_of(present, {s for s in stems if any(s == w or is_derived(s, w) for w in self.content)})


def same_reference(answers: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two sources support the same answer."""
    return any(same_value(a, b) for a in answers for b in others)


def _is_near_copy(cover: float, size: int, new: int) -> bool:
    """Return whether the words are those of a similarly worded option: nearly all present, and others for the missing ones."""
    return cover >= _COPIED and new <= (1 - cover) * size + 1


def _in_order(parts: Sequence[Sequence[Mention]]) -> bool:
    """Return whether the mentions of a list's parts follow each other in the list's order."""
    end = 0
    for mentions in parts:
        after = [m.end for m in mentions if m.start >= end]
        if not after:
            return False
        end = min(after)
    return True


def _find_runs(spelling: Sequence[str], present: Sequence[Token]) -> list[Mention]:
    words = [t for t in present if t.stem not in ARTICLES or t.stem in spelling]
    size = len(spelling)
    return [
        Mention(words[i].start, words[i + size - 1].end)
        for i in range(len(words) - size + 1)
        if words[i].stem == spelling[0] and all(words[i + k].stem == spelling[k] for k in range(1, size))
    ]


def _span_of(present: Sequence[Token], stems: frozenset[str] | set[str]) -> list[Mention]:
    matches = [t for t in present if t.stem in stems]
    return [Mention(matches[0].start, matches[-1].end, False)] if matches else []


def _neighbours(words: Sequence[Token], quantity: Quantity) -> set[str]:
    before = [f"{t.stem}<" for t in words if t.end <= quantity.start][-1:]
    after = [f">{t.stem}" for t in words if t.start >= quantity.end][:1]
    return {side for side in (*before, *after) if side.strip("<>") not in ("is", "be", "of")}


def _has_letter_slip(expected: Token, actual: Token) -> bool:
    """Return whether a word has one letter more or less than a long one, and the same first letter ("atypical" has not)."""
    word, other = expected.stem, actual.stem
    if word[:1] != other[:1] or len(word) == len(other) or min(len(word), len(other)) < _LONG_WORD:
        return False
    return one_letter_off(word, other) and not is_derived(word, other)


def _stands_as_answer(text: str, start: int, end: int) -> bool:
    """Return whether a yes or no is an answer and not a determiner ("no increase")."""
    before, after, word = text[:start].rstrip(), text[end:].lstrip(" "), text[start:end]
    closed = not after or after[0] in ",.;:!?)(\"'-—*\n…]" or _ANSWERED_BY.match(after) is not None
    last = before.split()[-1:] or [""]
    opened = not before or before[-1] in ",.;:!?(\"'-—*\n[=→" or last[0] in _BEFORE_ANSWER
    if word in ("correct", "incorrect", "true", "false", "negative", "indeed"):
        return (closed and opened) or last[0] in ("is", "that's", "statement")
    if _HARDLY.fullmatch(word):
        return opened
    if " " in word or word in ("untrue", "nope", "yeah", "yep"):
        return True
    return (closed and opened) or (closed and word in ("yes", "no")) or (opened and word == "yes")
