"""Words of captions and answers, as the construction's automatic checks compare them. Pure functions of hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchmarks.text.answer_equality import same_value


def word_set(text: str) -> frozenset[str]:
    """The words of a text that is written here."""
    return frozenset(text.split())


ARTICLES = word_set("a an")
COUNTS = word_set("a an another one two three four five six seven eight nine ten eleven twelve single several many few")
GAP = ""
"""Stands where a phrase was taken out; no word is empty."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_OWNERS = word_set("a an the his her its their")
_SINGULARS = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "mice": "mouse",
    "sheep": "sheep",
    "geese": "goose",
    "knives": "knife",
    "shelves": "shelf",
    "skis": "ski",
    "bus": "bus",
    "their": "its",
    "these": "this",
    "those": "that",
    "them": "it",
}
_AGREEING = {"are": "is", "were": "was", "have": "has"}
_ENDINGS = ("ly", "ing", "ed", "en", "y")


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation; a hyphen parts two words."""
    return [found.casefold() for found in _WORD.findall(text)]


def contains(text: str, phrase: str) -> bool:
    """Whether the words of ``phrase`` stand in ``text`` one after the other; False for a phrase without words."""
    return next(without(text, phrase), None) is not None


def mentions(text: str, phrase: str) -> bool:
    """:func:`contains` without regard to singular, plural, articles and possessives: ``two cats`` mentions ``the cat``."""
    return contains(" ".join(map(singular, words(text))), " ".join(map(singular, naming(phrase))))


def naming(phrase: str) -> list[str]:
    """The words of a phrase but for articles and possessives."""
    return [word for word in words(phrase) if word not in _OWNERS]


def without(text: str, phrase: str) -> Iterator[list[str]]:
    """The words of ``text`` with ``phrase`` taken out and ``GAP`` in its place, once for each place where it stands."""
    whole, part = words(text), words(phrase)
    for start in range(len(whole) - len(part) + 1) if part else ():
        if whole[start : start + len(part)] == part:
            yield [*whole[:start], GAP, *whole[start + len(part) :]]


def same_rest(one: Sequence[str], other: Sequence[str], *, number: bool) -> bool:
    """Whether two rests of captions are the same, but for articles (`an owl`) and verbs that agree (`the bread is`).

    With ``number``, nouns may also differ in singular and plural: what a changed number brings with it.
    """
    left, right = ([word for word in rest if word not in ARTICLES] for rest in (one, other))
    if len(left) != len(right):
        return False
    alike = singular if number else _agreeing
    return all(a == b or alike(a) == alike(b) for a, b in zip(left, right, strict=True))


def singular(word: str) -> str:
    """A word's singular by rule of thumb; verbs in the plural likewise (``are`` is ``is``)."""
    if word in _SINGULARS or word in _AGREEING:
        return _SINGULARS.get(word) or _AGREEING[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes", "oes", "uses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def matches(answer: str, phrase: str) -> bool:
    """Whether an answer is the phrase it should be: `A ball` and `ball`, `Wood` and `wooden`, `Red and white` and `red`.

    They match if they are the same value (:func:`benchmarks.text.answer_equality.same_value`), or if all stems of the
    one are among the
    other's, articles and possessives aside; ``a`` and ``another`` are the number one.
    """
    if same_value(answer, phrase):
        return True
    one, other = _stems(answer), _stems(phrase)
    if not one or not other:
        return False
    return one <= other or other <= one or "".join(words(answer)) == "".join(words(phrase))


def _stems(text: str) -> frozenset[str]:
    found = naming(text)
    if found in ([], ["another"]) and ARTICLES.union(found).intersection(words(text)):
        found = ["one"]
    return frozenset(map(_stem, found))


def _agreeing(word: str) -> str:
    return _AGREEING.get(word, word)


def _stem(word: str) -> str:
    bare = singular(word.removesuffix("'s").removesuffix("’s"))
    for ending in _ENDINGS:
        if bare.endswith(ending) and len(bare) - len(ending) > 2:
            bare = bare.removesuffix(ending)
    return bare.rstrip("e") or bare
