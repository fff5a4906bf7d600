"""The meaning of an answer: the option it chooses, and whether it keeps to the model's own answer or adopts another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.mmkc_bench.mmkc_answer_sentences import (
    contains_value,
    has_content,
    more_complete_value,
    remove_rejected,
    remove_reported,
    same_content,
)
from benchmarks.mmkc_bench.mmkc_constants import LETTERS, TEXT, form_of, letter_key, truth_key
from benchmarks.mmkc_bench.mmkc_options import overlaps
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.option_letter import marked_letter, structured_answer
from benchmarks.values import compare
from benchmarks.vocabulary import Record

ParsedAnswer = tuple[str | None, str]
"""A letter or a label, or None if there is none, and the rule that found it."""

References = Mapping[str, Sequence[str]]

_LONGEST = 20_000
_NEAR = 60
"""The number of characters before a letter in which a negation applies to it."""

_IN_PLACE = re.compile(
    # At the beginning of a line before an option's text: "B. 1972", "(C) red", "**D**: blue".
    r"^[ \t\"'`*_>\-]*(?:\(([A-D])\)|\[([A-D])\]|([A-D])[*_`]*[.):](?!\w))"
    # At the beginning of the answer before more text: "B 1972", "C, as it says". An A must not read as an article.
    r"|\A(?:([B-D])(?=\s)|([A-D])(?=,|\s+[-–—]\s)|(A)(?=\s+(?:\d|is\b|because\b)))(?!\W*(?:(?:or|and)\W+)?[A-D]\b)"
    # In brackets anywhere.
    r"|\(([A-D])\)|\[([A-D])\]|\{([A-D])\}|>([A-D])<"
    # After a word that announces it.
    r"|\b(?:answer|option|choice|choose|select|pick|letter)\b(?:(?: is| would be| should be)?:?)\s*[\"'`*_(\[]*([A-D])\b(?!['’])"
    r"(?=\W*(?:$|[.,;:!)\]*\n]|because|since|as\b))"
    # After "is", up to the end of the sentence: "The correct one is C."
    r"|\bis:?\s*[\"'`*_(\[]*([A-D])[\"'`*_)\]]*(?=\s*(?:[.!;]|$))",
    re.MULTILINE | re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\bnot|n't|\bnever|\bneither|\bnor)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)

_OFFICIAL = re.compile(r"[A-Da-d]")


def chosen_letter(answer: str) -> ParsedAnswer:
    """Return the option that ``answer`` chooses: a marked letter, or one before an option's text or in brackets.

    A letter within a word and the article A are not option letters. Several different letters choose none.
    """
    text = structured_answer(answer).strip()[:_LONGEST]
    marked = marked_letter(text, "".join(LETTERS))
    if marked is not None:
        return marked
    phrases = {}
    for match in _IN_PLACE.finditer(text):
        group = next(number for number, character in enumerate(match.groups(), 1) if character)
        character, before = match[group], text[: match.start(group)]
        # Lower-case letters are words ("a") unless bracketed.
        if (character.isupper() or before.endswith(("(", "["))) and not _NEGATED.search(
            text[max(0, match.start() - _NEAR) : match.start()]
        ):
            phrases[character.upper()] = " ".join(match[0].split())
    if len(phrases) == 1:
        ((character, words),) = phrases.items()
        return character, f"the letter in {words[:40]!r}"
    return None, f"several letters ({', '.join(sorted(phrases))})" if phrases else "no letter of an option"


def official_letter(prediction: str) -> str | None:
    """Return the published code's letter: the first character A to D anywhere, in either case ("The answer is C" is A)."""
    match = _OFFICIAL.search(prediction)
    return match[0].upper() if match else None


def question_and_subject(record: Record) -> str:
    """Return the question with whatever an answer may repeat from it without content.

    The subject counts unless it is itself what the question asks for.
    """
    strata = record.instance.strata
    subject = strata.get("instance", "") if strata.get("dataset") == "EK" else ""
    return f"{record.instance.question} {subject}"


