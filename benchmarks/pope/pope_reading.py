"""Reading of an answer and its references for POPE's tables."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.text.answer_text import visible_answer
from benchmarks.text.yes_no_answer import parse_official, read_yes_no
from benchmarks.vocabulary import Record

ANSWERS = ("yes", "no")


class PopeReading(NamedTuple):
    """The reading of a record.

    Attributes:
        gold: The right answer, yes or no; None if the references have neither.
        stated: What the answer says: yes, no or neither.
        official: What the published evaluation reads in it; None without an answer.
    """

    gold: str | None
    stated: str
    official: str | None


def read(record: Record) -> PopeReading:
    """Return the reading of a record."""
    answers = record.instance.references.get("answer", ())
    gold = answers[0] if answers and answers[0] in ANSWERS else None
    if record.answer is None:
        return PopeReading(gold, "neither", None)
    text = visible_answer(record.answer.text)
    official = None if record.answer.finish_reason == "error" else parse_official(text)
    return PopeReading(gold, read_yes_no(text)[0] or "neither", official)
