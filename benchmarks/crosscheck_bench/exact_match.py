"""Exact match (Appendix D): of the whole reply, and of the final answer in it."""

from __future__ import annotations

from benchmarks.base import Record
from benchmarks.crosscheck_bench.parse_answer import extracted, printed, same_text

Labelled = tuple[str, str]
"""The label, CORRECT or INCORRECT, and why."""


def by_final_answer(record: Record) -> Labelled:
    """The label by exact match of the final answer, and why."""
    references = record.instance.references
    gold = (*references.get("answer", ()), "")[0]
    reply = record.answer.text if record.answer else ""
    found, rule = extracted(reply, record.instance.strata.get("form", "open"), references.get("options", ()))
    if found is None:
        return "INCORRECT", rule
    return _label(same_text(found, gold)), f"{found[:60]!r}: {rule}"


def by_whole_reply(record: Record) -> Labelled:
    """The label by exact match of the whole reply, and why."""
    gold = (*record.instance.references.get("answer", ()), "")[0]
    return _label(printed(record.answer.text if record.answer else "", gold)), "the whole reply"


def _label(right: bool) -> str:
    return "CORRECT" if right else "INCORRECT"
