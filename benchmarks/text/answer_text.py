"""The answer in a model's reply: the reply without its reasoning."""

from __future__ import annotations

import re

from benchmarks.vocabulary import Outcome, Record

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_END = re.compile(r"\A.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def visible_answer(text: str) -> str:
    """Return ``text`` without its ``<think>`` blocks, stripped.

    An unclosed block extends to the end, so a reply that is all reasoning becomes empty. A closing tag without an opening
    one ends reasoning that starts with the reply, since some chat templates put the opening tag into the prompt.
    """
    answer = _THINK.sub("", text)
    return _STRAY_END.sub("", answer).strip()


def answer_outcome(record: Record) -> Outcome:
    """Return the outcome of a record for a rule that labels every answer that is not empty, without a judge."""
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    return "labelled" if visible_answer(record.answer.text) else "unparsed"
