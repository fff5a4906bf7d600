"""The answer in a model's reply: the reply without its reasoning."""

from __future__ import annotations

from benchmarks.text.reasoning import read_reply
from benchmarks.vocabulary import Outcome, Record


def visible_answer(text: str) -> str:
    """Return ``text`` without its reasoning and what follows its turn, stripped; see :func:`read_reply`.

    A reply that is all reasoning becomes empty.
    """
    return read_reply(text).answer


def answer_outcome(record: Record) -> Outcome:
    """Return the outcome of a record for a rule that labels every answer that is not empty, without a judge."""
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    return "labelled" if visible_answer(record.answer.text) else "unparsed"
