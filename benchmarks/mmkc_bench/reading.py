"""Reading of an answer and of the model's own answer for MMKC-Bench's tables."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.mmkc_bench.constants import CONFLICT_CONDITIONS, LETTERS, ORIGINAL_CONDITIONS, TEXT, letter_key
from benchmarks.mmkc_bench.parse_answer import is_counter, official_letter, own_answer, question_and_subject
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
    """

    incomparable: str = ""
    counters: tuple[str, ...] = ()
    letter: str | None = None
    is_letter: bool = False


def read(record: Record) -> MMKCReading:
    """Return the reading of a record."""
    condition = record.instance.condition
    if condition not in CONFLICT_CONDITIONS and condition != ORIGINAL_CONDITIONS[0]:
        return MMKCReading()
    text = record.answer.text if record.answer else ""
    letter = None if condition.endswith("-open") else official_letter(text)
    if condition not in CONFLICT_CONDITIONS:
        return MMKCReading(letter=letter, is_letter=text in LETTERS)
    counters = tuple(record.instance.references.get(letter_key(TEXT), ()))
    return MMKCReading(_incomparable(record), counters, letter, text in LETTERS)


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
