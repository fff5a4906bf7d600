"""Question sets: the version that ``rashomon build --from`` records, and ``rashomon sets``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.json_output.builds_json import BuiltVersion, CellChange, RowChange, VersionChanges
from app.json_output.catalog_json import SetEntry, SetVersionEntry
from app.json_output.json_envelope import print_json
from app.report.runs.portable_facts import portable_message, portable_path
from app.store.question_set_changes import SetChanges, latest_changes
from app.store.question_set_writer import building, is_version_link, record_version, remove_set, restore_set
from app.store.question_sets import (
    QuestionSet,
    changed_media,
    default_name,
    is_own_build,
    read_set,
    set_folders,
    set_name,
    set_of_build,
    share_of_rows,
)
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.base import Benchmark
from benchmarks.build import Build, BuiltRow
from benchmarks.errors import AnotherBuildError, RashomonError, SpecError, StoreError
from benchmarks.rows.reader_types import shortened
from benchmarks.rows.workbook_rows import split_sheet
from benchmarks.untrusted.typed_paths import path_exists

_MOST_ROWS = 20
"""The number of changed rows that are listed one by one."""
_CELL = 40
"""The most characters of a cell in the list of changes."""


@dataclass(frozen=True)
class RecordedVersion:
    """The version of a set that a table was built as.

    Attributes:
        changes: The changes from the version before; None for the first version, and if nothing was changed.
        adopted: True if the build that was in the benchmark's folder before became the set's first version.
        moved_from: The table of the version before, if that was another one; else empty.
        is_same: True if this version was recorded before.
    """

    question_set: QuestionSet
    build: Build
    changes: SetChanges | None
    adopted: bool
    moved_from: str = ""
    is_same: bool = False

    def to_json(self) -> BuiltVersion:
        """Return the version for JSON."""
        return BuiltVersion(
            name=self.question_set.name,
            version=self.question_set.latest.number,
            moved_from=Path(self.moved_from).name or None,
            changes=None if self.changes is None else _changes_json(self.changes),
        )

    def print(self, *, every: bool) -> None:
        """Print the version, and what changed; with ``every`` all rows that did."""
        first, *rows = version_lines(self.question_set, self.changes)
        print(clean(f"{first}, as before" if self.is_same else first))
        if self.moved_from:
            print(f"  from {clean(self.question_set.table)}; the version before is from {clean(self.moved_from)}")
        for line in rows if every else rows[:_MOST_ROWS]:
            print(f"  {clean(line)}")
        if not every and len(rows) > _MOST_ROWS:
            print(f"  and {len(rows) - _MOST_ROWS} more rows; --all lists them")


@dataclass(frozen=True)
class _SetTarget:
    """The set that a table is being built into, and the folder ``out`` to build in."""

    workspace: Workspace
    benchmark: Benchmark
    name: str
    rows: Path
    seed: int
    replace: bool
    out: Path

    @property
    def _default(self) -> Path:
        return self.workspace.build_folder(self.benchmark.name)

    def record(self, build: Build) -> RecordedVersion:
        """Record a build as the next version. Raises SpecError if the set is of another table, AnotherBuildError."""
        before, adopted = self._earlier(build), False
        if (
            before is None
            and is_earlier_build(self._default, self.benchmark)
            and share_of_rows(self._default, build.path)
        ):
            built = datetime.fromtimestamp(int((self._default / "manifest.json").stat().st_mtime), UTC)
            before = self._record(Build.open(self._default), built)
            adopted = True
        elif os.path.lexists(self._default) and not is_version_link(self.workspace.path, self._default):
            if not self.replace:
                raise another_build(self._default)
            if self._default.is_dir() and not self._default.is_symlink():
                shutil.rmtree(self._default)
        question_set = self._record(build)
        recorded = Build.open(question_set.latest.build)
        is_new = before is None or before.latest.digest != recorded.digest
        changes = latest_changes(question_set) if is_new else None
        moved_from = before.table if before is not None and before.table != question_set.table else ""
        return RecordedVersion(question_set, recorded, changes, adopted, moved_from, is_same=not is_new)

    def _record(self, build: Build, built: datetime | None = None) -> QuestionSet:
        return record_version(self.workspace.path, self.name, build, table=str(self.rows), seed=self.seed, built=built)

    def _earlier(self, build: Build) -> QuestionSet | None:
        """Return the set so far, if it is this table's. Raises SpecError if it is another's."""
        earlier = set_of_build(self.out)
        if earlier is None or earlier.table == str(self.rows):
            return earlier
        shared = share_of_rows(earlier.latest.build, build.path)
        if not shared:
            raise SpecError(
                f"the set {earlier.name} is of another table, {earlier.table}, without a row of this one; choose another --name."
            )
        if shared < 0.5 and path_exists(split_sheet(Path(earlier.table))[0]):
            raise SpecError(
                f"the set {earlier.name} is of another table, {earlier.table}, and most rows of this one differ; choose another "
                "--name, or move that table away if this one replaces it."
            )
        return earlier


def table_set_name(rows: Path) -> str:
    """Return the name of a table's set, unless the user chooses another: that of the file, and of the sheet if one is named."""
    file, sheet = split_sheet(rows)
    return default_name("-".join(filter(None, (file.stem, sheet))))


