"""Which scene a reply chooses: strictly, and as the published evaluation counts. Pure functions of hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.contra4.constants import LETTERS
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer

Said = tuple[str | None, str]
"""A letter, None where there is none, and the rule by which it was found or why there is none."""

_LONGEST = 20_000
_NEAR = 60
"""Characters before a scene in which it can be negated."""

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
"""What stands behind a choice that a reply begins with; "Scene A is calm" describes and chooses nothing yet."""
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


def choice(reply: str, letters: str) -> Said:
    """The scene that ``reply`` chooses among ``letters``; none where it names none, several, or one that is not there.

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
    alone = _ALONE.fullmatch(text)
    if alone:
        return _there(_letter(alone["said"]), letters, "alone")
    announced = _ANNOUNCED.findall(text)
    if announced:
        said, rule = _begins(announced[-1], letters, "announced")
        if said is not None:
            return said, rule
    said, rule = _begins(text, letters, "at the beginning")
    if said is not None or rule:
        return said, rule
    named = sorted({mention.letter for mention in _mentions(text)})
    if len(named) == 1:
        return _there(named[0], letters, "the only one named")
    return None, f"several scenes ({', '.join(named)})" if named else "no scene is named"


def contains(reply: str, gold: str) -> bool:
    """As the published evaluation counts: whether the answer as it is printed stands anywhere in the reply ("A" in "Answer")."""
    return bool(gold) and gold in visible_answer(reply)


def _begins(text: str, letters: str, rule: str) -> Said:
    """The scene that ``text`` begins with; a rule without a scene where others stand beside it, "" where there is none."""
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


def _there(letter: str, letters: str, rule: str) -> Said:
    return (letter, rule) if letter in letters else (None, f"there is no Scene {letter}")


def _mentions(text: str) -> Iterator[_Mention]:
    for found in _MENTION.finditer(text):
        if found["named"]:
            if found["named"] == "a" and re.match(r"\s+\w", text[found.end() : found.end() + 3]):
                continue  # "the scene a man is in"
            letter = _letter(found["named"])
        elif found["ordinal"]:
            if not (found["the"] or found["what"]):
                continue
            letter = _letter(found["ordinal"])
        elif found["bracketed"].isupper():
            letter = found["bracketed"]
        else:
            continue
        if not _NEGATED.search(text[max(0, found.start() - _NEAR) : found.start()]):
            yield _Mention(found.start(), found.end(), letter)


def _letter(said: str) -> str:
    return _LETTER_OF.get(said.lower(), said.upper())
