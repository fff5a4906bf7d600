"""The answer in a reply, as the whole reply or as its final answer. Pure functions of text that may be hostile."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from benchmarks.crosscheck_bench.crosscheck_constants import LETTERS
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer

Form = str
"""``option``, ``yes/no`` or ``open``, as in ``Instance.strata["form"]``."""

_BOXED = re.compile(r"\\boxed\s{0,8}\{([^{}]{0,500}(?:\{[^{}]{0,500}\}[^{}]{0,500})?)\}")
_TAGGED = re.compile(r"<answer>([^<]{0,500})</answer>", re.IGNORECASE)
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s{0,8}\{([^{}]*)\}")
_ANNOUNCED = re.compile(
    r"(?:\bfinal answer\b|\banswer\b|\bcorrect (?:option|choice)\b|\boption output\b)[*_\s]{0,8}(?::|\bis\b:?)[*_ \t]{0,8}",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*(.{1,500})")
"""The rest of a line, or the next line that is not blank."""

_AROUND = " \t\n\r\"'`*_.,;:!“”‘’«»"
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"(?:option|choice|answer)?\s{0,4}[(\[]?([A-J])(?![^\W_])([)\]]?)\s{0,4}(.?)", re.IGNORECASE)
_BRACKETED = re.compile(r"[(\[]([A-J])[)\]]")
_REASON = re.compile(r"(?:because|since|as|is|which|for)\b", re.IGNORECASE)
_NOT_WORDS = frozenset("AI")
"""Letters that are also English words."""


def normalise(text: str) -> str:
    """Return ``text`` as Appendix D normalises it: lower case, stripped, Unicode-normalised (NFKC is our choice)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).strip()


def equals_whole_reply(reply: str, gold: str) -> bool:
    """Return whether the whole reply is the answer, after the paper's normalisation."""
    return normalise(reply) == normalise(gold)


def extract_answer(reply: str, form: Form, options: Sequence[str] = ()) -> tuple[str | None, str]:
    r"""Return the final answer of a reply and the rule that found it; the answer is None if there is none.

    The answer is a letter of ``options``, Yes or No, or a text. Reasoning in ``<think>`` or ``<thinking>`` is skipped.
    The answer is the content of the last ``\boxed{}`` or ``<answer>``, or what follows the last "answer:" or "answer
    is". Failing that, it is the whole last line, the first words, the first words of the last line, or (for a letter)
    the only letter in brackets.
    """
    answer = structured_answer(visible_answer(reply))
    marked = _marked_answer(answer)
    if form == "open":
        final, rule = marked or (answer, "whole reply")
        return _strip_punctuation(final) or None, rule

    def read(text: str) -> str | None:
        return _letter(text, options) if form == "option" else _yes_no(text)

    chosen = marked_letter(answer, LETTERS[: len(options)]) if form == "option" else None
    if chosen is not None and (chosen[0] is not None or marked is None):
        return chosen
    last = next((line for line in reversed(answer.splitlines()) if line.strip(_AROUND)), "")
    lone_line = last if len(_WORD.findall(last)) == 1 else ""
    places = [marked] if marked else [(lone_line, "last line"), (answer, "first words"), (last, "last line")]
    for text, rule in places:
        if (value := read(text)) is not None:
            return value, rule
    if form == "option":
        letters = {letter for letter in _BRACKETED.findall(answer) if letter in LETTERS[: len(options)]}
        if len(letters) == 1:
            return letters.pop(), "only bracketed letter"
    return (
        None,
        f"no {'letter' if form == 'option' else 'yes or no'} {marked[1] if marked else 'at its beginning or end'}",
    )


def same_text(answer: str, gold: str) -> bool:
    """Return whether two texts are equal after the paper's normalisation, ignoring quotes and punctuation around them."""
    return normalise(_strip_punctuation(answer)) == normalise(_strip_punctuation(gold))


def _marked_answer(answer: str) -> tuple[str, str] | None:
    """Return the text that the reply marks as its final answer, by its last mark, and the rule that found it."""
    marks = [(match.start(), _TEXT_COMMAND.sub(r"\1", match[1]), "boxed") for match in _BOXED.finditer(answer)]
    marks += [(match.start(), match[1], "<answer>") for match in _TAGGED.finditer(answer)]
    for match in _ANNOUNCED.finditer(answer):
        line = _LINE.match(answer, match.end())
        if line is not None:
            marks.append((match.start(), line[1], "after 'answer'"))
    filled = [(text, rule) for _, text, rule in sorted(marks) if text.strip(_AROUND)]
    return filled[-1] if filled else None


def _strip_punctuation(text: str) -> str:
    text = text.strip(_AROUND)
    while len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
        text = text[1:-1].strip(_AROUND)
    return text


def _yes_no(text: str) -> str | None:
    first = _WORD.search(text)
    word = first[0].casefold() if first else ""
    return word.capitalize() if word in ("yes", "no") else None


def _letter(text: str, options: Sequence[str]) -> str | None:
    """Return the letter that ``text`` begins with, or that of the option with this text."""
    letters = LETTERS[: len(options)]
    normal = normalise(_strip_punctuation(text))
    same = [
        letter
        for letter, option in zip(letters, options, strict=False)
        if normalise(_strip_punctuation(option)) == normal
    ]
    if len(same) == 1:
        return same[0]
    text = text.lstrip(_AROUND)
    match = _LETTER.match(text)
    if match is None or match[1].upper() not in letters:
        return None
    letter, closing_mark, after = match[1].upper(), match[2], match[3]
    if closing_mark or not after or not after.isalnum():
        return letter
    # A letter before a word counts in "B because ...", but not in "A red shoe" or "I think".
    rest = text[match.start(3) :]
    return letter if match[1].isupper() and (letter not in _NOT_WORDS or _REASON.match(rest)) else None
