"""What an answer says: which option it chooses, and whether it keeps to the model's own answer or takes a shown one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.base import Record
from benchmarks.mmkc_bench.answer_sentences import (
    asserted,
    committed,
    fuller,
    has_content_of,
    same_content,
    says_something,
)
from benchmarks.mmkc_bench.constants import LETTERS, TEXT, form_of, letter_key
from benchmarks.mmkc_bench.options import alike
from benchmarks.text.answer_equality import same_value
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer

Said = tuple[str | None, str]
"""A letter or a label, None where there is none, and the rule by which it was found."""

References = Mapping[str, Sequence[str]]

_LONGEST = 20_000
_NEAR = 60
"""Characters before a letter in which it can be negated."""

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
    """Return the option that ``answer`` chooses by its letter: one that is marked, else before an option's text or in brackets.

    A letter within a word, and the article A, are no letters of options. Several different ones choose none.
    """
    said = structured_answer(answer).strip()[:_LONGEST]
    marked = marked_letter(said, "".join(LETTERS))
    if marked is not None:
        return marked
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


def question_of(record: Record) -> str:
    """Return the question with whatever an answer to it may repeat without saying anything: what it is about, where that is
    not what is asked for."""
    strata = record.instance.strata
    about = strata.get("instance", "") if strata.get("dataset") == "EK" else ""
    return f"{record.instance.question} {about}"


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


def is_counter(own: str, condition: str, references: References, question: str) -> bool:
    """Whether the model's own answer, from :func:`own_answer`, already is what the evidence of ``condition`` says."""
    if form_of(condition) == "mc":
        return own in references.get(letter_key(TEXT), ())
    return any(_gives(_stated(own, question), counter, question) for counter in references.get(TEXT, ()))


def label(answer: str, own: str, condition: str, references: References, question: str) -> Said:
    """Return ORIGINAL, COUNTER or IRRELEVANT for an answer that is not empty, beside the model's ``own`` answer.

    None where a multiple choice has not one letter.
    """
    if form_of(condition) == "open":
        return _open_label(structured_answer(answer), structured_answer(own), references.get(TEXT, ()), question)
    chosen, rule = letter(answer)
    if chosen is None:
        return None, rule
    if chosen == own:
        return "ORIGINAL", rule
    return "COUNTER" if chosen in references.get(letter_key(TEXT), ()) else "IRRELEVANT", rule


def _open_label(answer: str, own: str, counters: Sequence[str], question: str) -> Said:
    if same_value(answer, own):
        return "ORIGINAL", "the same as the model's own answer"
    for counter in counters:
        if same_value(answer, counter):
            return "COUNTER", f"the same as {counter[:40]!r}"
    own = _stated(own, question)
    is_own, taken = False, []
    for text in (asserted(answer), committed(asserted(answer))):
        is_own = alike(text, own) or same_content(text, own, question)
        taken = [counter for counter in counters if _gives(text, counter, question)]
        if is_own != bool(taken):
            break
    if is_own and taken:
        fullest = {fuller(text, own, counter, question) for counter in taken}
        if fullest == {own}:
            return "ORIGINAL", "has the words of the model's own answer"
        if len(fullest) == 1 and (value := fullest.pop()) is not None:
            return "COUNTER", f"has the words of {value[:40]!r}"
        return "IRRELEVANT", "has the words of the model's own answer and of another"
    if is_own:
        return "ORIGINAL", "gives what the model's own answer gives, or a part of it"
    if taken:
        return "COUNTER", f"has the words of {taken[0][:40]!r}, or some of them alone"
    return "IRRELEVANT", "neither the model's own answer nor one that is shown"


def _stated(own: str, question: str) -> str:
    """What the model's own answer asserts; the whole where it does nothing but reject ("You must not park here")."""
    stated = asserted(own)
    return stated if says_something(stated, question) else own


def _gives(text: str, counter: str, question: str) -> bool:
    """Return whether ``text`` gives the short value ``counter``, in its words or in those around it."""
    return alike(text, counter) or has_content_of(text, counter, question)


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
