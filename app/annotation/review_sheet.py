"""Spreadsheets of a review: one reviewer's rows as CSV, and back. Rows are matched by id, in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.annotation.review_session import Review, check_decision, review_item
from app.annotation.review_store import CHOICES, Decision, ReviewStore
from app.text.text_escaping import spreadsheet_cell, spreadsheet_line
from benchmarks.errors import SourceError, SpecError, did_you_mean
from benchmarks.review_guide import ReviewField
from benchmarks.rows.csv_rows import read_csv_rows
from benchmarks.rows.reader_types import Fields, RowProblem
from benchmarks.untrusted.spreadsheet_formula_guard import unguard_formulas

_OWN_COLUMNS = ("id", "decision", "reason", "level", "media", "reviewer", "build")
_BUILD_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ImportedSheet:
    """The counts of an imported sheet: new, changed and unchanged decisions, and rows without one or not in the file."""

    new: int
    changed: int
    unchanged: int
    undecided: int
    missing: int


def write_sheet(review: Review, store: ReviewStore, reviewer: str) -> str:
    """Return the rows under review as CSV, with this reviewer's decisions so far and nobody else's."""
    made = {decision.item: decision for decision in store.decisions(reviewer, adjudication=False)}
    ids = store.ids()
    columns: dict[str, None] = {}
    for identifier in ids:
        columns |= dict.fromkeys(_column(field) for field in review_item(review.guide, store, identifier).fields)
    grades = ["level"] if review.guide.grades else []
    lines = [spreadsheet_line(["id", "decision", "reason", *grades, *columns, "media", "reviewer", "build"])]
    for identifier in ids:
        item, decision = review_item(review.guide, store, identifier), made.get(identifier)
        corrections = decision.corrections if decision else {}
        texts = {_column(field): corrections.get(field.place, field.text) for field in item.fields}
        media = (f"media/{medium.media.name}" if medium.media else medium.problem for medium in item.media)
        cells = [
            identifier,
            decision.choice if decision else "",
            decision.reason if decision else "",
            *([decision.grade if decision else ""] if grades else []),
            *(texts.get(column, "") for column in columns),
            "\n".join(media),
            reviewer,
            review.build.digest[:_BUILD_DIGITS],
        ]
        lines.append(spreadsheet_line(cells))
    return "".join(lines)


def read_sheet(review: Review, store: ReviewStore, reviewer: str, path: Path) -> ImportedSheet:
    """Store the decisions of a sheet as those of ``reviewer``, all or none; a row that is blank or missing stays as it is.

    Raises SourceError, with the row's number in a spreadsheet, for a sheet of another build or reviewer, an unknown id, a row
    that occurs twice with different decisions, and a decision that is unknown or invalid.
    """
    known = set(store.ids())
    before = {decision.item: decision for decision in store.decisions(reviewer, adjudication=False)}
    read: dict[str, tuple[Decision, int]] = {}
    seen: set[str] = set()
    for number, cells in _rows(path):
        where = f"row {number} of {path.name}"
        for column, expected, what in (
            ("build", review.build.digest[:_BUILD_DIGITS], "state of the build"),
            ("reviewer", reviewer, "reviewer"),
        ):
            if (cell := _plain(cells.get(column, ""))) and cell != expected:
                raise SourceError(
                    f"{where} is of another {what} ({cell[:40]!r}); export the sheet again for {expected}."
                )
        identifier = _plain(cells.get("id", ""))
        if identifier not in known:
            raise SourceError(
                f"{where}: {identifier[:60]!r} is not the id of a row under review; copy the exported ids."
            )
        seen.add(identifier)
        decision = _decision(review, store, reviewer, identifier, cells, where)
        if decision is None:
            continue
        earlier, at = read.setdefault(identifier, (decision, number))
        if _said(earlier) != _said(decision):
            raise SourceError(f"{where} decides {identifier[:60]!r} otherwise than row {at}; keep one of them.")
    changed = [decision for decision, _ in read.values() if _said(decision) != _said(before.get(decision.item))]
    store.decide(*changed)
    new = sum(decision.item not in before for decision in changed)
    return ImportedSheet(
        new, len(changed) - new, len(read) - len(changed), len(seen - set(read)), len(known) - len(seen)
    )


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    empty = True
    for number, row in read_csv_rows(path):
        if isinstance(row, RowProblem):
            raise SourceError(f"row {number} of {path.name}: {row}.")
        if empty and not {"id", "decision"} <= set(row):
            missing = " and ".join(sorted({"id", "decision"} - set(row)))
            raise SourceError(f"{path.name} has no column {missing}; keep the exported header.")
        empty = False
        yield number, {str(name): str(cell) for name, cell in row.items()}
    if empty:
        raise SourceError(f"{path.name} has no row below its header; export the sheet again.")


def _decision(
    review: Review, store: ReviewStore, reviewer: str, identifier: str, cells: Fields, where: str
) -> Decision | None:
    word = _plain(cells["decision"]).casefold()
    edits = _edits(review_item(review.guide, store, identifier).fields, cells)
    if not word:
        if edits:
            raise SourceError(f"{where} has a changed text and no decision; write fix in the column decision.")
        return None
    choice = next((choice for choice in CHOICES if word in (choice, f"{choice}ed", f"{choice}d")), None)
    if choice is None:
        raise SourceError(f"{where}: {word[:40]!r} is no decision; {did_you_mean(word[:40], CHOICES)}")
    if edits and choice != "fix":
        raise SourceError(
            f"{where}: the decision is {choice}, but the texts at {', '.join(edits)} differ from the build; write fix, "
            "restore the texts, or delete their columns."
        )
    level = _plain(cells.get("level", "")).upper()
    decision = Decision(identifier, reviewer, choice, _plain(cells.get("reason", "")), edits, level)  # type: ignore[arg-type]
    try:
        check_decision(review.guide, store, decision)
    except SpecError as error:
        raise SourceError(f"{where}: {error}") from error
    return decision


def _edits(fields: tuple[ReviewField, ...], cells: Fields) -> dict[str, str]:
    """Return the texts that differ from those that an exported sheet shows, by place; an empty cell is no change."""
    edits = {}
    for field in fields:
        cell = _plain(cells.get(_column(field).lower(), ""))
        if field.editable and cell and cell != _plain(spreadsheet_cell(field.text)):
            edits[field.place] = cell
    return edits


def _said(decision: Decision | None) -> tuple[object, ...]:
    return () if decision is None else (*decision.content, decision.reason, decision.grade)


def _column(field: ReviewField) -> str:
    return field.heading if field.heading.lower() not in _OWN_COLUMNS else f"{field.heading} (text)"


def _plain(cell: str) -> str:
    return unguard_formulas(cell.replace("\r\n", "\n").strip()).strip()
