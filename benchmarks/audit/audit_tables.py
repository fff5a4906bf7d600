"""Tables and sentences of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.audit import FEWEST_CLUSTERS, Audit, RuleResult, TaskAudit
from benchmarks.vocabulary import Cell, Estimate, Table

_NOTES = (
    "Without looking: the rule without a source that is best on other clusters, where it is fitted, too. Chance is exact.",
    "Gives away, one source alone: rules that beat chance, the best first. They are corrected for their number, the printed "
    "intervals are not.",
    "Intervals: 95%, over clusters: examples with the same own picture, page or document; without one, each example.",
)
_MOST_NAMED = 3
_LONGEST = 24
"""The characters of a cell's name that are printed."""


def summary(audit: Audit, columns: Mapping[str, Mapping[str, Cell]] | None = None) -> Table:
    """Return the audit's table of tasks, with further ``columns``, whose cells are by task."""
    columns = columns or {}
    has_sources = any(task.flagged_of_source for task in audit.tasks)
    rows = [
        (
            task.task,
            (
                *(_questions(task), task.clusters, Estimate(task.chance, n=task.questions), task.blind),
                *(column.get(task.task) for column in columns.values()),
                given_away(task) or ("" if task.is_testable else "too few pages to tell"),
                *([_names(task.flagged_of_source)] if has_sources else []),
            ),
        )
        for task in audit.tasks
    ]
    of_source = ("one source alone",) if has_sources else ()
    heads = ("questions", "clusters", "chance", "without looking", *columns, "gives away", *of_source)
    return Table("audit", "Answered without looking", heads, tuple(rows), _NOTES)


def rule_tables(audit: Audit) -> list[Table]:
    """Return a table of all rules for each task."""
    learned = "Learned: the options that it chooses above all, such as the longest of 4 (1 of 4)."
    untried = f"Models of words were not tried: they need {FEWEST_CLUSTERS} pages."
    return [
        Table(
            f"audit-{task.task}",
            f"{task.task}: {task.questions} questions, chance {_short(task.chance)}",
            ("share", "beats chance", "looks at", "learned"),
            tuple(
                (
                    f"{rule.rule} (one source alone)" if rule.reads_source else rule.rule,
                    (_estimate(rule, task), "yes" if rule.flagged else "", rule.looks_at, _prefers(rule)),
                )
                for rule in sorted(task.rules, key=lambda rule: rule.reads_source)
            ),
            (learned,) if task.has_models else (learned, untried),
        )
        for task in audit.tasks
        if task.rules
    ]


def given_away(task: TaskAudit) -> str:
    """Return the names of the rules without a source that beat chance, the first of them; empty if none does."""
    return _names(task.flagged, f"always {task.constant[:_LONGEST]!r}" if task.constant else "")


def _names(rules: Iterable[RuleResult], first: str = "") -> str:
    names = [*filter(None, [first]), *(rule.rule for rule in rules)]
    return ", ".join(names[:_MOST_NAMED]) + _more(names)


def sentence(audit: Audit) -> str:
    """Return a sentence on the tasks that rules which look at no source answer better than by chance."""
    if not audit.tasks:
        return "no closed question, so that no rule can be tried without looking"
    count = len(audit.tasks)
    tasks = sorted(filter(given_away, audit.tasks), key=lambda task: task.chance - (task.blind.value or 0))
    notes = _left_out(audit)
    if not tasks:
        tested = [task for task in audit.tasks if task.is_testable]
        which = "the task" if count == 1 else f"any of {len(tested)} tasks"
        return "; ".join([*([f"no rule that looks at no source beats chance in {which}"] if tested else []), *notes])
    shares = [
        f"{task.task} {'' if task.blind.value is None else f'{_short(task.blind.value)} '}"
        f"(chance {_short(task.chance)}, {given_away(task)})"
        for task in tasks
    ]
    more = [f"and {len(shares) - _MOST_NAMED} more"] if len(shares) > _MOST_NAMED else []
    return f"answered without looking: {'; '.join([*shares[:_MOST_NAMED], *more, *notes])}"


def _left_out(audit: Audit) -> Iterator[str]:
    """Yield what an audit shows of one source alone, and what it leaves out."""
    if of_source := [task for task in audit.tasks if task.flagged_of_source]:
        best = ", ".join(f"{task.task} ({task.flagged_of_source[0].rule})" for task in of_source[:_MOST_NAMED])
        yield f"from one source alone: {best}{_more(of_source)}"
    if few := [task for task in audit.tasks if not task.is_testable and not given_away(task)]:
        yield f"too few pages to tell in {_tasks(few)}"
    if untried := [task for task in audit.tasks if not task.has_models and task not in few]:
        yield f"models of words not tried in {_tasks(untried)}, for which {FEWEST_CLUSTERS} pages are needed"
    audited, total = audit.questions
    if audited < total:
        yield f"{audited:,} of {total:,} questions tried"
    if audit.open:
        yield f"{audit.open:,} open questions not audited"


def _tasks(tasks: Sequence[TaskAudit]) -> str:
    return ", ".join(task.task for task in tasks[:_MOST_NAMED]) + _more(tasks)


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - _MOST_NAMED} more" if len(items) > _MOST_NAMED else ""


def _questions(task: TaskAudit) -> Cell:
    return task.questions if task.questions == task.total else f"{task.questions:,} of {task.total:,}"


def _estimate(rule: RuleResult, task: TaskAudit) -> Estimate:
    return Estimate(rule.share, rule.low, rule.high, task.questions)


def _prefers(rule: RuleResult) -> str:
    return rule.prefers if len(rule.prefers) <= _LONGEST else f"{rule.prefers[: _LONGEST - 1]}…"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")
