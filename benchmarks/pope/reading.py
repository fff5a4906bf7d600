"""What an answer to a yes/no question says: our reading, and POPE's own."""

from __future__ import annotations

import re

_LONGEST_SENTENCE = 2_000
_SENTENCE = re.compile(r"[.!?\n](?:\s|\Z)|\n")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNSURE = _set(
    "unclear unsure uncertain unable impossible sorry whether depends maybe possibly perhaps may might could"
)
_KNOWING = _set("know sure tell determine certain clear say idea clue")
_NEGATIONS = _set("no not cannot never none without")
_STATEMENTS = (
    "there is",
    "there are",
    "there's",
    "i see",
    "i can see",
    "the image shows",
    "the image contains",
    "the picture shows",
)


def read_yes_no(answer: str) -> tuple[str | None, str]:
    """``yes``, ``no`` or None for what an answer says, and the rule that reads it.

    In their order: the answer begins with the word; the word is in its first sentence and the other is not; the first
    sentence is a statement with or without a negation (`There is not a dog`). A first sentence with both words, or one that
    is unsure of it (`I cannot tell`), says neither.
    """
    first = _first_sentence(answer)
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(first)]
    if not words:
        return None, "the answer has no word"
    if words[0] in ("yes", "no") and words[1:2] not in (["idea"], ["clue"]):
        return words[0], "it begins with the word"
    negated = bool(_NEGATIONS.intersection(words)) or any(word.endswith("n't") for word in words)
    if _UNSURE.intersection(words) or (negated and _KNOWING.intersection(words)):
        return None, "it is unsure"
    said = {"yes", "no"}.intersection(words)
    if len(said) == 2:
        return None, "it says both words"
    if said:
        return said.pop(), "its first sentence has the word"
    if negated:
        return "no", "its first sentence is a negation"
    if " ".join(words).startswith(_STATEMENTS):
        return "yes", "its first sentence is a statement"
    return None, "it says neither yes nor no"


def official(answer: str) -> str:
    """``yes`` or ``no`` as POPE's published evaluation reads an answer: everything without No, not or no is a yes.

    Its rule: the text before the first full stop, commas taken out, parted at spaces.
    """
    words = answer.split(".", 1)[0].replace(",", "").split(" ")
    return "no" if "No" in words or "not" in words or "no" in words else "yes"


def _first_sentence(answer: str) -> str:
    text = answer.strip()[:_LONGEST_SENTENCE]
    return _SENTENCE.split(text, maxsplit=1)[0]
