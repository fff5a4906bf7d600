"""Reading of an answer and of the model's own answer for MMKC-Bench's tables."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.mmkc_bench.mmkc_constants import (
    CONFLICT_CONDITIONS,
    LETTERS,
    ORIGINAL_CONDITIONS,
    TEXT,
    letter_key,
    truth_key,
)
from benchmarks.mmkc_bench.mmkc_parse_answer import (
    is_counter,
    is_true,
    official_letter,
    own_answer,
    question_and_subject,
)
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Record

ALREADY_COUNTER = "already the counter answer"
NO_OWN_ANSWER = "own answer not there"
OWN_ANSWER_ERROR = "own answer in error"
OWN_ANSWER_UNPARSED = "own answer unparsed"


class MMKCReading(NamedTuple):
    """The reading of a record.

    Attributes:
        incomparable: The reason why an answer under conflict cannot be compared with the model's own answer; "" if it can be.
        counters: The letters of the options that the evidence of a multiple choice under conflict supports.
        letter: The letter that the published evaluation reads in an answer to a multiple choice, if any.
        is_letter: True if such an answer is that letter and nothing else.
        is_true: True if an answer of the original setting is what is true of the image, None if that is not known.
    """

    incomparable: str = ""
    counters: tuple[str, ...] = ()
    letter: str | None = None
    is_letter: bool = False
    is_true: bool | None = None


def read(record: Record) -> MMKCReading:
    """Return the reading of a record."""
    condition = record.instance.condition
    if condition not in CONFLICT_CONDITIONS and condition not in ORIGINAL_CONDITIONS:
        return MMKCReading()
    text = record.answer.text if record.answer else ""
    letter = None if condition.endswith("-open") else official_letter(text)
    if condition in ORIGINAL_CONDITIONS:
        is_letter = condition == ORIGINAL_CONDITIONS[0] and text in LETTERS
        return MMKCReading(letter=letter, is_letter=is_letter, is_true=_is_true(record))
    counters = tuple(record.instance.references.get(letter_key(TEXT), ()))
    return MMKCReading(_incomparable(record), counters, letter, text in LETTERS)


def _is_true(record: Record) -> bool | None:
    answer = visible_answer(record.answer.text) if record.answer else ""
    if not answer or not record.instance.references.get(truth_key(record.instance.condition)):
        return None
    return is_true(answer, record)[0] == "CORRECT"


def _incomparable(record: Record) -> str:
    if record.basis is None:
        return NO_OWN_ANSWER
    if record.basis.finish_reason == "error":
        return OWN_ANSWER_ERROR
    own_label, _ = own_answer(record)
    if own_label is None:
        return OWN_ANSWER_UNPARSED
    instance = record.instance
    is_already = is_counter(own_label, instance.condition, instance.references, question_and_subject(record))
    return ALREADY_COUNTER if is_already else ""
