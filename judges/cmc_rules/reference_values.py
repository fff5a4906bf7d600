"""The references of a question, and whose value a value is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.values.clean_text import clean, fold
from benchmarks.values.comparison_verdicts import PARAPHRASE, Comparison
from benchmarks.values.dates_and_times import Moment
from benchmarks.values.name_words import words_of
from benchmarks.values.numerals import Number
from benchmarks.values.parse_value import Amount, Listing, Polarity, Value, Words, parse
from benchmarks.values.question_facts import Question, read_question
from benchmarks.values.value_comparison import compare, compare_values
from judges.cmc_rules import cue_words

_LETTERED = re.compile(r"[( ]*([A-Ja-j])(?:[).: ]*$|[).:]| (?=[(–-]))")
_DETERMINER = re.compile(
    r"\bno (?!(?:and|but|or|not|per|in|on|is|are|while|whereas|rather|versus|vs)\b)(?=\w)|\bno\. ?(?=[0-9])"
)
OTHER, UNCLEAR = "other", "unclear"
"""The names of a value that is no reference's, and of one that may be."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One acceptable answer of a source."""

    name: str
    text: str
    value: Value


@dataclass(frozen=True)
class References:
    """The references of all sources, "image" and "text", or "both" where their values are the same."""

    every: Sequence[Reference]
    asked: str
    """The question that they answer."""

    @cached_property
    def question(self) -> Question:
        """The facts that the question settles."""
        return read_question(self.asked)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The words of the question that say what it is about."""
        return self.question.words - cue_words.STOP_WORDS

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The kinds of the values."""
        return frozenset(type(r.value) for r in self.every)

    @property
    def polar(self) -> bool:
        """A reference is a yes or a no."""
        return Polarity in self.kinds

    @cached_property
    def may_agree(self) -> bool:
        """It is unclear whether the two sources have one value."""
        pairs = ((a, b) for a in self.every for b in self.every if a.name < b.name)
        results = [compare(a.text, b.text, self.asked) for a, b in pairs]
        return any(c.verdict == "unclear" and c is not PARAPHRASE for c in results)  # a name is no yes

    @property
    def typed(self) -> bool:
        """All references are numbers, dates or times."""
        return self.kinds <= {Amount, Moment}

    @cached_property
    def numbers(self) -> Mapping[Reference, Number]:
        """The numbers of the references that are amounts."""
        return {r: r.value.number for r in self.every if isinstance(r.value, Amount)}

    def takes_up(self, words: Sequence[str]) -> bool:
        """Return whether the words of a clause take up the question."""
        return len(self.subject & set(words)) >= min(2, len(self.subject))

    def occurring(self, text: str) -> set[str]:
        """Return the sources whose word, name, yes or no occurs in a text; the "no" of "no increase" is none."""
        folded, words = _DETERMINER.sub("", fold(clean(text))), () if self.typed else self.every
        return {r.name for r in words if re.search(rf"(?<!\w){re.escape(fold(r.text))}(?!\w)", folded)}

    def classify(self, text: str) -> tuple[str, bool]:
        """Return whose value a short text is: a source, OTHER if it differs from all, "" if that is unclear.

        The second is whether the value is exactly the reference's.
        """
        return closest({r: compare(text, r.text, self.asked) for r in self.every})

    def classify_value(self, value: Value) -> tuple[str, bool]:
        """Return whose value a parsed value is, as :meth:`classify` does."""
        return closest({r: compare_values(value, r.value, self.question) for r in self.every})

    def is_rival(self, value: Value) -> bool:
        """Return whether a value that differs from all references may be called one of the same kind."""
        if isinstance(value, Amount):
            return Amount in self.kinds and len(value.noun) < 3
        if isinstance(value, Listing) and not all(part.isalpha() for text in value.texts for part in text.split()[:4]):
            return False
        return self._is_rival_name(value) if isinstance(value, Words) else type(value) in self.kinds

    def _is_rival_name(self, value: Words) -> bool:
        plain = all(w.isascii() and w.isalpha() and len(w) > 1 for w in value.words)
        own = {w for r in self.every for w in words_of(fold(r.text))}
        if any(w[i : i + 4] in "".join(value.words) for w in own for i in range(len(w) - 3)):
            return False  # wood, wooden
        texts = [w for r in self.every for w in fold(clean(r.text)).split()]
        alphabetic = all(w.isalpha() and w.isascii() for w in texts)
        return self.kinds <= {Words} and alphabetic and plain and len(value.words) <= 4 and own.isdisjoint(value.words)


def read_references(question: str, references: Mapping[str, Sequence[str]]) -> References:
    """Return the references of "image" and "text"; an option's letter stands for its words."""
    options = read_question(question).options

    def option(text: str) -> str:
        letter = _LETTERED.match(text)
        return options.get(letter[1].upper(), text) if letter else text

    named = {name: [option(text) for text in references.get(name, ())] for name in ("image", "text")}
    if any(compare(a, b, question).verdict == "same" for a in named["image"] for b in named["text"]):
        named = {"both": list(dict.fromkeys(named["image"] + named["text"]))}
    return References([Reference(name, text, parse(text)) for name, texts in named.items() for text in texts], question)


def closest(results: Mapping[Reference, Comparison]) -> tuple[str, bool]:
    """Return whose value one is that was compared with each reference, as :meth:`References.classify` does."""
    same = {r.name for r, c in results.items() if c.verdict == "same"}
    if same:
        return (min(same), True) if len(same) == 1 else ("", False)
    unclear = {r.name: c for r, c in results.items() if c.verdict == "unclear"}
    if not unclear:
        return OTHER, True
    name, comparison = next(iter(unclear.items()))
    return (name if len(unclear) == 1 and comparison.in_form else "", False)
