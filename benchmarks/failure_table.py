"""The outcomes of records, and the table ``failures`` that every benchmark has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from benchmarks.answers import Answers
from benchmarks.vocabulary import Outcome, Table

OUTCOMES: tuple[Outcome, ...] = ("labelled", "unparsed", "undecided", "judge-failed", "error", "pending")


def failures_table(
    runs: Mapping[str, Answers],
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
    for run, answers in runs.items():
        present = answers.count(lambda kind: kind.condition)
        for condition in conditions:
            if condition in present:
                labelled_by = judge_for(run, condition) if judge_for else judge
                judges_used[labelled_by] = None
                rows.append((f"{run} / {condition}", _counts(answers, condition, labelled_by)))
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
    return ", ".join(f"{run}: {number:,}" for run, number in numbers.items() if number)


def _counts(answers: Answers, condition: str, judge: str) -> tuple[int, ...]:
    answered = truncated = 0
    outcomes: Counter[Outcome] = Counter()
    for kind, size in zip(answers.kinds, answers.sizes.tolist(), strict=True):
        if kind.condition == condition:
            answered += size * kind.is_answered
            truncated += size * (kind.finish_reason == "length")
            outcomes[kind.outcome(judge)] += size
    return (answered, *(outcomes[outcome] for outcome in OUTCOMES), truncated)
