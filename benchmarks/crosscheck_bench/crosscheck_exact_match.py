"""Exact match (Appendix D) of the whole reply, and of the final answer within it."""

from __future__ import annotations

from benchmarks.crosscheck_bench.crosscheck_parse_answer import equals_whole_reply, extract_answer, same_text
from benchmarks.vocabulary import Record

LabelAndReason = tuple[str, str]
"""The label, CORRECT or INCORRECT, and the reason for it."""


def match_final_answer(record: Record) -> LabelAndReason:
    """Return the label and its reason by exact match of the final answer."""
    answer, rule = final_answer(record)
    if answer is None:
        return "INCORRECT", rule
    return _label(is_right(record, answer)), f"{answer[:60]!r}: {rule}"


def final_answer(record: Record) -> tuple[str | None, str]:
    """Return the final answer of a record's reply, None if a closed question's has none of its options, and the rule."""
    form, options = record.instance.strata.get("form", "open"), record.instance.references.get("options", ())
    return extract_answer(record.answer.text if record.answer else "", form, options)


def is_right(record: Record, answer: str) -> bool:
    """Return whether a final answer is the right one."""
    return same_text(answer, _gold(record))


def match_whole_reply(record: Record) -> LabelAndReason:
    """Return the label and its reason by exact match of the whole reply."""
    return _label(equals_whole_reply(record.answer.text if record.answer else "", _gold(record))), "the whole reply"


def _gold(record: Record) -> str:
    return (*record.instance.references.get("answer", ()), "")[0]


def _label(right: bool) -> str:
    return "CORRECT" if right else "INCORRECT"
