"""Exact match (Appendix D) of the whole reply, and of the final answer within it."""

from __future__ import annotations

from benchmarks.crosscheck_bench.parse_answer import equals_whole_reply, extract_answer, same_text
from benchmarks.vocabulary import Record

LabelAndReason = tuple[str, str]
"""The label, CORRECT or INCORRECT, and the reason for it."""


def match_final_answer(record: Record) -> LabelAndReason:
    """Return the label and its reason by exact match of the final answer."""
    references = record.instance.references
    gold = (*references.get("answer", ()), "")[0]
    reply = record.answer.text if record.answer else ""
    answer, rule = extract_answer(reply, record.instance.strata.get("form", "open"), references.get("options", ()))
    if answer is None:
        return "INCORRECT", rule
    return _label(same_text(answer, gold)), f"{answer[:60]!r}: {rule}"


def chooses_none(record: Record) -> bool:
    """Return whether the reply to a closed question gives none of its options."""
    form, options = record.instance.strata.get("form", "open"), record.instance.references.get("options", ())
    return extract_answer(record.answer.text if record.answer else "", form, options)[0] is None


def match_whole_reply(record: Record) -> LabelAndReason:
    """Return the label and its reason by exact match of the whole reply."""
    gold = (*record.instance.references.get("answer", ()), "")[0]
    return _label(equals_whole_reply(record.answer.text if record.answer else "", gold)), "the whole reply"


def _label(right: bool) -> str:
    return "CORRECT" if right else "INCORRECT"
