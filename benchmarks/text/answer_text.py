"""What of a model's reply is its answer."""

from __future__ import annotations

import re

from benchmarks.base import Outcome, Record

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_END = re.compile(r"\A.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def visible_answer(text: str) -> str:
    """``text`` without its ``<think>`` blocks, stripped.

    A block that never closes runs to the end, so a reply that is all reasoning comes back empty. A closing tag
    whose opening one stood in the prompt (as some chat templates do) ends reasoning that began at the start.
    """
    without = _THINK.sub("", text)
    return _STRAY_END.sub("", without).strip()


def outcome(record: Record) -> Outcome:
    """What a record is for a rule that labels whatever has something to label, whoever judged it."""
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    return "labelled" if visible_answer(record.answer.text) else "unparsed"
