"""Parser of the option letter that a reply marks as its choice, shared by the multiple-choice benchmarks.

The functions are pure and safe for hostile text. Other choices ("B 1972", "Scene 2") are left to each benchmark's own rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json

LetterChoice = tuple[str | None, str]
"""A letter, or None if the marks contradict each other, and the rule that decided."""

_LONGEST = 20_000
_NEAR = 40
_FENCED = re.compile(r"```(?:json)?[ \t]*\r?\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_FIELDS = ("finalanswer", "answer", "choice", "option", "letter", "selectedoption", "selection", "prediction", "label")

_OPEN, _CLOSE = r"[\"'`*_(\[{<]*", r"[\"'`*_)\]}>]*"
_LETTER = rf"{_OPEN}([A-J]){_CLOSE}"
_NOUN = r"(?:option|choice|answer|letter|scene|input)"
_ENDS = r"(?![^\W_])(?!['’])(?=\s*(?:$|[.,;:!(\n]|[-–—]\s|because\b|since\b|as\b))"
_ALONE = re.compile(rf"{_LETTER}[.:,;!]*{_CLOSE}")
_BOXED = re.compile(
    r"\\boxed\s{0,8}\{\s{0,8}(?:\\(?:text|mathrm|mathbf|textbf)\s{0,8}\{)?\s{0,8}\(?([A-J])\)?\s{0,8}[}.:)]"
)
_TAGGED = re.compile(rf"<answer>\s{{0,8}}{_LETTER}[.:)]?(?:\s[^<]{{0,300}})?</answer>", re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"\b(?i:answer|option|choice|letter|selection)\b[\"'`*_]*(?:\s+(?i:is|would be|should be|must be)\b|\s{0,3}:)[*_:]*\s{0,3}"
    rf"(?:(?:the\s)?(?i:{_NOUN})\s{{1,3}})?{_LETTER}{_ENDS}"
    r"|\b(?i:choose|chose|select|selected|pick|picked|go with|going with|opt for)\s+"
    rf"(?:(?:the\s)?(?i:{_NOUN})\s{{1,3}})?{_LETTER}{_ENDS}",
    re.MULTILINE,
)
_CALLED_RIGHT = re.compile(
    rf"\b(?i:{_NOUN})\s{{1,3}}{_LETTER}\s+(?:is|would be|must be|seems|appears)\s+"
    r"(?:(?:to|be|the|my|a|most|very|clearly|probably|likely)\s+){0,4}"
    r"(?:correct|right|best|accurate|appropriate|answer|choice)\b"
)
_NEGATED = re.compile(r"(?:\bnot|n['’]t|\bnever|\bneither|\bnor)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)
_FIRST = re.compile(_LETTER)
_AND = re.compile(rf"\s*(?:,|/|&|\bor\b|\band\b)\s*(?:(?:or|and|{_NOUN})\s+)*{_LETTER}(?![^\W_])(?!['’])")
_LISTED = re.compile(r"^[ \t*_]*[(\[]?([A-J])[)\].:](?=\s*\S)", re.MULTILINE)


def structured_answer(reply: str) -> str:
    """Return the answer field of ``reply`` if it is a JSON object or its last code fence contains one; else ``reply``."""
    fences = _FENCED.findall(reply[:_LONGEST])
    try:
        value = parse_json(fences[-1] if fences else reply, _LONGEST)
    except OutsideJSONError:
        return reply
    if not isinstance(value, dict):
        return reply
    fields = {re.sub(r"[\W_]", "", key).casefold(): field for key, field in value.items()}
    answer = next((fields[name] for name in _FIELDS if name in fields), None)
    if isinstance(answer, list) and all(isinstance(item, str) for item in answer):
        return ", ".join(answer)
    return str(answer) if isinstance(answer, str | int | float) else reply


def marked_letter(reply: str, letters: str) -> LetterChoice | None:
    r"""Return the letter that ``reply`` marks as its choice among ``letters``; None if it marks none.

    The rules, in order: a reply that is only a letter, or the last ``\boxed{}`` or ``<answer>``; the last letter that is
    announced ("the answer is C", "I choose C") or called correct ("option C is correct"); a letter alone on the first or the
    last line. Letters joined by "or" or "and", two letters called correct, and a list of options mark several. A lower-case
    letter counts only as the whole reply.
    """
    text = reply.strip()[:_LONGEST]
    bare = _ALONE.fullmatch(text) or _ALONE.fullmatch(text.upper())
    if bare:
        return _among(bare[1], letters, "the letter alone")
    marks = [(mark.start(), mark[1]) for pattern in (_BOXED, _TAGGED) for mark in pattern.finditer(text)]
    if marks:
        return _among(max(marks)[1], letters, "the marked letter")
    first = _FIRST.match(text)
    more = first and _AND.match(text, first.end())
    if first and more and {first[1], more[1]} <= set(letters):
        return _several((first[1], more[1]))
    return _announced(text, letters) or _on_a_line(text, letters) or _listed(text, letters)


def _announced(text: str, letters: str) -> LetterChoice | None:
    """Return the last letter that is announced or called correct, or the several letters."""
    affirmed_letters = {mark[1] for mark in _affirmed(_CALLED_RIGHT, text)}
    marks = [(mark.end(), mark[1] or mark[2]) for mark in _affirmed(_ANNOUNCED, text)]
    last = max(marks, default=(-1, ""))
    for mark in _affirmed(_CALLED_RIGHT, text):
        if mark.start() > last[0]:
            return (
                _several(affirmed_letters)
                if len(affirmed_letters) > 1
                else _among(mark[1], letters, "the letter that is called right")
            )
    if not last[1]:
        return None
    more = _AND.match(text, last[0])
    if more and more[1] in letters:
        return _several((last[1], more[1]))
    return _among(last[1], letters, "the letter that is announced")


def _on_a_line(text: str, letters: str) -> LetterChoice | None:
    """Return the letter that is alone on the first or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lone_letters = [mark[1] for line in (lines[0], lines[-1]) if (mark := _ALONE.fullmatch(line))] if lines else []
    if len(set(lone_letters)) > 1:
        return _several(lone_letters)
    return _among(lone_letters[0], letters, "the letter alone on a line") if lone_letters else None


def _listed(text: str, letters: str) -> LetterChoice | None:
    """Return the contradiction of a reply that lists several options."""
    listed = {letter for letter in _LISTED.findall(text) if letter in letters}
    return _several(listed) if len(listed) > 1 else None


def _affirmed(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of ``pattern`` without a negation right before them."""
    for mark in pattern.finditer(text):
        if not _NEGATED.search(text[max(0, mark.start() - _NEAR) : mark.start()]):
            yield mark


def _among(letter: str, letters: str, rule: str) -> LetterChoice:
    return (letter, rule) if letter in letters else (None, f"there is no option {letter}")


def _several(letters: Iterable[str]) -> LetterChoice:
    return None, f"several letters ({', '.join(sorted(set(letters)))})"