@contextmanager
def set_target(
    workspace: Workspace, benchmark: Benchmark, rows: Path, *, name: str | None, seed: int, replace: bool
) -> Iterator[_SetTarget]:
    """Yield the set to build a table into, which no other process can build meanwhile; its default name is the file's.

    Raises SpecError for a name that is none or of another benchmark's set, AnotherBuildError if the benchmark's folder has a
    build that would be lost and ``replace`` is false, StoreError.
    """
    name = table_set_name(rows) if name is None else set_name(name)
    workspace.make()
    with building(workspace.path, name) as out:
        default = workspace.build_folder(benchmark.name)
        if (earlier := set_of_build(out)) is not None and earlier.benchmark != benchmark.name:
            raise SpecError(f"the set {earlier.name} is of {earlier.benchmark}; choose another --name.")
        is_lost = os.path.lexists(default) and not is_version_link(workspace.path, default)
        if is_lost and not replace and not is_earlier_build(default, benchmark):
            raise another_build(default)
        yield _SetTarget(workspace, benchmark, out.parent.name, rows, seed, replace, out)


def is_earlier_build(folder: Path, benchmark: Benchmark) -> bool:
    """Return whether a benchmark's folder has a build of a table, from before tables were sets."""
    return not folder.is_symlink() and is_own_build(folder, benchmark.rows_source)


def another_build(folder: Path) -> AnotherBuildError:
    """Return the error for a build in a benchmark's folder that is no version of a set."""
    return AnotherBuildError(
        f"{folder} contains another build; build into another folder with --out, or add --replace."
    )


def version_lines(question_set: QuestionSet, changes: SetChanges | None) -> list[str]:
    """Return a line on the newest version of a set, and one on each row that changed. They may be hostile."""
    first = f"version {question_set.latest.number} of the set {question_set.name}{_summary(question_set, changes)}"
    if changes is None:
        return [first]
    return [
        first,
        *(f"changed: {new.row}: {_in_words(_cell_changes(old, new))}" for old, new in changes.changed),
        *(f"added: {_row_text(row)}" for row in changes.added),
        *(f"removed: {_row_text(row)}" for row in changes.removed),
        *(f"left out now: {_row_text(row)}" for row in changes.left_out),
    ]


def _summary(question_set: QuestionSet, changes: SetChanges | None) -> str:
    """Return the end of a sentence about the newest version: how many rows changed."""
    if changes is None:
        return ""
    counts = {"changed": changes.changed, "added": changes.added, "removed": changes.removed}
    counts["left out now"] = changes.left_out
    rows = [f"{count_of(len(rows), 'row')} {word}" for word, rows in counts.items() if rows]
    before = question_set.versions[-2].number
    same = f"{changes.same_instances} of {changes.instances} instances are those of version {before}"
    return f": {', '.join(rows) or 'no row changed'}; {same}"


def _cell_changes(old: BuiltRow, new: BuiltRow) -> dict[str, list[Any]]:
    """Return the cells that differ, each with its value before and after."""
    columns = dict.fromkeys([*new.cells, *old.cells])
    pairs = {column: [old.cells.get(column), new.cells.get(column)] for column in columns}
    return {column: pair for column, pair in pairs.items() if pair[0] != pair[1]}


def _changes_json(changes: SetChanges) -> VersionChanges:
    changed = [
        RowChange(
            row=new.row,
            cells=tuple(
                CellChange(column=column, before=before, after=after)
                for column, (before, after) in _cell_changes(old, new).items()
            ),
        )
        for old, new in changes.changed
    ]
    return VersionChanges(
        added=tuple(row.row for row in changes.added),
        removed=tuple(row.row for row in changes.removed),
        left_out=tuple(row.row for row in changes.left_out),
        changed=tuple(changed),
        instances=changes.instances,
        same_instances=changes.same_instances,
    )


def _in_words(cells: dict[str, list[Any]]) -> str:
    texts = []
    for column, (old, new) in cells.items():
        if column in ("image", "images"):
            texts.append("another image" if column == "image" else "other images")
        else:
            before, after = (" | ".join(value) if isinstance(value, list) else str(value or "") for value in (old, new))
            differing = (place for place, (b, a) in enumerate(zip(before, after, strict=False)) if b != a)
            same = next(differing, min(len(before), len(after)))
            texts.append(f"{column} {_cell(before, same)} -> {_cell(after, same)}")
    return "; ".join(texts)


