"""The tables of the paper, and further ones for questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.answers import Answers
from benchmarks.clash.constants import (
    ATTRIBUTE_CATEGORIES,
    CONDITIONS,
    LABELS,
    OBJECT_CATEGORIES,
    RELATIONS,
    SEVERAL,
)
from benchmarks.clash.metrics import TASKS, LabelRate, label_columns, label_metrics, no_conflict_columns
from benchmarks.clash.table_data import TableBuilder, TableRun, other_judge_note
from benchmarks.failure_table import failures_table
from benchmarks.vocabulary import Table

__all__ = ["label_metrics", "tables"]

Runs = Mapping[str, TableRun]

_CHOICE, _OPEN = "mc-conflicting", "open-conflicting"
_CONFLICT = LABELS.index("CONFLICT")
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

_EVERY_MATCH = (
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


def tables(runs: Mapping[str, Answers], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Return every table that the answers fill: ``main``, each other one that has a row, and ``failures``.

    Metrics are fractions. They use the labels of ``judge`` if it has labelled any of the answers in question,
    else those of ``strict``; a table's notes state how it counts them and what it leaves out.
    """
    table_runs = {label: TableRun(answers) for label, answers in runs.items()}

    def new() -> TableBuilder:
        return TableBuilder(judge, resamples, seed)

    all_tables = [
        _main(table_runs, judge, new()),
        _relaxed(table_runs, judge, new()),
        _open_ended(table_runs, judge, new()),
        _open_ended_all(table_runs, judge, new()),
        _no_conflict(table_runs, judge, new()),
        _no_conflict_open(table_runs, judge, new()),
        *(_spatial(table_runs, judge, new(), name) for name in _SPATIAL),
        *(_by_category(table_runs, judge, new(), name) for name in _BY_CATEGORY),
        _modality_preference(table_runs, judge, new()),
        _judges(table_runs, new()),
        _exclusive(table_runs, judge, new()),
        _failures(runs, table_runs, judge),
    ]
    return [table for table in all_tables if table.rows or table.name in ("main", "failures")]


