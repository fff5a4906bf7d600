"""Answers without a label: their outcomes in words, counts of them, and the notes that tables have on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.failure_table import counts_by_run

if TYPE_CHECKING:
    from benchmarks.base import Benchmark


MISSING: Mapping[str, str] = {
    "unparsed": "without an answer",
    "undecided": "undecided by the judge",
    "judge-failed": "not labelled by the judge",
    "error": "in error",
    "pending": "pending",
}
"""The outcomes of answers without a label, in words."""


def missing_notes(
    benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, judges: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return notes on the answers that count as wrong without a label, and on those that count in no table, by reason.

    ``judges`` has the judges of runs that have another one than ``judge``.
    """
    judges = judges or {}
    missing = {run: uncounted(benchmark, answers, judges.get(run, judge)) for run, answers in runs.items()}
    own = sorted({reason for counts in missing.values() for reason in counts}.difference(MISSING))
    reasons: Mapping[str, str] = {**{reason: reason for reason in own}, **MISSING}
    numbers = {name: counts_by_run({run: counts[name] for run, counts in missing.items()}) for name in reasons}
    empty = numbers.pop("unparsed") if benchmark.unparsed_label is not None else ""
    notes = [f"Counted as {benchmark.unparsed_label}: {MISSING['unparsed']} ({empty})."] if empty else []
    left_out = [f"{reasons[name]} ({number})" for name, number in numbers.items() if number]
    return (*notes, f"Left out of all answers: {', '.join(left_out)}.") if left_out else tuple(notes)


def list_missing(counts: Mapping[str, int], words: Mapping[str, str] = MISSING) -> str:
    """Return numbers of answers by outcome or reason as text; the words alone of a single one."""
    named = {words.get(name, name): counts[name] for name in (*words, *counts) if counts.get(name)}
    return ", ".join(f"{number:,} {name}" for name, number in named.items()) if len(named) > 1 else "".join(named)


def missing_outcomes(benchmark: Benchmark, answers: Answers, judge: str) -> Counter[str]:
    """Return the number of a run's answers without a label, by outcome."""
    return answers.count(lambda kind: None if (outcome := kind.outcome(judge)) == "labelled" else str(outcome))


def uncounted(benchmark: Benchmark, answers: Answers, judge: str) -> Counter[str]:
    """Return the number of a run's answers that are left out or have no label, by reason or outcome."""

    def reason(kind: AnswerKind) -> str | None:
        outcome = kind.outcome(judge)
        return benchmark.left_out(kind) or (None if outcome == "labelled" else outcome)

    return answers.count(reason)
