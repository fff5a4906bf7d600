"""Answers to training rows, judged by rule: the scorecard in small.

A row that says which instance it was made of is judged by its benchmark's own judge. Of any other row, its answer to learn and
its rejected answer are all that an answer can be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.answer_behaviour import act_of, gives_right
from benchmarks.answers import kind_of
from benchmarks.base import Benchmark
from benchmarks.mmkc_bench.mmkc_constants import CONFLICT_CONDITIONS
from benchmarks.registry import get_benchmark
from benchmarks.text.answer_text import visible_answer
from benchmarks.training.training_set import ChatRow
from benchmarks.values import compare
from benchmarks.vocabulary import Generation, Instance, Record, Verdict
from judges.judge_registry import get_judge
from mlx_backends.training_settings import CONFLICT, Judged

ANOTHER = "another answer"

_VALUE_WORDS, _SENTENCE_WORDS = 3, 8
"""The most words of an answer that by itself is not the one to learn: beside a sentence that names a conflict, and beside any
other. A longer one may say the same in other words."""


def judge_answer(row: ChatRow, answer: str, is_cut_off: bool) -> Judged:
    """Return the outcome of an answer to a row, a key of ``OUTCOMES``, and whether it does what the row teaches.

    The latter is None for an answer that the rules cannot decide. One that was cut off at the limit of tokens is no answer.
    """
    taught, outcome_by_rule = _taught(row)
    if _same_text(answer, row.target):
        outcome = taught
    else:
        outcome = "none" if is_cut_off or not visible_answer(answer) else outcome_by_rule(row, answer)
    name = outcome
    if row.kind == CONFLICT and outcome == "flags":
        name = "names"
    elif row.kind != CONFLICT and outcome == "right":
        name = "kept"
    return Judged(name, None if outcome == "undecided" else outcome == taught)


def names_conflict(row: ChatRow) -> bool:
    """Return whether the answer to learn names a conflict."""
    return _taught(row)[0] == "flags"


_Outcome = Callable[[ChatRow, str], str]


def _taught(row: ChatRow) -> tuple[str, _Outcome]:
    """Return the outcome of the answer to learn, "flags" or "right", and the rule by which any answer has one.

    A benchmark's rule that does not recognise the answer to learn is of no use for others.
    """
    if row.references and row.benchmark in _READERS and (taught := _by_rule(row, row.target)) in ("flags", "right"):
        return taught, _by_rule
    return "flags" if _flags(row, row.target) else "right", _compared


def _by_rule(row: ChatRow, answer: str) -> str:
    """Return the outcome by the benchmark's judge; "undecided" where the row is none that it could have."""
    benchmark = get_benchmark(row.benchmark)
    parts = tuple(part for message in row.messages for part in message.parts)
    instance = Instance(row.where, row.group, row.condition, row.question, parts, row.references, row.strata)
    # MMKC-Bench compares an answer with the model's own; what a row teaches is the true one.
    basis = Generation(row.where, row.target, "stop")
    record = Record(instance, (Generation(row.where, answer, "stop"),), basis=basis)
    try:
        verdict = get_judge(benchmark.judges[0]).judge(record)
        record = replace(record, verdicts={verdict.judge: verdict})
        outcome = _READERS[row.benchmark](row, answer, benchmark, record, verdict)
    except (LookupError, ValueError):  # a condition or references that no instance has
        return "undecided"
    if outcome == "undecided" and row.kind != CONFLICT and _flags(row, answer):
        return "flags"  # a conflict between values of which the row has none
    return outcome


def _read_act(row: ChatRow, answer: str, benchmark: Benchmark, record: Record, verdict: Verdict) -> str:
    """Return the outcome by the act of the scorecard and what is right under the row's condition."""
    act = act_of(kind_of(record, benchmark), verdict.judge)
    if act in ("flags", "right", "invents", "none", ""):
        return act or "undecided"
    if gives_right(benchmark, row.condition, verdict.label or "", act):
        return "right"
    return "other source" if act in ("image", "text") else ANOTHER


def _read_label(row: ChatRow, answer: str, benchmark: Benchmark, record: Record, verdict: Verdict) -> str:
    """Return the outcome by a label that says whether an answer is right, or whose it is."""
    if verdict.status != "labelled":
        return "none" if verdict.status == "unparsed" else "undecided"
    outcome = {"CORRECT": "right", "ORIGINAL": "right", "COUNTER": "other source"}.get(str(verdict.label))
    if outcome is None:
        return ANOTHER if benchmark.choices(record.instance) else _compared(row, answer)
    return outcome


def _read_truth(row: ChatRow, answer: str, benchmark: Benchmark, record: Record, verdict: Verdict) -> str:
    """Return the outcome for MMKC-Bench, whose judge takes every answer without evidence for the model's own."""
    if row.condition in CONFLICT_CONDITIONS or verdict.status != "labelled":
        return _read_label(row, answer, benchmark, record, verdict)
    reading: Any = benchmark.reading(record)
    is_true = reading.is_true
    return "right" if is_true else _compared(row, answer) if is_true is None else ANOTHER


def _read_words(row: ChatRow, answer: str, benchmark: Benchmark, record: Record, verdict: Verdict) -> str:
    """Return the outcome for CLASH, whose matching of words takes a denied conflict for one, and both answers for the image's."""
    if _flags(row, answer):
        return "flags"
    if "CONFLICT" in verdict.flags or len(verdict.flags) > 1:
        return "undecided"
    return {"IMAGE": "right", "TEXT": "other source"}.get(str(verdict.label)) or _compared(row, answer)


_READERS: Mapping[str, Callable[[ChatRow, str, Benchmark, Record, Verdict], str]] = {
    "cmc-bench": _read_act,
    "clash": _read_words,
    "contra4": _read_label,
    "crosscheck-bench": _read_label,
    "mmkc-bench": _read_truth,
}
"""The readings of a verdict by benchmark."""


def _compared(row: ChatRow, answer: str) -> str:
    """Return the outcome of an answer as far as the answer to learn and the rejected one tell."""
    if _flags(row, answer):
        return "flags"
    if row.rejected and compare(answer, row.rejected, row.question).verdict == "same":
        return "other source" if row.kind == CONFLICT else ANOTHER
    words = len(answer.split())
    if _flags(row, row.target):
        return ANOTHER if words <= _VALUE_WORDS else "undecided"
    comparison = compare(answer, row.target, row.question).verdict
    if comparison == "same":
        return "right"
    is_short = max(words, len(row.target.split())) <= _SENTENCE_WORDS
    return ANOTHER if comparison == "different" and is_short else "undecided"


def _flags(row: ChatRow, answer: str) -> bool:
    """Return whether an answer says by itself that there is a conflict or no answer, whatever the values are."""
    # Imported here because the rules' patterns take 0.15 s to compile.
    from judges.cmc_rules.decision_rules import decide

    return decide(visible_answer(answer), row.question, {}, cut_off=False).behaviour in ("conflict", "abstain")


def _same_text(answer: str, target: str) -> bool:
    return visible_answer(answer).casefold().split() == target.casefold().split()