def own_answer(record: Record) -> ParsedAnswer:
    """Return the model's own answer for ``record``: its letter or its words, or None and the reason if not comparable."""
    if record.basis is None:
        return None, "the run has no answer of the original setting to this question"
    if record.basis.finish_reason == "error":
        return None, "the original setting's answer ended in an error"
    text = visible_answer(record.basis.text)
    if not text:
        return None, "the original setting's answer is empty"
    if form_of(record.instance.condition) == "open":
        return text, "its words"
    own_letter, rule = chosen_letter(text)
    return own_letter, rule if own_letter else f"the original setting's answer has {rule}"


def is_true(answer: str, record: Record) -> ParsedAnswer:
    """Return CORRECT or WRONG for a non-empty answer without evidence, by what is true of the image; None without a letter."""
    condition, references = record.instance.condition, record.instance.references
    truth = (*references.get(truth_key(condition), ()), "")[0]
    label, rule = label_answer(answer, truth, condition, references, question_and_subject(record))
    return (label and ("CORRECT" if label == "ORIGINAL" else "WRONG")), rule.replace("model's own", "true")


def is_counter(own: str, condition: str, references: References, question: str) -> bool:
    """Return whether the model's own answer, from :func:`own_answer`, is already what the evidence of ``condition`` says."""
    if form_of(condition) == "mc":
        return own in references.get(letter_key(TEXT), ())
    return any(_gives_value(_own_assertion(own, question), counter, question) for counter in references.get(TEXT, ()))


def label_answer(answer: str, own: str, condition: str, references: References, question: str) -> ParsedAnswer:
    """Return ORIGINAL, COUNTER or IRRELEVANT for a non-empty answer, compared with the model's ``own`` answer.

    None if a multiple-choice answer does not have exactly one letter.
    """
    if form_of(condition) == "open":
        return _open_label(structured_answer(answer), structured_answer(own), references.get(TEXT, ()), question)
    chosen_option, rule = chosen_letter(answer)
    if chosen_option is None:
        return None, rule
    if chosen_option == own:
        return "ORIGINAL", rule
    return "COUNTER" if chosen_option in references.get(letter_key(TEXT), ()) else "IRRELEVANT", rule


def _open_label(answer: str, own: str, counters: Sequence[str], question: str) -> ParsedAnswer:
    if compare(answer, own, question).verdict == "same":
        return "ORIGINAL", "the same as the model's own answer"
    for counter in counters:
        if compare(answer, counter, question).verdict == "same":
            return "COUNTER", f"the same as {counter[:40]!r}"
    own = _own_assertion(own, question)
    is_own, taken_values = False, []
    for text in (remove_rejected(answer), remove_reported(remove_rejected(answer))):
        is_own = overlaps(text, own, question) or same_content(text, own, question)
        taken_values = [counter for counter in counters if _gives_value(text, counter, question)]
        if is_own != bool(taken_values):
            break
    if is_own and taken_values:
        fullest = {more_complete_value(text, own, counter, question) for counter in taken_values}
        if fullest == {own}:
            return "ORIGINAL", "has the words of the model's own answer"
        if len(fullest) == 1 and (value := fullest.pop()) is not None:
            return "COUNTER", f"has the words of {value[:40]!r}"
        return "IRRELEVANT", "has the words of the model's own answer and of another"
    if is_own:
        return "ORIGINAL", "gives what the model's own answer gives, or a part of it"
    if taken_values:
        return "COUNTER", f"has the words of {taken_values[0][:40]!r}, or some of them alone"
    return "IRRELEVANT", "neither the model's own answer nor one that is shown"


def _own_assertion(own: str, question: str) -> str:
    """Return what the model's own answer asserts, or all of it if it only rejects ("You must not park here")."""
    stated = remove_rejected(own)
    return stated if has_content(stated, question) else own


def _gives_value(text: str, counter: str, question: str) -> bool:
    """Return whether ``text`` gives the short value ``counter``, literally or in other words."""
    return overlaps(text, counter, question) or contains_value(text, counter, question)


def label_of_letters(after: str | None, before: str | None, counters: Sequence[str]) -> str | None:
    """Return the published evaluation's label of one multiple-choice answer that passes its filter.

    ``after`` and ``before`` are the :func:`official_letter` of the answers with and without evidence, ``counters`` the letters
    that agree with the evidence. None if either has no letter: the pair is skipped.
    """
    if before is None or after is None:
        return None
    if before == after:
        return "ORIGINAL"
    return "COUNTER" if after in counters else "IRRELEVANT"
