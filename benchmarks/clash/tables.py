"""The tables of the paper, and those that show what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.base import Record, Table
from benchmarks.clash.constants import (
    ATTRIBUTE_CATEGORIES,
    CONDITIONS,
    LABELS,
    OBJECT_CATEGORIES,
    RELATIONS,
    SEVERAL,
)
from benchmarks.clash.metrics import TASKS, LabelRate, distribution, figures, no_conflict
from benchmarks.clash.table_data import TableData, TableRun, instead
from benchmarks.failure_table import failures_table

__all__ = ["figures", "tables"]

Runs = Mapping[str, TableRun]

_CHOICE, _OPEN = "mc-conflicting", "open-conflicting"
_CONFLICT = LABELS.index("CONFLICT")
_STRING_MATCHING = ("strict", "relaxed", "published")
"""Judges that only compare strings; ``published`` is the flags that came with published predictions."""

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
    "Conflict: it is seen where there is one. No conflict: the image's answer is given to the original caption. "
    "Overall: both together."
)

_ENTERS = "Labelled and unparsed answers enter the other tables, unparsed ones (empty, or nothing but reasoning) as Incorrect."


def tables(runs: Mapping[str, Sequence[Record]], judge: str, *, resamples: int, seed: int) -> list[Table]:
    """Every table that the records fill: ``main``, each other one that has a row, and ``failures``.

    Figures are fractions. They rest on the labels of ``judge`` where it has looked at any of the answers in question,
    else on those of ``strict``; a table's notes say how it reads them and what it leaves out.
    """
    known = {label: TableRun(records) for label, records in runs.items()}

    def new() -> TableData:
        return TableData(judge, resamples, seed)

    made = [
        _main(known, judge, new()),
        _relaxed(known, judge, new()),
        _open_ended(known, judge, new()),
        _open_ended_all(known, judge, new()),
        _no_conflict(known, judge, new()),
        _no_conflict_open(known, judge, new()),
        *(_spatial(known, judge, new(), name) for name in _SPATIAL),
        *(_by_category(known, judge, new(), name) for name in _BY_CATEGORY),
        _modality_preference(known, judge, new()),
        _judges(known, new()),
        _exclusive(known, judge, new()),
        _failures(runs, known, judge),
    ]
    return [table for table in made if table.rows or table.name in ("main", "failures")]


def _main(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = distribution(_CHOICE)
    for label, run in runs.items():
        found = sheet.labelled(label, run, run.whose(judge, _CHOICE))
        sheet.add(label, found, run.under(_CHOICE), columns.values())
    return sheet.table("main", "Multiple choice (Table 1)", columns, _EVERY_MATCH)


def _relaxed(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = distribution(_CHOICE)
    for label, run in runs.items():
        if (where := run.under(_CHOICE)).any():
            found = sheet.labelled(label, run, run.newest("relaxed"))
            sheet.add(label, found, where, columns.values())
    return sheet.table("multiple-choice-relaxed", "Multiple choice, relaxed (Table 5)", columns, _EVERY_MATCH)


def _open_ended(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = {name: rate for name, rate in distribution(_OPEN).items() if name in ("Conflict", "Incorrect")}
    _fill(runs, judge, sheet, columns)
    return sheet.table("open-ended", "Open-ended (Table 2)", columns, _EVERY_MATCH)


def _open_ended_all(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = distribution(_OPEN)
    _fill(runs, judge, sheet, columns)
    return sheet.table("open-ended-all", "Open-ended, all columns (Table 10)", columns, _EVERY_MATCH)


def _no_conflict(runs: Runs, judge: str, sheet: TableData) -> Table:
    task = TASKS["multiple choice"]
    columns = no_conflict(*task)
    for label, run in runs.items():
        where = run.under(*task)
        # The judge that is asked for comes first, if it is neither of the paper's two.
        ids = dict.fromkeys((run.whose(judge, *task), run.newest("strict"), run.newest("relaxed")))
        for each in ids if where.any() else ():
            name = each.rpartition("@")[0] or each
            row = f"{label} / {name if name in _STRING_MATCHING else each}"
            sheet.add(row, run.by(each), where, columns.values())
    title = "Multiple choice with and without a conflict (Table 6)"
    return sheet.table("no-conflict", title, columns, _NO_CONFLICT, _EVERY_MATCH)


def _no_conflict_open(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = no_conflict(*TASKS["open-ended"]) | {"Incorrect": distribution(_OPEN)["Incorrect"]}
    _fill(runs, judge, sheet, columns)
    notes = (_NO_CONFLICT, "Incorrect: given the conflicting caption.", _EVERY_MATCH)
    return sheet.table("no-conflict-open", "Open-ended with and without a conflict (Table 3)", columns, *notes)


def _spatial(runs: Runs, judge: str, sheet: TableData, name: str) -> Table:
    condition, title = _SPATIAL[name]
    columns = distribution(condition)
    for label, run in runs.items():
        where = run.under(condition, spatial=True)
        if not where.any():
            continue
        found = sheet.labelled(label, run, run.whose(judge, condition))
        sheet.add(label, found, where, columns.values())
        for relation in RELATIONS:
            if (of_relation := where & (run.asked.relation == relation)).any():
                sheet.add(f"{label} / {relation}", found, of_relation, columns.values())
    return sheet.table(name, title, columns, _EVERY_MATCH)


def _by_category(runs: Runs, judge: str, sheet: TableData, name: str) -> Table:
    condition, change, title = _BY_CATEGORY[name]
    rate = (distribution(condition)["Conflict"],)
    in_several = 0
    for label, run in runs.items():
        where = run.under(condition) & (run.asked.change == change)
        if not where.any():
            continue
        found = sheet.labelled(label, run, run.whose(judge, condition))
        each = (where & (run.asked.category == category) for category in _CATEGORIES[change])
        sheet.rows.append((label, tuple(cell for of_one in each for cell in sheet.cells(found, of_one, rate))))
        in_several += int((where & found.counted & (run.asked.category == SEVERAL)).sum())
    notes = ["The share of answers that see the conflict, among all that match it or not."]
    if in_several:
        notes.append(f"In no column: answers whose changed words are of several kinds ({in_several:,}).")
    return replace(sheet.table(name, title, _CATEGORIES[change].values(), *notes), chart="bars")


def _modality_preference(runs: Runs, judge: str, sheet: TableData) -> Table:
    """Figures 6 and 7."""
    for task, (condition, _) in TASKS.items():
        columns = {name: rate for name, rate in distribution(condition).items() if name in ("Image", "Text")}
        for label, run in runs.items():
            if (where := run.under(condition)).any():
                found = sheet.labelled(label, run, run.whose(judge, condition))
                sheet.add(f"{label} / {task}", found, where & ~found.flags[:, _CONFLICT], columns.values())
    notes = ("Shares among the answers that do not see the conflict; the paper's text gives them among all answers.",)
    title = "Which source is followed where the conflict is not seen (Figures 6 and 7)"
    return replace(sheet.table("modality-preference", title, ("Image", "Text"), *notes), chart="stacked")


def _judges(runs: Runs, sheet: TableData) -> Table:
    columns = distribution(_OPEN)
    for label, run in runs.items():
        where = run.under(_OPEN)
        readers = [run.by(judge) for judge in sorted(run.judged) if _OPEN in run.judged[judge] and _reads(judge)]
        for reader in readers:
            sheet.add(f"{label} / {reader.judge}", reader, where, columns.values())
        if len(readers) > 1:
            by_all = where & np.logical_and.reduce([reader.counted for reader in readers])
            flags = [reader.flags for reader in readers]
            for name, combined in (("at least one", np.logical_or), ("both", np.logical_and)):
                row = f"{label} / {name if len(readers) == 2 or name != 'both' else 'all'}"
                sheet.add(row, readers[0], by_all, columns.values(), combined.reduce(flags))
    notes = (
        "The shares to which each judge gives the label, to which at least one does, and to which both do; the last two are of "
        "the answers that all of them have labelled.",
    )
    return sheet.table("judges", "Open-ended, by who judges (Table 11)", columns, *notes)


def _reads(judge: str) -> bool:
    # A panel, which is named by its members in brackets, would count them twice.
    return judge.rpartition("@")[0] not in _STRING_MATCHING and not judge.endswith(")")


def _exclusive(runs: Runs, judge: str, sheet: TableData) -> Table:
    columns = distribution(_OPEN)
    for label, run in runs.items():
        where = run.under(_OPEN)
        if not where.any():
            continue
        found = sheet.labelled(label, run, run.whose(judge, _OPEN))
        for name, flags in (("every match", found.flags), ("one label", found.one_label)):
            several = int((flags[where].sum(1) > 1).sum())
            cells = sheet.cells(found, where, columns.values(), flags)
            sheet.rows.append((f"{label} / {name}", (*cells, several)))
    notes = (
        "Every match: as the published code and Table 10 count. One label: conflict before image before text, as the text "
        "describes four categories that exclude each other (Appendix A.2). Several: answers in more than one column.",
    )
    title = "Open-ended, every match beside one label an answer"
    return sheet.table("exclusive", title, (*columns, "several"), *notes)


def _failures(runs: Mapping[str, Sequence[Record]], known: Runs, judge: str) -> Table:
    rows_of: dict[str, list[str]] = {}

    def whose(run: str, condition: str) -> str:
        found = known[run].whose(judge, condition)
        rows_of.setdefault(found, []).append(f"{run} / {condition}")
        return found

    table = failures_table(runs, judge, CONDITIONS, enters=_ENTERS, whose=whose)
    others = [instead(one, rows) for one, rows in rows_of.items() if one != judge] if len(rows_of) > 1 else []
    return replace(table, notes=(*table.notes, *others))


def _fill(runs: Runs, judge: str, sheet: TableData, columns: Mapping[str, LabelRate]) -> None:
    """A row for every run that was asked what the columns are about."""
    conditions = dict.fromkeys(condition for rate in columns.values() for condition in rate.conditions)
    for label, run in runs.items():
        if (where := run.under(*conditions)).any():
            found = sheet.labelled(label, run, run.whose(judge, *conditions))
            sheet.add(label, found, where, columns.values())
