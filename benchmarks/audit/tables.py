"""Tables and sentences of an audit."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.audit import Audit, RuleResult, TaskAudit
from benchmarks.stats.intervals import INTERVALS
from benchmarks.vocabulary import Cell, Estimate, Table

_NOTES = (
    "Without looking: the rule that is best on other clusters, where it is fitted, too. Chance is exact.",
    "Gives away: rules that beat chance by an interval that is corrected for their number, the best first.",
    INTERVALS,
)
_MOST_NAMED = 3
_LONGEST = 24
"""The characters of a cell's name that are printed."""


def summary(audit: Audit, columns: Mapping[str, Mapping[str, Cell]] | None = None) -> Table:
    """Return the audit's table of tasks, with further ``columns``, whose cells are by task."""
    columns = columns or {}
    rows = [
        (
            task.task,
            (
                *(_questions(task), task.clusters, Estimate(task.chance, n=task.questions), task.blind),
                *(column.get(task.task) for column in columns.values()),
                given_away(task),
            ),
        )
        for task in audit.tasks
    ]
    heads = ("questions", "clusters", "chance", "without looking", *columns, "gives away")
    return Table("audit", "Answered without looking", heads, tuple(rows), _NOTES)


def rule_tables(audit: Audit) -> list[Table]:
    """Return a table of all rules for each task."""
    notes = ("Learned: the options that it chooses above all, such as the longest of 4 (1 of 4).",)
    return [
        Table(
            f"audit-{task.task}",
            f"{task.task}: {task.questions} questions, chance {_short(task.chance)}",
            ("share", "beats chance", "looks at", "learned"),
            tuple(
                (rule.rule, (_estimate(rule, task), "yes" if rule.flagged else "", rule.looks_at, _prefers(rule)))
                for rule in task.rules
            ),
            notes,
        )
        for task in audit.tasks
        if task.rules
    ]


def given_away(task: TaskAudit) -> str:
    """Return the names of the rules that beat chance, the first of them; empty if none does."""
    names = [f"always {task.constant[:_LONGEST]!r}"] if task.constant else []
    names += [rule.rule for rule in task.flagged]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def sentence(audit: Audit) -> str:
    """Return a sentence on the tasks that rules which look at no source answer better than by chance."""
    if not audit.tasks:
        return "no closed question, so that no rule can be tried without looking"
    count = len(audit.tasks)
    tasks = sorted(filter(given_away, audit.tasks), key=lambda task: task.chance - (task.blind.value or 0))
    audited, total = audit.questions
    sample = f" ({audited:,} of {total:,} questions tried)" if audited < total else ""
    if not tasks:
        which = "the task" if count == 1 else f"any of {count} tasks"
        return f"no rule that looks at no source beats chance in {which}{sample}"
    shares = [
        f"{task.task} {_short(task.blind.value or 0)} (chance {_short(task.chance)}, {given_away(task)})"
        for task in tasks
    ]
    more = f"; and {len(shares) - _MOST_NAMED} more" if len(shares) > _MOST_NAMED else ""
    return f"answered without looking: {'; '.join(shares[:_MOST_NAMED])}{more}{sample}"


def _questions(task: TaskAudit) -> Cell:
    return task.questions if task.questions == task.total else f"{task.questions:,} of {task.total:,}"


def _estimate(rule: RuleResult, task: TaskAudit) -> Estimate:
    return Estimate(rule.share, rule.low, rule.high, task.questions)


def _prefers(rule: RuleResult) -> str:
    return rule.prefers if len(rule.prefers) <= _LONGEST else f"{rule.prefers[: _LONGEST - 1]}…"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")
