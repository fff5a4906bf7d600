"""Checks of what engines and judges return, which may be other people's code: only what can be read again is stored."""

from __future__ import annotations

from array import array
from typing import get_args

from benchmarks.base import Benchmark
from benchmarks.vocabulary import BEHAVIOURS, FinishReason, Generation, Verdict, VerdictStatus
from judges.base import Judge

_FINISH_REASONS, _STATUSES = get_args(FinishReason), get_args(VerdictStatus)
_GREATEST = 1 << 62
_COUNTS = ("prompt_tokens", "completion_tokens", "peak_memory", "active_memory", "cache_memory")
_TIMES = ("prefill_s", "decode_s")


def usable_answer(generation: Generation) -> Generation:
    """Return an engine's answer, or an error in its place if it cannot be stored."""
    problem = _answer_problem(generation)
    if not problem:
        return generation
    return Generation(generation.request_id, "", "error", error=f"the engine returned no usable answer: {problem}")


def _answer_problem(generation: Generation) -> str:
    if generation.finish_reason not in _FINISH_REASONS:
        return f"its finish reason is {generation.finish_reason!r}, which is none of {', '.join(_FINISH_REASONS)}"
    if not isinstance(generation.text, str) or not isinstance(generation.error, str | None):
        return "its text or its error is no text"
    for name in _COUNTS:
        if (value := getattr(generation, name)) is not None and not _is_count(value):
            return f"its {name} is {value!r}, which is no count"
    if not _is_count(generation.calls):
        return f"its calls are {generation.calls!r}, which is no count"
    for name in _TIMES:
        value = getattr(generation, name)
        if not (value is None or (isinstance(value, int | float) and 0 <= value < _GREATEST)):
            return f"its {name} is {value!r}, which is no time"
    try:
        if not all(score is None or (isinstance(score, int | float) and score == score) for score in generation.scores):
            return "a score is no number"
        array("I", generation.tokens)
    except (TypeError, OverflowError):
        return "a score or a token is no number of one"
    return ""


def verdict_problem(verdict: object, judge: Judge, benchmark: Benchmark) -> str:
    """Return why what a judge returned cannot be stored as its verdict; "" if it can."""
    if not isinstance(verdict, Verdict):
        return f"it returned {type(verdict).__name__}, not a Verdict"
    if verdict.judge != judge.id:
        return f"it returned a verdict of {verdict.judge!r}, not of {judge.id!r}"
    if verdict.status not in _STATUSES:
        return f"unknown status {verdict.status!r}"
    if verdict.status == "labelled" and verdict.label not in benchmark.labels:
        return f"unknown label {verdict.label!r}"
    if verdict.status != "labelled" and verdict.label is not None:
        return f"the label {verdict.label!r} does not fit the status {verdict.status}"
    texts = (verdict.reason, "" if verdict.raw is None else verdict.raw, *verdict.flags)
    if not all(type(text) is str for text in texts):
        return "its reason, its reply or a flag is no text"
    if verdict.behaviour not in (None, *BEHAVIOURS):
        return f"unknown behaviour {verdict.behaviour!r}"
    counts = (verdict.calls, verdict.prompt_tokens, verdict.completion_tokens)
    return "" if all(map(_is_count, counts)) else "calls or tokens are no counts"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < _GREATEST
