"""Checks of generated answers along a training: their rows and judge, and what two of them show together."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.training.training_row_selection import drawn_for_check
from app.engine.training.training_spec_and_recipes import TrainingSpec
from benchmarks.training.training_set import ChatRow
from mlx_backends.training_settings import (
    AGREEMENT,
    CONFLICT,
    NOT_TAUGHT,
    TAUGHT,
    UNDECIDED,
    UNKNOWN,
    CheckReport,
    CheckRows,
)

_SIGNIFICANCE = 0.05
_KINDS = (CONFLICT, AGREEMENT, UNKNOWN)
_HARDLY_ANY = 1 / 8
"""The share of answers to learn from which a base gives more than hardly any."""


def answer_check(validation: Sequence[ChatRow], spec: TrainingSpec) -> CheckRows | None:
    """Return the rows of a training's checks, of its validation rows, with their judge; None if it has no checks."""
    if not validation or not spec.check_rows:
        return None
    from judges.training_answer_judge import judge_answer, names_conflict

    rows = drawn_for_check(validation, spec.check_rows, spec.seed)
    names = all(names_conflict(row) for row in rows if row.kind == CONFLICT)
    return CheckRows(rows, judge_answer, names)


def check_line(check: CheckReport) -> str:
    """Return what a check shows, as in ``names 9 of 12 conflicts, keeps 11 of 12``."""
    return ", ".join(
        _count(check, kind, f"{_right(check, kind)} of {len(marks)}") + _undecided(marks)
        for kind, marks in _by_kind(check).items()
    )


def change_line(before: CheckReport, after: CheckReport) -> str:
    """Return what changed from the base's check to another's, as in ``names conflicts 0 to 9 of 12, keeps 12 to 11 of 12``."""
    parts = []
    for kind, marks in _by_kind(after).items():
        change = f"{_right(before, kind)} to {_right(after, kind)} of {len(marks)}"
        verb = {CONFLICT: "names conflicts" if after.names else "answers conflicts", AGREEMENT: "keeps"}
        parts.append(f"{verb.get(kind, 'gives the answer to learn in')} {change}{_undecided(marks)}")
        empty = after.outcomes.get(kind, {}).get("none", 0)
        notes = [f"{empty} give no answer"] if empty else []
        if (
            UNDECIDED not in marks
            and _right(after, kind) < _right(before, kind)
            and kind not in shown_changes(before, after, -1)
        ):
            notes.append("too few to show a loss")
        parts[-1] += f" ({', '.join(notes)})" if notes else ""
    return ", ".join(parts)


def shown_changes(before: CheckReport, after: CheckReport, sign: int, *, at_worst: bool = False) -> list[str]:
    """Return the kinds of rows of which the model answers more as taught than the base (``sign`` 1), or fewer (-1).

    The difference is beyond chance by McNemar's exact test, corrected for the kinds by Holm's method. An answer that cannot be
    told leaves its row out; ``at_worst`` takes it for a wrong one.
    """
    from benchmarks.stats.paired_tests import holm, sign_flip_test

    changes = {kind: _changes(before, after, kind, at_worst=at_worst) for kind in _by_kind(after)}
    values = holm([sign_flip_test(signs) for signs in changes.values()])
    return [
        kind
        for (kind, signs), p in zip(changes.items(), values, strict=True)
        if p is not None and p <= _SIGNIFICANCE and sign * sum(signs) > 0
    ]


def missing_kind(check: CheckReport, *, has_conflicts: bool) -> str | None:
    """Return the kind of row that a check needs and does not have: without a conflict, and with one if the data has any.

    Rows that were made elsewhere need not say what they are, so such a check lacks nothing.
    """
    kinds = _by_kind(check)
    needed = (AGREEMENT, CONFLICT) if has_conflicts else (AGREEMENT,)
    return None if UNKNOWN in kinds else next((kind for kind in needed if kind not in kinds), None)


def doubts_labels(base: CheckReport) -> bool:
    """Return whether the base gives hardly any of the answers to learn without a conflict, as where these are wrong."""
    marks = base.marks.get(AGREEMENT, "")
    return bool(marks) and len(marks) - marks.count(NOT_TAUGHT) <= _HARDLY_ANY * len(marks)


def loss_phrase(after: CheckReport, kind: str) -> str:
    """Return which rows a model loses answers of, as in ``it keeps fewer right answers``."""
    if kind == AGREEMENT:
        return "it keeps fewer right answers"
    return (
        f"it {'names' if after.names else 'answers'} fewer conflicts" if kind == CONFLICT else "it answers fewer rows"
    )


def _changes(before: CheckReport, after: CheckReport, kind: str, *, at_worst: bool) -> list[int]:
    pairs = zip(before.marks.get(kind, ""), after.marks[kind], strict=False)
    return [
        (mark == TAUGHT) - (base == TAUGHT)
        for base, mark in pairs
        if base != UNDECIDED and (mark != UNDECIDED or at_worst)
    ]


def _by_kind(check: CheckReport) -> dict[str, str]:
    """Return the marks by kind of row in the order of sentences; kinds without a row, or of another name, are left out."""
    return {kind: check.marks[kind] for kind in _KINDS if check.marks.get(kind)}


def _undecided(marks: str) -> str:
    count = marks.count(UNDECIDED)
    return f" ({count} cannot be told)" if count else ""


def _right(check: CheckReport, kind: str) -> int:
    return check.marks.get(kind, "").count(TAUGHT)


def _count(check: CheckReport, kind: str, count: str) -> str:
    if kind == CONFLICT:
        return f"{'names' if check.names else 'answers'} {count} conflicts"
    return f"keeps {count}" if kind == AGREEMENT else f"gives the answer to learn in {count}"
