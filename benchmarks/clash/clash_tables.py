"""The tables of the paper, and further ones for questions that it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.clash.clash_constants import ATTRIBUTE_CATEGORIES, CONDITIONS, OBJECT_CATEGORIES, RELATIONS, SEVERAL
from benchmarks.clash.clash_metrics import TASKS, label_columns, no_conflict_columns
from benchmarks.clash.clash_table_data import (
    ANSWERED,
    EVERY_MATCH,
    SHAPE,
    Test,
    cells_of,
    has,
    judge_for,
    judge_notes,
    metrics,
    newest_version,
    parts,
    table,
    table_by_run,
)
from benchmarks.failure_table import failures_table
from benchmarks.tables.declared_tables import Grid, Part, Places, Sheets, judges_under
from benchmarks.vocabulary import Cell, Table

if TYPE_CHECKING:
    from benchmarks.base import Benchmark

_CHOICE, _OPEN = "mc-conflicting", "open-conflicting"
_STRING_MATCHING = ("strict", "relaxed", "published")
"""The judges that only compare strings; ``published`` is the flags that came with published predictions."""

_SPATIAL = {
    "spatial": (_CHOICE, "Spatial conflicts, multiple choice (Table 7)"),
    "spatial-open": (_OPEN, "Spatial conflicts, open-ended (Table 16)"),
}
_BY_CATEGORY = {
    "objects": (_CHOICE, "object", "Conflicts seen, by kind of object (Table 8)"),
    "attributes": (_CHOICE, "attribute", "Conflicts seen, by kind of attribute (Table 9)"),
    "objects-open": (_OPEN, "object", "Conflicts seen, by kind of object, open-ended (Table 12)"),
    "attributes-open": (_OPEN, "attribute", "Conflicts seen, by kind of attribute, open-ended (Table 13)"),
}
_CATEGORIES = {"object": OBJECT_CATEGORIES, "attribute": ATTRIBUTE_CATEGORIES}

_NOTE_EVERY_MATCH = (
    "An answer counts in every column that it matches, as in the published code, so a row can sum to more than 100%; "
    "Incorrect matches none."
)
_NO_CONFLICT = (
    "Conflict: an existing conflict is detected. No conflict: the image's answer is given to the original caption. "
    "Overall: both together."
)

_ENTERS = (
    "The other tables count labelled and unparsed answers; unparsed ones (empty, or only reasoning) count as Incorrect."
)


def tables(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: ``main``, each other one that has a row, and ``failures``.

    Metrics are fractions. They use the labels of ``judge`` if it has labelled any of the answers in question,
    else those of ``strict``; a table's notes state how it counts them and what it leaves out.
    """
    base = Sheets(benchmark, runs, judge, resamples, seed)
    choice, opened = base.parts(parts(base, _CHOICE)), base.parts(parts(base, _OPEN))
    all_tables = [
        _main(base),
        _relaxed(base, choice),
        *_open_ended(opened),
        _no_conflict(base),
        _no_conflict_open(base),
        *(_spatial(base, name) for name in _SPATIAL),
        *(_by_category(base, name) for name in _BY_CATEGORY),
        _modality_preference(base, {"multiple choice": choice, "open-ended": opened}),
        _judges(base),
        _exclusive(opened),
        _failures(base),
    ]
    return [table for table in all_tables if table.rows or table.name in ("main", "failures")]


def _main(base: Sheets) -> Table:
    sheets = base.parts(parts(base, _CHOICE, every_run=True))
    return table_by_run(sheets, "main", "Multiple choice (Table 1)", label_columns(_CHOICE), _NOTE_EVERY_MATCH)


def _relaxed(base: Sheets, choice: Sheets) -> Table:
    relaxed = {run: Part(answers, newest_version(base, run, "relaxed")) for run, answers in choice.runs.items()}
    title, columns = "Multiple choice, relaxed (Table 5)", label_columns(_CHOICE)
    return table_by_run(base.parts(relaxed), "multiple-choice-relaxed", title, columns, _NOTE_EVERY_MATCH)


