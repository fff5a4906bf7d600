"""What an answer says: which option it chooses, and whether it keeps to the model's own answer or takes a shown one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.answers import visible_answer
from benchmarks.base import Record
from benchmarks.mmkc_bench.options import alike, stands_in
from benchmarks.mmkc_bench.terms import TEXT, form_of, letter_key
from benchmarks.values import same_value

Said = tuple[str | None, str]
"""A letter or a label, None where there is none, and the rule by which it was found."""

References = Mapping[str, Sequence[str]]

_LONGEST = 20_000
_NEAR = 60
"""Characters before a letter in which it can be negated."""

_ALONE = re.compile(r"[\s\"'`*_(\[{<]*([A-Da-d])[\s\"'`*_)\]}>.:,;!]*")
_IN_PLACE = re.compile(
    # At the beginning of a line before an option's text: "B. 1972", "(C) red", "**D**: blue".
    r"^[ \t\"'`*_>\-]*(?:\(([A-D])\)|\[([A-D])\]|([A-D])[*_`]*[.):](?!\w))"
    # At the beginning of the answer before more: "B 1972", "C, as it says". After an A only what follows no article.
    r"|\A(?:([B-D])(?=\s)|([A-D])(?=,|\s+[-–—]\s)|(A)(?=\s+(?:\d|is\b|because\b)))(?!\W*(?:(?:or|and)\W+)?[A-D]\b)"
    # In brackets anywhere.
    r"|\(([A-D])\)|\[([A-D])\]|\{([A-D])\}|>([A-D])<"
    # After a word that announces it.
    r"|\b(?:answer|option|choice|choose|select|pick|letter)\b(?:(?: is| would be| should be)?:?)\s*[\"'`*_(\[]*([A-D])\b(?!['’])"
    r"(?=\W*(?:$|[.,;:!)\]*\n]|because|since|as\b))"
    # As all that is said to be so: "The correct one is C."
    r"|\bis:?\s*[\"'`*_(\[]*([A-D])[\"'`*_)\]]*(?=\s*(?:[.!;]|$))",
    re.MULTILINE | re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bneither|\bnor)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)

_OFFICIAL = re.compile(r"[A-Da-d]")


def letter(answer: str) -> Said:
    """The option that ``answer`` chooses by its letter: a letter alone, before an option's text, in brackets, or announced.

    A letter within a word, and the article A, are no letters of options. Several different ones choose none.
    """
    said = answer.strip()[:_LONGEST]
    alone = _ALONE.fullmatch(said)
    if alone:
        return alone[1].upper(), "the letter alone"
    found = {}
    for match in _IN_PLACE.finditer(said):
        group = next(number for number, one in enumerate(match.groups(), 1) if one)
        one, before = match[group], said[: match.start(group)]
        # Small letters are words ("a") except between brackets.
        if (one.isupper() or before.endswith(("(", "["))) and not _NEGATED.search(
            said[max(0, match.start() - _NEAR) : match.start()]
        ):
            found[one.upper()] = " ".join(match[0].split())
    if len(found) == 1:
        ((one, words),) = found.items()
        return one, f"the letter in {words[:40]!r}"
    return None, f"several letters ({', '.join(sorted(found))})" if found else "no letter of an option"


def official_letter(prediction: str) -> str | None:
    """The published code's letter: the first character A to D anywhere, in either case ("The answer is C" is A)."""
    found = _OFFICIAL.search(prediction)
    return found[0].upper() if found else None


def own_answer(record: Record) -> Said:
    """The model's own answer for ``record``, as far as it can be compared: its letter, or its words; else None and why not."""
    if record.basis is None:
        return None, "the run has no answer of the original setting to this question"
    if record.basis.finish_reason == "error":
        return None, "the original setting's answer ended in an error"
    said = visible_answer(record.basis.text)
    if not said:
        return None, "the original setting's answer is empty"
    if form_of(record.instance.condition) == "open":
        return said, "its words"
    own, rule = letter(said)
    return own, rule if own else f"the original setting's answer has {rule}"


def is_counter(own: str, condition: str, references: References) -> bool:
    """Whether the model's own answer, from :func:`own_answer`, already is what the evidence of ``condition`` says."""
    if form_of(condition) == "mc":
        return own in references.get(letter_key(TEXT), ())
    return any(alike(own, counter) for counter in references.get(TEXT, ()))


def label(answer: str, own: str, condition: str, references: References) -> Said:
    """ORIGINAL, COUNTER or IRRELEVANT for an answer that is not empty, beside the model's ``own`` answer.

    None where a multiple choice has not one letter.
    """
    if form_of(condition) == "open":
        return _open_label(answer, own, references.get(TEXT, ()))
    chosen, rule = letter(answer)
    if chosen is None:
        return None, rule
    if chosen == own:
        return "ORIGINAL", rule
    return "COUNTER" if chosen in references.get(letter_key(TEXT), ()) else "IRRELEVANT", rule


def _open_label(answer: str, own: str, counters: Sequence[str]) -> Said:
    if same_value(answer, own):
        return "ORIGINAL", "the same as the model's own answer"
    for counter in counters:
        if same_value(answer, counter):
            return "COUNTER", f"the same as {counter[:40]!r}"
    is_own = alike(answer, own)
    taken = [counter for counter in counters if alike(answer, counter)]
    if is_own and taken:
        # The fuller one, where the other is but a part of it ("soft drink", "carbonated soft drink").
        inner = [counter for counter in taken if stands_in(own, counter) and stands_in(counter, answer)]
        if inner:
            return "COUNTER", f"has the words of {inner[0][:40]!r}"
        if all(stands_in(counter, own) for counter in taken) and stands_in(own, answer):
            return "ORIGINAL", "has the words of the model's own answer"
        return "IRRELEVANT", "has the words of the model's own answer and of another"
    if is_own:
        return "ORIGINAL", "has the words of the model's own answer, or some of them alone"
    if taken:
        return "COUNTER", f"has the words of {taken[0][:40]!r}, or some of them alone"
    return "IRRELEVANT", "neither the model's own answer nor one that is shown"


def official_label(answer: str, original: str, counters: Sequence[str]) -> str | None:
    """Return the published evaluation's label of one multiple choice that its filter lets pass.

    ``answer`` and ``original`` are the predictions as they stand, ``counters`` the letters that agree with the evidence. None:
    one of the two has no letter, and the pair is skipped.
    """
    before, after = official_letter(original), official_letter(answer)
    if before is None or after is None:
        return None
    if before == after:
        return "ORIGINAL"
    return "COUNTER" if after in counters else "IRRELEVANT"
