"""The outcomes of records, and the table ``failures`` that every benchmark has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from benchmarks.vocabulary import Outcome, Record, Table

OUTCOMES: tuple[Outcome, ...] = ("labelled", "unparsed", "judge-failed", "error", "pending")

OutcomeReader = Callable[[Record], tuple[Outcome, bool]]
"""A function from a record to its outcome and whether its answer is correct."""


def outcome_by_judge(judge: str) -> OutcomeReader:
    """Return the reader of ``judge``'s verdicts, for benchmarks whose correct label is CORRECT."""

    def read(record: Record) -> tuple[Outcome, bool]:
        outcome = record.outcome(judge)
        return outcome, outcome == "labelled" and record.verdicts[judge].label == "CORRECT"

    return read


def failures_table(
    runs: Mapping[str, Sequence[Record]],
    judge: str,
    conditions: Sequence[str],
    *,
    scope_note: str = "Only labelled answers enter the other tables.",
    judge_for: Callable[[str, str], str] | None = None,
) -> Table:
    """Return the table ``failures``: counts of outcomes, one row for each run and condition that the run has records of.

    ``scope_note`` is the sentence of the table's note that says which answers the other tables count. ``judge_for`` returns the
    judge of a run and condition; without it, ``judge`` judges all of them.
    """
    rows: list[tuple[str, tuple[int, ...]]] = []
    judges_used: dict[str, None] = {}
    for run, records in runs.items():
        by_condition: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_condition[record.instance.condition].append(record)
        for condition in conditions:
            if condition in by_condition:
                labelled_by = judge_for(run, condition) if judge_for else judge
                judges_used[labelled_by] = None
                rows.append((f"{run} / {condition}", _counts(by_condition[condition], labelled_by)))
    note = f"{scope_note} Pending: not answered yet, or not judged yet. Cut: ended by the token limit; such answers are judged."
    columns = ("answered", *OUTCOMES, "cut at token limit")
    judges = None if set(judges_used) <= {judge} else tuple(judges_used)
    return Table("failures", "What was answered, labelled and lost", columns, tuple(rows), (note,), judges=judges)


def counts_by_run(numbers: Mapping[str, int]) -> str:
    """Return the text for a note with a count for each run: one number if all are equal, nothing if all are zero."""
    if not any(numbers.values()):
        return ""
    if len(set(numbers.values())) == 1:
        (number,) = set(numbers.values())
        return f"{number:,}" if len(numbers) == 1 else f"{number:,} of each run"
    return ", ".join(f"{run}: {number:,}" for run, number in numbers.items())


def _counts(records: Sequence[Record], judge: str) -> tuple[int, ...]:
    answers = [
        answer for record in records if (answer := record.answer) is not None and answer.finish_reason != "error"
    ]
    outcomes = Counter(record.outcome(judge) for record in records)
    truncated = sum(answer.finish_reason == "length" for answer in answers)
    return (len(answers), *(outcomes[outcome] for outcome in OUTCOMES), truncated)