def _open_ended(opened: Sheets) -> tuple[Table, Table]:
    columns = label_columns(_OPEN)
    seen = {name: columns[name] for name in ("Conflict", "Incorrect")}
    title = "Open-ended, all columns (Table 10)"
    return (
        table_by_run(opened, "open-ended", "Open-ended (Table 2)", seen, _NOTE_EVERY_MATCH),
        table_by_run(opened, "open-ended-all", title, columns, _NOTE_EVERY_MATCH),
    )


def _no_conflict(base: Sheets) -> Table:
    task = TASKS["multiple choice"]
    columns = no_conflict_columns(*task)
    # The requested judge comes first, unless it is one of the paper's two.
    sheets = base.parts(
        {
            f"{run} / {judge}": replace(part, judge=judge)
            for run, part in parts(base, *task).items()
            for judge in (part.judge, newest_version(base, run, "strict"), newest_version(base, run, "relaxed"))
        }
    )
    rows = [
        (label.removesuffix(judge) + _short_name(judge), metrics(sheets, label, columns))
        for label, judge in sheets.judges.items()
    ]
    title = "Multiple choice with and without a conflict (Table 6)"
    return table(sheets, "no-conflict", title, columns, rows, _NO_CONFLICT, _NOTE_EVERY_MATCH, rows_name_judges=True)


def _short_name(judge: str) -> str:
    """Return the name of a judge that only compares strings without its version, and that of another as it is."""
    name = judge.rpartition("@")[0]
    return name if name in _STRING_MATCHING else judge


def _no_conflict_open(base: Sheets) -> Table:
    task = TASKS["open-ended"]
    columns = no_conflict_columns(*task) | {"Incorrect": label_columns(_OPEN)["Incorrect"]}
    title = "Open-ended with and without a conflict (Table 3)"
    notes = (_NO_CONFLICT, "Incorrect: given the conflicting caption.", _NOTE_EVERY_MATCH)
    return table_by_run(base.parts(parts(base, *task)), "no-conflict-open", title, columns, *notes)


def _spatial(base: Sheets, name: str) -> Table:
    condition, title = _SPATIAL[name]
    columns = label_columns(condition)
    sheets = base.parts(parts(base, condition, change="spatial"))
    rows = []
    for run, answers in sheets.runs.items():
        rows.append((run, metrics(sheets, run, columns)))
        for relation in RELATIONS:
            if answers.mask(of_relation := has("relation", relation)).any():
                rows.append((f"{run} / {relation}", metrics(sheets, run, columns, of_relation)))
    return table(sheets, name, title, columns, rows, _NOTE_EVERY_MATCH)


def _by_category(base: Sheets, name: str) -> Table:
    condition, change, title = _BY_CATEGORY[name]
    conflict = {"Conflict": label_columns(condition)["Conflict"]}
    sheets = base.parts(parts(base, condition, change=change))
    tests = [has("category", category) for category in _CATEGORIES[change]]
    rows = [
        (run, tuple(cell for test in tests for cell in metrics(sheets, run, conflict, test))) for run in sheets.runs
    ]
    several = has("category", SEVERAL)
    in_several = sum(int(sheets.sheet(run, EVERY_MATCH, several).totals[:, ANSWERED].sum()) for run in sheets.runs)
    notes = ["The share of answers that detect the conflict, among all answers."]
    if in_several:
        notes.append(f"In no column: answers whose changed words belong to several categories ({in_several:,}).")
    return table(sheets, name, title, _CATEGORIES[change].values(), rows, *notes, chart="bars")


def _modality_preference(base: Sheets, conflicting: Mapping[str, Sheets]) -> Table:
    """Return the shares of Figures 6 and 7, in both readings of what they are shares of; ``conflicting`` is by task."""
    rows, answers_of = [], {}
    for task, sheets in conflicting.items():
        rates = label_columns(TASKS[task][0])
        columns = {name: rates[name] for name in ("Image", "Text")}
        for run, answers in sheets.runs.items():
            rows.append((f"{run} / {task}", metrics(sheets, run, columns, _misses_conflict(sheets, run))))
            rows.append((f"{run} / {task}, of all", metrics(sheets, run, columns)))
            answers_of[f"{run} / {task}"] = Part(answers, sheets.judge_of(run))
    note = (
        "Shares among the answers that do not detect the conflict, as the figures are described. Rows that end in "
        '"of all": among all answers, as the text of the paper has them.'
    )
    title = "Which source is followed where the conflict is not seen (Figures 6 and 7)"
    return table(base.parts(answers_of), "modality-preference", title, ("Image", "Text"), rows, note, chart="stacked")


