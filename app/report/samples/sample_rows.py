"""A run's samples as JSON objects and as flat rows: prompts, answers and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import Media, Origin, Record

_NOT_CANONICAL = (
    *("prompt_tokens", "completion_tokens", "prefill_s", "decode_s", "peak_memory", "active_memory", "cache_memory"),
    "origin",
)
"""The fields that differ between two runs with the same answers. A failed call, the cache, or another run changes the tokens."""


def prompt_text(record: Record) -> str:
    """Return the instance's prompt, with every medium as ``[IMAGE sha256]``."""
    return "".join(
        f"[{part.modality.upper()} {part.sha256}]" if isinstance(part, Media) else part.text
        for part in record.instance.parts
    )


def sample_to_json(record: Record, *, canonical: bool = False, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """Return a record as a JSON object with ``remarks``, if any; ``canonical`` omits what equal answers may differ in."""
    instance = record.instance
    steps = [
        {
            "text": g.text,
            "tokens": list(g.tokens),
            "finish_reason": g.finish_reason,
            "error": g.error,
            "prompt_tokens": g.prompt_tokens,
            "completion_tokens": g.completion_tokens,
            "prefill_s": g.prefill_s,
            "decode_s": g.decode_s,
            "peak_memory": g.peak_memory,
            "active_memory": g.active_memory,
            "cache_memory": g.cache_memory,
            **({} if g.origin is None else {"origin": asdict(g.origin)}),
        }
        for g in record.generations
    ]
    if canonical:
        steps = [{key: value for key, value in step.items() if key not in _NOT_CANONICAL} for step in steps]
    basis = {} if record.basis is None else {"own_answer": visible_answer(record.basis.text)}
    return {
        "id": instance.id,
        "group": instance.group,
        "condition": instance.condition,
        "strata": dict(instance.strata),
        "question": instance.question,
        "prompt": prompt_text(record),
        "references": {key: list(values) for key, values in instance.references.items()},
        **basis,
        "answer": visible_answer(record.answer.text) if record.answer else None,
        "steps": steps,
        "verdicts": {
            judge: {
                "status": v.status,
                "label": v.label,
                "reason": v.reason,
                "raw": v.raw,
                **({} if v.behaviour is None else {"behaviour": v.behaviour}),
            }
            for judge, v in record.verdicts.items()
        },
        **({"remarks": list(remarks)} if remarks else {}),
    }


def origin_clause(origin: Origin | None) -> str:
    """Return in words which other run's answer an answer is, or was compared with; "" without an ``origin``."""
    if origin is None:
        return ""
    how = {None: "reused from", True: "asked again, and equal to", False: "asked again, and other than"}[origin.same]
    return f"{how} {origin.name}: {origin.instance}"


def sample_to_row(record: Record, judge: str, *, canonical: bool = False) -> dict[str, Any]:
    """Return a record as one row of scalars for a spreadsheet, with the verdict of one judge."""
    sample = sample_to_json(record, canonical=canonical)
    last = sample["steps"][-1] if sample["steps"] else {}
    verdict = sample["verdicts"].get(judge, {})
    row = {key: sample[key] for key in ("id", "group", "condition", "question", "prompt", "answer")}
    if record.basis is not None:
        row["own answer"] = sample["own_answer"]
    row |= {f"reference {key}": " | ".join(values) for key, values in sample["references"].items()}
    row |= {f"stratum {key}": value for key, value in sample["strata"].items()}
    row |= {key: value for key, value in last.items() if key not in ("text", "tokens", "origin")}
    if record.generations and not canonical and (origin := origin_clause(record.generations[-1].origin)):
        row["origin"] = origin
    row |= {"outcome": record.outcome(judge), "label": verdict.get("label"), "reason": verdict.get("reason")}
    return row
