"""The Your rows screen: checks a table of the user's own rows, shows the resulting conflicts, and builds from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import gettempdir
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from app.commands.building.sets_command import table_set_name
from app.new_run.custom_rows import LOGS, RowCells, rows_benchmark, table_path
from app.store.question_sets import set_name
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.latest_only import LatestOnly
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, PARTIAL, RIGHT, WRONG
from app.tui.tui_confirmations import confirm_build
from app.tui.widgets.form_field import Field
from app.tui.widgets.mapping_form import MappingForm
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.terminal_picture import Picture
from app.tui.widgets.titled_panel import panel
from app.tui.widgets.truncate_text import elide_middle
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.base import Benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import RashomonError, UnknownKeysError
from benchmarks.rows.files import Loader
from benchmarks.rows.row_checks import ReadRow, RowCheck, TableCheck
from benchmarks.untrusted.own_files import OwnFolder
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Instance, Media, Text

_QUESTION = 28
"""The most characters of a question in a line."""
_READ = 3
"""The number of first rows that are displayed as they are read."""


@dataclass(frozen=True, slots=True)
class _Checked:
    file: Path
    benchmark: Benchmark
    table_check: TableCheck


@dataclass(frozen=True, slots=True)
class _Unmapped:
    """A table whose keys the user has to name."""

    file: Path
    benchmark: Benchmark
    problem: UnknownKeysError


class OwnRowsScreen(RashomonScreen):
    """Check a table of your own rows and build from it. The selected row is shown as its prompt under each condition."""

    name_ = "rows"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self.benchmark = rows_benchmark()
        self.file: Path | None = None
        self.table_check: TableCheck | None = None
        self.mapping = ""
        """The keys of the table's columns, as ``--map`` has them."""
        self.activity = ""
        self._condition = 0
        self._cells: RowCells | None = None
        self._check_latest, self._show_latest = LatestOnly(self, "check"), LatestOnly(self, "picture")

    def heading(self) -> Content:
        status, check = self.activity, self.table_check
        if check is not None and not status:
            status = f"{check.usable} of {len(check.rows)} rows are valid"
        return Content(f"Your rows  {self.benchmark.name}  ") + literal(status, limit=300)

    def body(self) -> ComposeResult:
        yield Field("table", "table", "", "rows.csv, then Enter: columns image, question, answer", long=True)
        yield Field("reader", "reader", "", "a model that reads the images and passages of a log alone", long=True)
        yield Field("out", "build into", "", "the question set of the table's name", long=True)
        columns = (Column("", 2), Column("row", 16), Column("instances, or the problem", 0))
        table = VirtualTable(
            columns, empty="enter the path of an Excel (.xlsx), .ods, CSV, TSV or JSON table above", id="rows"
        )
        with VerticalScroll(id="remarks"):
            yield Static(id="remarks-text")
        yield panel(table, "Rows")
        yield panel(MappingForm(id="mapping"), "Which keys hold the columns? Tab, ↓ and ↑ move, Enter checks")
        with panel(Horizontal(id="row-detail"), "This row"):
            with VerticalScroll(id="texts"):
                yield Static(id="row-text")
            yield Picture()

    def on_mount(self) -> None:
        self.query_one("#field-reader").display = False  # until a retrieval log is checked
        self._show_form(False)
        self._pictures = OwnFolder(Path(gettempdir()))
        self.set_focus(self.query_one("#input-table"))

    def on_unmount(self) -> None:
        self._pictures.remove()

    # --- the table ------------------------------------------------------------------------------------

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.input.id == "input-table":
            self.mapping = ""
        elif event.input.parent is not None and event.input.parent.parent is self.query_one(MappingForm):
            self.mapping = self.query_one(MappingForm).mapping
        self.action_again()

    def action_again(self) -> None:
        """Read and check the table."""
        field = self.query_one("#field-table", Field)
        if not field.value.strip():
            field.show_problem("enter a file")
            return
        self._set_activity("◐ reading …")
        mapping = self.mapping

        def check() -> _Checked | _Unmapped | str:
            try:
                file = table_path(field.value)
                benchmark = rows_benchmark(file)
                try:
                    return _Checked(file, benchmark, benchmark.check_rows(file, BuildOptions(mapping=mapping)))
                except UnknownKeysError as error:
                    return _Unmapped(file, benchmark, error)
            except RashomonError as error:
                return str(error)

        self._check_latest.submit(check, self._show_check)

    # --- the keys of its columns ------------------------------------------------------------------------

    def _show_form(self, shown: bool) -> None:
        """Show the form for the keys in place of the rows, or the rows."""
        self.query_one("#mapping").display = shown
        for selector in ("#rows", "#row-detail"):
            self.query_one(selector).display = not shown
        self.query_one("#remarks").display = False

    def _ask_for_keys(self, unmapped: _Unmapped) -> None:
        self.file, self.benchmark, self.table_check = unmapped.file, unmapped.benchmark, None
        form = self.query_one(MappingForm)
        if not self.mapping:
            form.fill(unmapped.problem)
        self._show_form(True)
        self.update_title()
        form.focus_first()
        self._read_with_keys()

    @on(MappingForm.Changed)
    def _read_with_keys(self) -> None:
        """Read the first rows with the keys that are entered."""
        file, benchmark, mapping = self.file, self.benchmark, self.query_one(MappingForm).mapping
        if file is None or not self.query_one("#mapping").display:
            return

        def read() -> list[ReadRow] | str:
            try:
                return [*islice(benchmark.read_rows(file, mapping), _READ)]
            except RashomonError as error:
                return str(error)

        self._show_latest.submit(read, self.query_one(MappingForm).show_rows)

    def _show_check(self, checked: _Checked | _Unmapped | str) -> None:
        self._set_activity("")
        if isinstance(checked, str):
            self.rashomon.show_error(checked)
            return
        if isinstance(checked, _Unmapped):
            self._ask_for_keys(checked)
            return
        self._show_form(False)
        remarks = "; ".join(checked.table_check.remarks)
        self.query_one("#remarks-text", Static).update(literal(remarks, DIM))
        self.query_one("#remarks").display = bool(remarks)
        self.file, self.benchmark, self.table_check = checked.file, checked.benchmark, checked.table_check
        self._cells = RowCells(checked.file)
        self.query_one("#field-reader").display = self.benchmark.name == LOGS
        example = f"the question set {table_set_name(self.file)}; type another name, or a folder such as ./build"
        self.query_one("#field-out", Field).example(example)
        self.update_title()
        rows = self.table_check.rows
        table = self.query_one(VirtualTable)
        table.show(
            len(rows),
            lambda first, count: [_row(row) for row in rows[first : first + count]],
        )
        if self.focused is None or (self.focused.id or "").startswith(("input-table", "input-map-")):
            # Otherwise the user has moved on.
            self.set_focus(table)
        self._chosen()

    def _set_activity(self, activity: str) -> None:
        self.activity = activity
        self.update_title()

    def action_wrong(self) -> None:
        """Go to the next invalid row, wrapping around at the end."""
        if self.table_check is None:
            return
        table, rows = self.query_one(VirtualTable), self.table_check.rows
        for step in range(1, len(rows) + 1):
            place = (table.cursor + step) % len(rows)
            if not rows[place].usable:
                table.cursor = place
                return
        self.rashomon.toast("every row is valid")

    # --- the row under the cursor -----------------------------------------------------------------------

    @property
    def row(self) -> RowCheck | None:
        """The row under the cursor; None if there is none."""
        place, check = self.query_one(VirtualTable).cursor, self.table_check
        return check.rows[place] if check is not None and place < len(check.rows) else None

    @on(VirtualTable.Moved)
    def _chosen(self) -> None:
        self._condition = 0
        self._draw()

    def action_next(self) -> None:
        self._move(1)

    def action_previous(self) -> None:
        self._move(-1)

    def _move(self, step: int) -> None:
        instances = () if self.row is None else self.row.preview().instances
        if instances:
            self._condition = (self._condition + step) % len(instances)
            self._draw()

    def _draw(self) -> None:
        row = self.row if self.query("#row-text") else None  # the widgets are removed as the app closes
        if row is None:
            return
        preview = row.preview()
        if not preview.instances:
            self._draw_invalid(row, ())
            if self._cells is not None:
                self._show_latest.submit(partial(self._cells.of, row.where), partial(self._draw_invalid, row))
            return
        current = preview.instances[self._condition]
        lines = [literal(row.message, DIM)]
        lines += [literal(row.warning, PARTIAL)] if row.warning else []
        lines += [_line(instance, instance is current) for instance in preview.instances]
        self.update_static("#row-text", Content("\n").join([*lines, Content(""), _prompt(current)]))
        media = next((part for part in current.parts if isinstance(part, Media)), None)
        load = None if media is None else preview.media[media]
        self._show_latest.submit(partial(self._picture_file, media, load), partial(self.query_one(Picture).show, media))

    def _draw_invalid(self, row: RowCheck, cells: Sequence[tuple[str, str]]) -> None:
        """Show what is wrong with a row, how to fix it, and its cells."""
        if row != self.row or not self.query("#row-text"):  # the user has moved on, or the app closes
            return
        lines = [literal(row.message, "" if row.usable else WRONG)]
        lines += [literal(f"→ {row.fix}", PARTIAL)] if row.fix else []
        lines += [literal(f"{key}: ", DIM, limit=60) + literal(text, limit=300) for key, text in cells]
        self.update_static("#row-text", Content("\n").join(lines))
        self.query_one(Picture).show(None)

    def _picture_file(self, media: Media | None, load: Loader | None) -> Path | None:
        """Write a medium to a temporary file and return its path; the table may embed its images."""
        if media is None or load is None:
            return None
        path = self._pictures.path / media.name
        if not path.exists():
            path.write_bytes(load())
        return path

    # --- the build ----------------------------------------------------------------------------------

    def action_build(self) -> None:
        """Build from the valid rows, as the next version of a question set or into a folder; ask before a build is replaced."""
        if self.table_check is None or self.file is None or not self.table_check.usable:
            self.rashomon.toast("no valid rows to build from; check a table first", severity="warning")
            return
        typed = self.query_one("#field-out", Field).value.strip()
        out = self.rashomon.workspace.build_folder(self.benchmark.name)
        arguments = ["build", self.benchmark.name, "--from", str(self.file)]
        target = f"the question set {typed or table_set_name(self.file)}"
        try:
            if "/" in typed or typed.startswith((".", "~")):
                target = str(out := typed_path(typed))
                arguments += ["--out", target]
            elif typed:
                arguments += ["--name", set_name(typed)]
        except RashomonError as error:
            self.rashomon.show_error(error)
            return
        if self.mapping:
            arguments += ["--map", self.mapping]
        reader = self.query_one("#field-reader", Field).value.strip()
        if reader and self.benchmark.name == LOGS:
            arguments += ["--reader", reader]
        text = f"{self.table_check.usable} rows of {self.file}\ninto {target}"
        confirm_build(self, arguments, out, text=text)


def _row(row: RowCheck) -> Row:
    mark = ("!", PARTIAL) if row.warning else ("✓", RIGHT) if row.usable else ("✗", WRONG)
    instances = row.preview().instances
    question = elide_middle(" ".join(instances[0].question.split()), _QUESTION) if instances else ""
    return [[mark], row.where, f"{question} │ {row.message}" if question else row.message]


def _line(instance: Instance, marked: bool) -> Content:
    """Return a line with the condition and the reference of each source."""
    references = ", ".join(f"{source} {answers[0]}" for source, answers in instance.references.items() if answers)
    name = literal(f"{'▸' if marked else ' '} {instance.condition:<14}", "bold" if marked else "", limit=40)
    return name + literal(references, "" if marked else DIM, limit=200)


def _prompt(instance: Instance) -> Content:
    """Return the prompt's texts, with a placeholder for each image."""
    return literal(
        "".join(part.text if isinstance(part, Text) else "⟦image⟧" for part in instance.parts), newlines=True
    )
