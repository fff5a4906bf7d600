"""Options that a question prints with letters, and the option whose letter an answer gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from benchmarks.text.option_letter import marked_letter, structured_answer

_LETTERS = "ABCDEFGHIJ"
_LABEL = re.compile(r"(?:(?<=\s)|(?<![^(\[]))[*_]{0,2}[(\[]?([A-J])[)\].:]{1,2}[*_]{0,2}(?=\s|[^\W_])")
_CLOSING = " \t\n,;|/"
_LONGEST = 20_000
_NAMED = re.compile(
    r"(?:(?:it(?:'s| is) )?(?:the )?(?:option|choice|letter) )[(\[\"'*]*([A-J])[)\]\"'*.]*", re.IGNORECASE
)
_LETTER_ONLY = re.compile(r"[(\[\"'*]*([A-Ja-j])[)\]\"'*.:]*")


@lru_cache(maxsize=256)
def parse_options(question: str) -> Mapping[str, str]:
    """Return the text of each lettered option that a question prints, from A on without gaps; empty if it prints none."""
    labels, following = [], 0
    for match in _LABEL.finditer(question[:_LONGEST]):
        if match[1] == _LETTERS[following : following + 1]:
            labels.append(match)
            following += 1
    if len(labels) < 2:
        return {}
    ends = [m.start() for m in labels[1:]] + [len(question)]
    texts = {m[1]: question[m.end() : end].strip(_CLOSING) for m, end in zip(labels, ends, strict=True)}
    return texts if all(texts.values()) else {}


def resolve_letters(answers: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the acceptable answers of a source, with the text of each option that they name by its letter."""
    letters = [m[1].upper() for m in map(_LETTER_ONLY.fullmatch, answers) if m]
    return (*answers, *(options[letter] for letter in letters if letter in options))


def chosen_option(answer: str, options: Mapping[str, str]) -> str:
    """Return the text of the option whose letter, and nothing beside it, an answer gives as its choice; "" if none."""
    text = structured_answer(answer).strip()
    named = _NAMED.fullmatch(text)
    text = named[1].upper() if named else text
    choice = marked_letter(text, "".join(options)) if options else None
    letter = choice[0] if choice else None
    if letter is None:
        return ""
    alone = re.compile(
        rf"(?<![^\W_]){letter}(?:[)\]}}\"'*_`.:,!]|</answer>)*\s*(?:$|\n|because\b|since\b|as\b)", re.I | re.M
    )
    return options[letter] if alone.search(text) else ""