def _misses_conflict(sheets: Sheets, run: str) -> Test:
    judge = sheets.judge_of(run)
    return lambda kind: "CONFLICT" not in sheets.benchmark.counted_labels(kind, judge)


def _judges(base: Sheets) -> Table:
    columns, opened = label_columns(_OPEN), parts(base, _OPEN, every_run=True)
    readers = {run: sorted(filter(_reads, judges_under(base.runs[run], (_OPEN,)))) for run in opened}
    by_judge = base.parts(
        {f"{run} / {judge}": replace(part, judge=judge) for run, part in opened.items() for judge in readers[run]}
    )
    by_run = base.parts(opened)
    rows = []
    for run, judges in readers.items():
        rows += [(f"{run} / {judge}", metrics(by_judge, f"{run} / {judge}", columns)) for judge in judges]
        if len(judges) > 1:
            both = "both" if len(judges) == 2 else "all"
            for name, combine in (("at least one", set.union), (both, set.intersection)):
                rows.append((f"{run} / {name}", metrics(by_run, run, columns, *_combined(base, judges, combine))))
    note = (
        "The share of answers with the label by each judge, by at least one judge, and by both judges; the last two are among "
        "the answers that all judges have labelled."
    )
    title = "Open-ended, by who judges (Table 11)"
    return table(by_judge, "judges", title, columns, rows, note, rows_name_judges=True)


def _combined(base: Sheets, judges: Sequence[str], combine: Callable[..., set[str]]) -> tuple[Test, Grid]:
    """Return a test for the answers that all judges have labelled, and the grid of their labels together."""

    def labels(kind: AnswerKind) -> list[set[str]]:
        return [set(base.benchmark.counted_labels(kind, judge)) for judge in judges]

    return lambda kind: all(labels(kind)), Grid(SHAPE, lambda kind, _: cells_of(kind, combine(*labels(kind))))


def _reads(judge: str) -> bool:
    # A panel, named by its members in brackets, would count them twice.
    return judge.rpartition("@")[0] not in _STRING_MATCHING and not judge.endswith(")")


def _exclusive(opened: Sheets) -> Table:
    columns = label_columns(_OPEN)
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run in opened.runs:
        rows.append((f"{run} / every match", (*metrics(opened, run, columns), _in_several(opened, run))))
        rows.append((f"{run} / one label", (*metrics(opened, run, columns, grid=_one_label(opened, run)), 0)))
    note = (
        "Every match: as counted by the published code (Table 10). One label: conflict before image before text, as the text "
        "describes four mutually exclusive categories (Appendix A.2). Several: answers in more than one column."
    )
    title = "Open-ended, every match beside one label an answer"
    return table(opened, "exclusive", title, (*columns, "several"), rows, note)


def _in_several(sheets: Sheets, run: str) -> int:
    judge = sheets.judge_of(run)
    return sheets.runs[run].count(lambda kind: len({*sheets.benchmark.counted_labels(kind, judge)}) > 1)[True]


def _one_label(sheets: Sheets, run: str) -> Grid:
    """Return the grid of a run's labels without flags, of which each answer has one."""
    judge = sheets.judge_of(run)

    def places(kind: AnswerKind, labels: tuple[str, ...]) -> Places:
        if labels and (verdict := kind.verdicts.get(judge)) is not None:
            alone = replace(kind, verdicts={judge: replace(verdict, flags=())})
            labels = sheets.benchmark.counted_labels(alone, judge) or labels
        return EVERY_MATCH.places(kind, labels)

    return Grid(SHAPE, places)


def _failures(base: Sheets) -> Table:
    judges: dict[str, str] = {}

    def select_judge(run: str, condition: str) -> str:
        return judges.setdefault(f"{run} / {condition}", judge_for(base, run, condition))

    table = failures_table(base.runs, base.judge, CONDITIONS, scope_note=_ENTERS, judge_for=select_judge)
    return replace(table, notes=(*table.notes, *judge_notes(judges, base.judge)))
