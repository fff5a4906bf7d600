"""The scene chosen by a reply, strictly or as the published evaluation counts. Pure functions of untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.contra4.contra4_constants import LETTERS
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer

ParsedChoice = tuple[str | None, str]
"""A letter or None, and the rule that found it or the reason why there is none."""

_LONGEST = 20_000
_NEAR = 60
"""The number of characters before a scene in which a negation applies to it."""

_ORDINALS = ("first", "second", "third", "fourth")
_LETTER_OF = {
    **{name: letter for letter, name in zip(LETTERS, _ORDINALS, strict=True)},
    **{name: letter for letter, name in zip(LETTERS, ("1st", "2nd", "3rd", "4th"), strict=True)},
    **{name: letter for letter, name in zip(LETTERS, "1234", strict=True)},
}
_ORDINAL = "|".join(name for name in _LETTER_OF if len(name) > 1)
_NOUN = r"(?:scene|option|choice|answer|input)s?"
_MARKS = re.compile(r"[*_`\"“”]")
_MENTION = re.compile(
    rf"\b(?P<noun>{_NOUN})(?:[ \t:#]{{1,3}}[(\[]?|[(\[])(?P<named>[A-D]|[1-4])\b(?!['’])"
    rf"|\b(?P<the>the\s)?(?P<ordinal>{_ORDINAL})\b(?P<what>\s(?:{_NOUN}|one)\b)?"
    r"|[(\[](?P<bracketed>[A-D])[)\]]",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"[\s(\[{{<]*(?P<said>[A-D]|[1-4]|{_ORDINAL})[\s)\]}}>.:,;!]*", re.IGNORECASE)
_FIRST_LETTER = re.compile(r"[(\[]?([A-D])[)\]]?(?=\s*[.,:;)\]!\n]|\s*$|\s+[-–—]|\s+(?:because|since|as|is)\b)")
_ANNOUNCED = re.compile(
    r"\b(?:answer|choice)\b(?:\s+(?:is|would be))?\s{0,3}:?[ \t\n]{0,3}([^\n]{1,300})", re.IGNORECASE
)
_ENDS = re.compile(r"[)\]]?\s*(?:[.,:;)\]!\n]|$)|[)\]]?\s+(?:[-–—]|because\b|since\b|as\b)")
"""The text after a leading choice; "Scene A is calm" is a description, not a choice."""
_OR = re.compile(r"[)\].,]?\s*(?:or|and|/|&|,)\s*(?:(?:or|and|the)\s+)*", re.IGNORECASE)
_BARE = re.compile(r"[A-D]\b(?!['’])")
_NEGATED = re.compile(
    r"(?:\bnot|n['’]t|\bnever|\bneither|\bnor|\brather than|\binstead of|\bunlike|\bthan|\bwithout)\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    letter: str


def parse_choice(reply: str, letters: str) -> ParsedChoice:
    """Return the scene that ``reply`` chooses among ``letters``; None if it names none, several or an unknown one.

    In this order: a letter that is marked (``benchmarks.text.option_letter``); a letter, number or ordinal that is all
    of it; what
    is announced last ("The answer is Scene B"); what the reply begins with ("Scene B. Scene A is calmer"), unless "or" or
    "and" adds another; the only scene that it names. A scene that is negated or compared with ("not Scene A", "than Scene A")
    is not named.
    """
    answer = structured_answer(visible_answer(reply))
    marked = marked_letter(answer, "".join(LETTERS))
    if marked is not None:
        letter, rule = marked
        return (None, rule) if letter is None else _there(letter, letters, rule)
    text = _MARKS.sub("", answer)[:_LONGEST].strip()
    whole_match = _ALONE.fullmatch(text)
    if whole_match:
        return _there(_letter(whole_match["said"]), letters, "alone")
    announced = _ANNOUNCED.findall(text)
    if announced:
        letter, rule = _begins(announced[-1], letters, "announced")
        if letter is not None:
            return letter, rule
    letter, rule = _begins(text, letters, "at the beginning")
    if letter is not None or rule:
        return letter, rule
    named = sorted({mention.letter for mention in _mentions(text)})
    if len(named) == 1:
        return _there(named[0], letters, "the only one named")
    return None, f"several scenes ({', '.join(named)})" if named else "no scene is named"


def contains_answer(reply: str, gold: str) -> bool:
    """Return whether the printed answer occurs anywhere in the reply ("A" in "Answer"), as published."""
    return bool(gold) and gold in visible_answer(reply)


def _begins(text: str, letters: str, rule: str) -> ParsedChoice:
    """Return the scene that ``text`` begins with; a rule without a scene if several do, "" if none does."""
    text = text.strip()
    bare = _FIRST_LETTER.match(text)
    first = next(_mentions(text), None)
    if bare:
        letter, end = bare[1], bare.end()
    elif first is not None and not first.start and (_ENDS.match(text, first.end) or _OR.match(text, first.end)):
        letter, end = first.letter, first.end
    else:
        return None, ""
    more = _OR.match(text, end)
    if more and (_BARE.match(text, more.end()) or any(m.start == more.end() for m in _mentions(text))):
        return None, "several scenes at the beginning"
    return _there(letter, letters, rule)


def _there(letter: str, letters: str, rule: str) -> ParsedChoice:
    return (letter, rule) if letter in letters else (None, f"there is no Scene {letter}")


def _mentions(text: str) -> Iterator[_Mention]:
    for match in _MENTION.finditer(text):
        if match["named"]:
            if match["named"] == "a" and re.match(r"\s+\w", text[match.end() : match.end() + 3]):
                continue  # "the scene a man is in"
            letter = _letter(match["named"])
        elif match["ordinal"]:
            if not (match["the"] or match["what"]):
                continue
            letter = _letter(match["ordinal"])
        elif match["bracketed"].isupper():
            letter = match["bracketed"]
        else:
            continue
        if not _NEGATED.search(text[max(0, match.start() - _NEAR) : match.start()]):
            yield _Mention(match.start(), match.end(), letter)


def _letter(name: str) -> str:
    return _LETTER_OF.get(name.lower(), name.upper())
