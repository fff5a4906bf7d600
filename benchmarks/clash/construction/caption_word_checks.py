"""Word comparison for the automatic checks of a construction. Pure functions of untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchmarks.values import compare


def word_set(text: str) -> frozenset[str]:
    """Return the words of a literal as a set."""
    return frozenset(text.split())


ARTICLES = word_set("a an")
COUNTS = word_set("a an another one two three four five six seven eight nine ten eleven twelve single several many few")
GAP = ""
"""The placeholder for a removed phrase; no word is empty."""

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
    """Return the words of a text in lower case, without punctuation; a hyphen separates words."""
    return [word.casefold() for word in _WORD.findall(text)]


def contains(text: str, phrase: str) -> bool:
    """Return whether the words of ``phrase`` occur in ``text`` in sequence; False for a phrase without words."""
    return next(remove_phrase(text, phrase), None) is not None


def mentions(text: str, phrase: str) -> bool:
    """Return :func:`contains`, ignoring number, articles and possessives: ``two cats`` mentions ``the cat``."""
    return contains(" ".join(map(singular, words(text))), " ".join(map(singular, content_words(phrase))))


def content_words(phrase: str) -> list[str]:
    """Return the words of a phrase without articles and possessives."""
    return [word for word in words(phrase) if word not in _OWNERS]


def remove_phrase(text: str, phrase: str) -> Iterator[list[str]]:
    """Yield the words of ``text`` with ``phrase`` replaced by ``GAP``, once per occurrence."""
    tokens, target = words(text), words(phrase)
    for start in range(len(tokens) - len(target) + 1) if target else ():
        if tokens[start : start + len(target)] == target:
            yield [*tokens[:start], GAP, *tokens[start + len(target) :]]


def same_remainder(first: Sequence[str], second: Sequence[str], *, number: bool) -> bool:
    """Return whether two remainders are equal up to articles (`an owl`) and verb agreement (`the bread is`).

    With ``number``, nouns may also differ in singular and plural: what a changed number brings with it.
    """
    first_words, second_words = ([word for word in rest if word not in ARTICLES] for rest in (first, second))
    if len(first_words) != len(second_words):
        return False
    is_alike = singular if number else _agreeing
    return all(a == b or is_alike(a) == is_alike(b) for a, b in zip(first_words, second_words, strict=True))


def singular(word: str) -> str:
    """Return a word's singular by rule of thumb, and a verb's likewise (``are`` becomes ``is``)."""
    if word in _SINGULARS or word in _AGREEING:
        return _SINGULARS.get(word) or _AGREEING[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes", "oes", "uses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def matches(answer: str, phrase: str) -> bool:
    """Return whether an answer fits a phrase: `A ball` and `ball`, `Wood` and `wooden`, `Red and white` and `red`.

    They match if they are the same value (:func:`benchmarks.values.compare`), or if all stems of the one are among the
    other's, articles and possessives aside; ``a`` and ``another`` are the number one.
    """
    if compare(answer, phrase).verdict == "same":
        return True
    answer_stems, phrase_stems = _stems(answer), _stems(phrase)
    if not answer_stems or not phrase_stems:
        return False
    return (
        answer_stems <= phrase_stems or phrase_stems <= answer_stems or "".join(words(answer)) == "".join(words(phrase))
    )


def _stems(text: str) -> frozenset[str]:
    content = content_words(text)
    if content in ([], ["another"]) and ARTICLES.union(content).intersection(words(text)):
        content = ["one"]
    return frozenset(map(_stem, content))


def _agreeing(word: str) -> str:
    return _AGREEING.get(word, word)


def _stem(word: str) -> str:
    bare = singular(word.removesuffix("'s").removesuffix("’s"))
    for ending in _ENDINGS:
        if bare.endswith(ending) and len(bare) - len(ending) > 2:
            bare = bare.removesuffix(ending)
    return bare.rstrip("e") or bare