def _cell(text: str, same: int) -> str:
    """Return a cell in quotes; of a long one the part where it differs, behind the first ``same`` characters."""
    start = max(0, same - _CELL // 2) if len(text) > _CELL else 0
    part = " ".join(text[start : start + _CELL].split())
    return repr(f"{'…' * (start > 0)}{part}{'…' * (start + _CELL < len(text))}") if text else "(empty)"


def _row_text(row: BuiltRow) -> str:
    question = row.cells.get("question")
    return f"{row.row}: {shortened(' '.join(str(question).split()), 2 * _CELL)}" if question else row.row


def sets(workspace: Workspace, *, as_json: bool) -> None:
    """Print the question sets with their versions, and how many runs each version has."""
    entries: list[SetEntry] = []
    runs_by_data = workspace.runs_by_data()
    for folder in set_folders(workspace.path):
        try:
            entries.append(_set_entry(workspace, read_set(folder), runs_by_data))
        except StoreError as error:
            entries.append(SetEntry(name=folder.name, problem=str(error)))
    if as_json:
        print_json("sets", [_portable(entry, workspace) for entry in entries])
        return
    if not entries:
        print(
            f"no question sets in {clean(str(workspace.path))} yet; `rashomon build BENCHMARK --from TABLE` makes one."
        )
    for entry in entries:
        if entry.problem is not None:
            print(clean(f"{entry.name}  {entry.problem}"))
            continue
        print(clean(f"{entry.name}  {entry.benchmark}, from {entry.table}"))
        if entry.examples:
            print(f"    held out for a final decision: {entry.final_examples} of {entry.examples} examples")
        for version in entry.versions:
            built = datetime.fromisoformat(version.made).astimezone()
            facts = version.problem or f"{version.instances} instances, {count_of(len(version.runs), 'run')}"
            print(clean(f"    {entry.name}@{version.number}  built {built:%Y-%m-%d %H:%M}: {facts}"))


def _set_entry(workspace: Workspace, question_set: QuestionSet, runs_by_data: Mapping[str, list[str]]) -> SetEntry:
    versions, examples, final = list[SetVersionEntry](), 0, 0
    for version in question_set.versions:
        instances, problem = None, None
        try:
            build = Build.open(version.build)
            instances = build.manifest["instances"]
            if version == question_set.latest:
                examples, final = len(build.built_rows()), len(question_set.final_examples(build))
            if changed := changed_media(version.build):
                problem = (
                    f"it has {count_of(len(changed), 'changed or lost picture')}; building the table again repairs this"
                )
        except (RashomonError, OSError) as error:
            problem = str(error)
        versions.append(
            SetVersionEntry(
                number=version.number,
                digest=version.digest,
                made=version.made.isoformat(),
                folder=portable_path(version.build, workspace.path),
                instances=instances,
                problem=problem,
                runs=tuple(runs_by_data.get(version.digest, ())),
            )
        )
    return SetEntry(
        name=question_set.name,
        benchmark=question_set.benchmark,
        table=question_set.table,
        examples=examples,
        final_examples=final,
        versions=tuple(versions),
    )


def _portable(entry: SetEntry, workspace: Workspace) -> SetEntry:
    """Return a set without the folders of this machine."""

    def message(problem: str | None) -> str | None:
        return None if problem is None else portable_message(problem, workspace.path)

    versions = tuple(replace(version, problem=message(version.problem)) for version in entry.versions)
    table = None if entry.table is None else Path(entry.table).name
    return replace(entry, table=table, problem=message(entry.problem), versions=versions)


def remove(workspace: Workspace, name: str, *, yes: bool) -> int:
    """Remove a set and its versions after a confirmation; return the exit code. Raises SpecError without one."""
    workspace.require_writable()
    question_set = workspace.question_set(name)
    runs_by_data = workspace.runs_by_data()
    runs = sum(len(runs_by_data.get(data, ())) for data in {version.digest for version in question_set.versions})
    consequence = f"Its runs ({runs}) stay, but show no pictures and cannot resume without it."
    print(clean(f"the set {question_set.name} has {question_set.numbers}. {consequence}"))
    if not yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SpecError("removing needs confirmation; check the line above, then add --yes.")
        import click

        if not click.confirm("Remove it?", default=False):
            print("nothing was removed.")
            return 0
    folder = remove_set(workspace.path, question_set)
    restore = f"{workspace.command()} sets restore {question_set.name}"
    print(clean(f"removed; `{restore}` restores it. To free its space, delete {folder}."))
    return 0


def restore(workspace: Workspace, name: str) -> int:
    """Restore the set of that name that was removed last; return the exit code. Raises SpecError."""
    workspace.require_writable()
    restored = restore_set(workspace.path, name)
    print(clean(f"restored the set {restored.name}, with {restored.numbers}."))
    return 0
