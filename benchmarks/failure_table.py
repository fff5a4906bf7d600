"""What becomes of a record, and the table of what was answered, labelled and lost, which every benchmark has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from benchmarks.base import Outcome, Record, Table

OUTCOMES: tuple[Outcome, ...] = ("labelled", "unparsed", "judge-failed", "error", "pending")

Read = Callable[[Record], tuple[Outcome, bool]]
"""What becomes of a record, and whether its answer is right."""


def by_judge(judge: str) -> Read:
    """As ``judge`` labels: right is CORRECT."""

    def read(record: Record) -> tuple[Outcome, bool]:
        outcome = record.outcome(judge)
        return outcome, outcome == "labelled" and record.verdicts[judge].label == "CORRECT"

    return read


def failures_table(
    runs: Mapping[str, Sequence[Record]],
    judge: str,
    conditions: Sequence[str],
    *,
    enters: str = "Only labelled answers enter the other tables.",
    whose: Callable[[str, str], str] | None = None,
) -> Table:
    """The table ``failures``: a row for each run and each of ``conditions`` that it was asked, its cells whole numbers.

    ``enters`` is the sentence that says which answers the other tables are made of. ``whose`` gives the judge for a run and
    a condition, where that is not ``judge`` for all of them.
    """
    rows: list[tuple[str, tuple[int, ...]]] = []
    used: dict[str, None] = {}
    for run, records in runs.items():
        by_condition: defaultdict[str, list[Record]] = defaultdict(list)
        for record in records:
            by_condition[record.instance.condition].append(record)
        for condition in conditions:
            if condition in by_condition:
                labelled_by = whose(run, condition) if whose else judge
                used[labelled_by] = None
                rows.append((f"{run} / {condition}", _counts(by_condition[condition], labelled_by)))
    note = f"{enters} Pending: not answered yet, or not judged yet. Cut: ended by the token limit; such answers are judged."
    columns = ("answered", *OUTCOMES, "cut at token limit")
    judges = None if set(used) <= {judge} else tuple(used)
    return Table("failures", "What was answered, labelled and lost", columns, tuple(rows), (note,), judges=judges)


def by_run(numbers: Mapping[str, int]) -> str:
    """How many of something each run has, for a note: one number where all have the same, empty where none has any."""
    if not any(numbers.values()):
        return ""
    if len(set(numbers.values())) == 1:
        (number,) = set(numbers.values())
        return f"{number:,}" if len(numbers) == 1 else f"{number:,} of each run"
    return ", ".join(f"{run}: {number:,}" for run, number in numbers.items())


def _counts(records: Sequence[Record], judge: str) -> tuple[int, ...]:
    answers = [each.answer for each in records if each.answer is not None and each.answer.finish_reason != "error"]
    outcomes = Counter(record.outcome(judge) for record in records)
    cut = sum(answer.finish_reason == "length" for answer in answers)
    return (len(answers), *(outcomes[outcome] for outcome in OUTCOMES), cut)
