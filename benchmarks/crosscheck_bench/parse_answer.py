"""What a reply answers: as it is printed, and by the final answer in it. Pure functions of text that may be hostile."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from benchmarks.crosscheck_bench.constants import LETTERS
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer

Form = str
"""``option``, ``yes/no`` or ``open``, as ``Instance.strata["form"]`` has it."""

_BOXED = re.compile(r"\\boxed\s{0,8}\{([^{}]{0,500}(?:\{[^{}]{0,500}\}[^{}]{0,500})?)\}")
_TAGGED = re.compile(r"<answer>([^<]{0,500})</answer>", re.IGNORECASE)
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s{0,8}\{([^{}]*)\}")
_SAID = re.compile(
    r"(?:\bfinal answer\b|\banswer\b|\bcorrect (?:option|choice)\b|\boption output\b)[*_\s]{0,8}(?::|\bis\b:?)[*_ \t]{0,8}",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*(.{1,500})")
"""What is left of a line, or else the next that is not blank."""

_AROUND = " \t\n\r\"'`*_.,;:!“”‘’«»"
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"(?:option|choice|answer)?\s{0,4}[(\[]?([A-J])(?![^\W_])([)\]]?)\s{0,4}(.?)", re.IGNORECASE)
_BRACKETED = re.compile(r"[(\[]([A-J])[)\]]")
_REASON = re.compile(r"(?:because|since|as|is|which|for)\b", re.IGNORECASE)
_NOT_WORDS = frozenset("AI")
"""Letters that are words of their own."""


def normalised(text: str) -> str:
    """Appendix D: lower case, stripped, Unicode-normalised (NFKC is our choice)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).strip()


def printed(reply: str, gold: str) -> bool:
    """Whether the whole reply is the answer, after the paper's normalisation."""
    return normalised(reply) == normalised(gold)


def extracted(reply: str, form: Form, options: Sequence[str] = ()) -> tuple[str | None, str]:
    """The final answer of a reply and the rule that found it; None where there is none.

    A letter of ``options``, Yes or No, or a text. Reasoning in ``<think>`` or ``<thinking>`` is not read. The answer is what
    stands in the last ``\\boxed{}`` or ``<answer>``, after the last "answer:" or "answer is"; or else it is the whole last
    line, the first words, the first words of the last line, or (a letter) the only one in brackets.
    """
    answer = structured_answer(visible_answer(reply))
    marked = _marked(answer)
    if form == "open":
        found, rule = marked or (answer, "whole reply")
        return _bare(found) or None, rule

    def read(text: str) -> str | None:
        return _letter(text, options) if form == "option" else _yes_no(text)

    chosen = marked_letter(answer, LETTERS[: len(options)]) if form == "option" else None
    if chosen is not None and (chosen[0] is not None or marked is None):
        return chosen
    last = next((line for line in reversed(answer.splitlines()) if line.strip(_AROUND)), "")
    alone = last if len(_WORD.findall(last)) == 1 else ""
    places = [marked] if marked else [(alone, "last line"), (answer, "first words"), (last, "last line")]
    for text, rule in places:
        if (said := read(text)) is not None:
            return said, rule
    if form == "option":
        letters = {letter for letter in _BRACKETED.findall(answer) if letter in LETTERS[: len(options)]}
        if len(letters) == 1:
            return letters.pop(), "only bracketed letter"
    return (
        None,
        f"no {'letter' if form == 'option' else 'yes or no'} {marked[1] if marked else 'at its beginning or end'}",
    )


def same_text(found: str, gold: str) -> bool:
    """Whether two texts are one after the paper's normalisation, without quotes and punctuation around them."""
    return normalised(_bare(found)) == normalised(_bare(gold))


def _marked(answer: str) -> tuple[str, str] | None:
    """What the reply marks as its final answer: the mark that stands last."""
    found = [(match.start(), _TEXT_COMMAND.sub(r"\1", match[1]), "boxed") for match in _BOXED.finditer(answer)]
    found += [(match.start(), match[1], "<answer>") for match in _TAGGED.finditer(answer)]
    for match in _SAID.finditer(answer):
        line = _LINE.match(answer, match.end())
        if line is not None:
            found.append((match.start(), line[1], "after 'answer'"))
    filled = [(text, rule) for _, text, rule in sorted(found) if text.strip(_AROUND)]
    return filled[-1] if filled else None


def _bare(text: str) -> str:
    text = text.strip(_AROUND)
    while len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
        text = text[1:-1].strip(_AROUND)
    return text


def _yes_no(text: str) -> str | None:
    first = _WORD.search(text)
    word = first[0].casefold() if first else ""
    return word.capitalize() if word in ("yes", "no") else None


def _letter(text: str, options: Sequence[str]) -> str | None:
    """The letter that ``text`` begins with, or that of the option whose text it is."""
    letters = LETTERS[: len(options)]
    told = normalised(_bare(text))
    same = [letter for letter, option in zip(letters, options, strict=False) if normalised(_bare(option)) == told]
    if len(same) == 1:
        return same[0]
    text = text.lstrip(_AROUND)
    found = _LETTER.match(text)
    if found is None or found[1].upper() not in letters:
        return None
    letter, closed, after = found[1].upper(), found[2], found[3]
    if closed or not after or not after.isalnum():
        return letter
    # A letter before a word: "B because ...", but neither "A red shoe" nor "I think".
    rest = text[found.start(3) :]
    return letter if found[1].isupper() and (letter not in _NOT_WORDS or _REASON.match(rest)) else None