def _main(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = label_columns(_CHOICE)
    for label, run in runs.items():
        counts = builder.judge_labels(label, run, run.select_judge(judge, _CHOICE))
        builder.add(label, counts, run.select(_CHOICE), columns.values())
    return builder.table("main", "Multiple choice (Table 1)", columns, _EVERY_MATCH)


def _relaxed(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = label_columns(_CHOICE)
    for label, run in runs.items():
        if (where := run.select(_CHOICE)).any():
            counts = builder.judge_labels(label, run, run.newest_version("relaxed"))
            builder.add(label, counts, where, columns.values())
    return builder.table("multiple-choice-relaxed", "Multiple choice, relaxed (Table 5)", columns, _EVERY_MATCH)


def _open_ended(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = {name: rate for name, rate in label_columns(_OPEN).items() if name in ("Conflict", "Incorrect")}
    _fill(runs, judge, builder, columns)
    return builder.table("open-ended", "Open-ended (Table 2)", columns, _EVERY_MATCH)


def _open_ended_all(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = label_columns(_OPEN)
    _fill(runs, judge, builder, columns)
    return builder.table("open-ended-all", "Open-ended, all columns (Table 10)", columns, _EVERY_MATCH)


def _no_conflict(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    task = TASKS["multiple choice"]
    columns = no_conflict_columns(*task)
    for label, run in runs.items():
        where = run.select(*task)
        # The requested judge comes first, unless it is one of the paper's two.
        ids = dict.fromkeys(
            (run.select_judge(judge, *task), run.newest_version("strict"), run.newest_version("relaxed"))
        )
        for judge_id in ids if where.any() else ():
            name = judge_id.rpartition("@")[0] or judge_id
            row = f"{label} / {name if name in _STRING_MATCHING else judge_id}"
            builder.add(row, run.labels_by(judge_id), where, columns.values())
    title = "Multiple choice with and without a conflict (Table 6)"
    return builder.table("no-conflict", title, columns, _NO_CONFLICT, _EVERY_MATCH)


def _no_conflict_open(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = no_conflict_columns(*TASKS["open-ended"]) | {"Incorrect": label_columns(_OPEN)["Incorrect"]}
    _fill(runs, judge, builder, columns)
    notes = (_NO_CONFLICT, "Incorrect: given the conflicting caption.", _EVERY_MATCH)
    return builder.table("no-conflict-open", "Open-ended with and without a conflict (Table 3)", columns, *notes)


def _spatial(runs: Runs, judge: str, builder: TableBuilder, name: str) -> Table:
    condition, title = _SPATIAL[name]
    columns = label_columns(condition)
    for label, run in runs.items():
        where = run.select(condition, spatial=True)
        if not where.any():
            continue
        counts = builder.judge_labels(label, run, run.select_judge(judge, condition))
        builder.add(label, counts, where, columns.values())
        for relation in RELATIONS:
            if (of_relation := where & (run.instances.relation == relation)).any():
                builder.add(f"{label} / {relation}", counts, of_relation, columns.values())
    return builder.table(name, title, columns, _EVERY_MATCH)


def _by_category(runs: Runs, judge: str, builder: TableBuilder, name: str) -> Table:
    condition, change, title = _BY_CATEGORY[name]
    rate = (label_columns(condition)["Conflict"],)
    in_several = 0
    for label, run in runs.items():
        where = run.select(condition) & (run.instances.change == change)
        if not where.any():
            continue
        counts = builder.judge_labels(label, run, run.select_judge(judge, condition))
        masks = (where & (run.instances.category == category) for category in _CATEGORIES[change])
        builder.rows.append((label, tuple(cell for mask in masks for cell in builder.cells(counts, mask, rate))))
        in_several += int((where & counts.counted & (run.instances.category == SEVERAL)).sum())
    notes = ["The share of answers that detect the conflict, among all answers."]
    if in_several:
        notes.append(f"In no column: answers whose changed words belong to several categories ({in_several:,}).")
    return replace(builder.table(name, title, _CATEGORIES[change].values(), *notes), chart="bars")


def _modality_preference(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    """Return the shares of Figures 6 and 7, in both readings of what they are shares of."""
    for task, (condition, _) in TASKS.items():
        columns = {name: rate for name, rate in label_columns(condition).items() if name in ("Image", "Text")}
        for label, run in runs.items():
            if (where := run.select(condition)).any():
                counts = builder.judge_labels(label, run, run.select_judge(judge, condition))
                unseen = where & ~counts.flags[:, _CONFLICT]
                builder.add(f"{label} / {task}", counts, unseen, columns.values())
                builder.add(f"{label} / {task}, of all", counts, where, columns.values())
    notes = (
        "Shares among the answers that do not detect the conflict, as the figures are described. Rows that end in "
        '"of all": among all answers, as the text of the paper has them.',
    )
    title = "Which source is followed where the conflict is not seen (Figures 6 and 7)"
    return replace(builder.table("modality-preference", title, ("Image", "Text"), *notes), chart="stacked")


def _judges(runs: Runs, builder: TableBuilder) -> Table:
    columns = label_columns(_OPEN)
    for label, run in runs.items():
        where = run.select(_OPEN)
        readers = [run.labels_by(judge) for judge in sorted(run.judged) if _OPEN in run.judged[judge] and _reads(judge)]
        for reader in readers:
            builder.add(f"{label} / {reader.judge}", reader, where, columns.values())
        if len(readers) > 1:
            by_all = where & np.logical_and.reduce([reader.counted for reader in readers])
            flags = [reader.flags for reader in readers]
            for name, combined in (("at least one", np.logical_or), ("both", np.logical_and)):
                row = f"{label} / {name if len(readers) == 2 or name != 'both' else 'all'}"
                builder.add(row, readers[0], by_all, columns.values(), combined.reduce(flags))
    notes = (
        "The share of answers with the label by each judge, by at least one judge, and by both judges; the last two are among "
        "the answers that all judges have labelled.",
    )
    return builder.table("judges", "Open-ended, by who judges (Table 11)", columns, *notes)


def _reads(judge: str) -> bool:
    # A panel, named by its members in brackets, would count them twice.
    return judge.rpartition("@")[0] not in _STRING_MATCHING and not judge.endswith(")")


def _exclusive(runs: Runs, judge: str, builder: TableBuilder) -> Table:
    columns = label_columns(_OPEN)
    for label, run in runs.items():
        where = run.select(_OPEN)
        if not where.any():
            continue
        counts = builder.judge_labels(label, run, run.select_judge(judge, _OPEN))
        for name, flags in (("every match", counts.flags), ("one label", counts.exclusive_flags)):
            several_count = int((flags[where].sum(1) > 1).sum())
            cells = builder.cells(counts, where, columns.values(), flags)
            builder.rows.append((f"{label} / {name}", (*cells, several_count)))
    notes = (
        "Every match: as counted by the published code (Table 10). One label: conflict before image before text, as the text "
        "describes four mutually exclusive categories (Appendix A.2). Several: answers in more than one column.",
    )
    title = "Open-ended, every match beside one label an answer"
    return builder.table("exclusive", title, (*columns, "several"), *notes)


def _failures(runs: Mapping[str, Answers], known: Runs, judge: str) -> Table:
    rows_of: dict[str, list[str]] = {}

    def select_judge(run: str, condition: str) -> str:
        label_source = known[run].select_judge(judge, condition)
        rows_of.setdefault(label_source, []).append(f"{run} / {condition}")
        return label_source

    table = failures_table(runs, judge, CONDITIONS, scope_note=_ENTERS, judge_for=select_judge)
    others = (
        [other_judge_note(name, rows) for name, rows in rows_of.items() if name != judge] if len(rows_of) > 1 else []
    )
    return replace(table, notes=(*table.notes, *others))


def _fill(runs: Runs, judge: str, builder: TableBuilder, columns: Mapping[str, LabelRate]) -> None:
    """Add a row for every run that has answers under the columns' conditions."""
    conditions = dict.fromkeys(condition for rate in columns.values() for condition in rate.conditions)
    for label, run in runs.items():
        if (where := run.select(*conditions)).any():
            counts = builder.judge_labels(label, run, run.select_judge(judge, *conditions))
            builder.add(label, counts, where, columns.values())
