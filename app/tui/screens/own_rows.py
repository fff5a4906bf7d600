"""Your rows: a table of one's own rows checked, the conflicts that come of them, and the build."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from app.new_run.custom_rows import rows_benchmark, table_path
from app.system.paths import exists, typed_path
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.latest_only import LatestOnly
from app.tui.screens.base import RashomonScreen
from app.tui.theme import PARTIAL, RIGHT, WRONG
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.field import Field
from app.tui.widgets.picture import Picture
from app.tui.widgets.virtual_table import Column, Row, VirtualTable
from benchmarks.base import Instance, Media, Text
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import RashomonError
from benchmarks.rows.own_rows import RowCheck, TableCheck


class OwnRowsScreen(RashomonScreen):
    """A table's path, its rows, and for the chosen one what it is asked as, condition by condition."""

    name_ = "rows"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    OwnRowsScreen Field { padding: 0 1; }
    OwnRowsScreen #rows { height: 1fr; }
    OwnRowsScreen #made { height: 12; background: $surface; }
    OwnRowsScreen.-tall #made { height: 20; }
    OwnRowsScreen #texts { width: 3fr; padding: 0 1; }
    OwnRowsScreen #texts Static { width: 1fr; }
    OwnRowsScreen Picture { width: 2fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.benchmark = rows_benchmark()
        self.file: Path | None = None
        self.found: TableCheck | None = None
        self.busy = ""
        self._condition = 0
        self._check_latest, self._show_latest = LatestOnly(self, "check"), LatestOnly(self, "picture")

    def heading(self) -> Content:
        told = self.busy
        if self.found is not None and not told:
            told = "; ".join([f"{self.found.usable} of {len(self.found.rows)} rows can be used", *self.found.remarks])
        return Content(f"Your rows  {self.benchmark.name}  ") + literal(told, limit=300)

    def body(self) -> ComposeResult:
        out = self.rashomon.workspace.build_folder(self.benchmark.name)
        yield Field("table", "table", "", "rows.csv, then Enter: columns image, question, answer", long=True)
        yield Field("out", "build into", "", str(out), long=True)
        columns = (Column("", 2), Column("row", 16), Column("what it becomes, or what is wrong", 0))
        yield VirtualTable(columns, empty="type the path of a CSV, TSV or JSON-lines file of your own", id="rows")
        with Horizontal(id="made"):
            with VerticalScroll(id="texts"):
                yield Static(id="told")
            yield Picture()

    def on_mount(self) -> None:
        self._pictures = TemporaryDirectory(prefix="rashomon-rows-")
        self.set_focus(self.query_one("#input-table"))

    def on_unmount(self) -> None:
        self._pictures.cleanup()

    # --- the table ------------------------------------------------------------------------------------

    @on(Input.Submitted)
    def _typed(self) -> None:
        self.action_again()

    def action_again(self) -> None:
        """Read the table that is typed."""
        typed = self.query_one("#field-table", Field)
        if not typed.value.strip():
            typed.wrong("name a file")
            return
        self._say("◐ reading …")

        def check() -> tuple[Path, TableCheck] | str:
            try:
                file = table_path(typed.value)
                return file, self.benchmark.check_rows(file, BuildOptions())
            except RashomonError as error:
                return str(error)

        self._check_latest.ask(check, self._checked)

    def _checked(self, found: tuple[Path, TableCheck] | str) -> None:
        self._say("")
        if isinstance(found, str):
            self.rashomon.failed(found)
            return
        self.file, self.found = found
        self.retitle()
        rows = self.found.rows
        table = self.query_one(VirtualTable)
        table.show(
            len(rows),
            lambda first, count: [_row(row) for row in rows[first : first + count]],
            keys=[row.where for row in rows],
        )
        if self.focused is None or self.focused.id == "input-table":  # else somebody types elsewhere by now
            self.set_focus(table)
        self._chosen()

    def _say(self, told: str) -> None:
        self.busy = told
        self.retitle()

    def action_wrong(self) -> None:
        """To the next row that cannot be used, round the end."""
        if self.found is None:
            return
        table, rows = self.query_one(VirtualTable), self.found.rows
        for step in range(1, len(rows) + 1):
            place = (table.cursor + step) % len(rows)
            if not rows[place].usable:
                table.cursor = place
                return
        self.rashomon.tell("every row can be used")

    # --- the row under the cursor -----------------------------------------------------------------------

    @property
    def row(self) -> RowCheck | None:
        """The row under the cursor."""
        place = self.query_one(VirtualTable).cursor
        return self.found.rows[place] if self.found is not None and place < len(self.found.rows) else None

    @on(VirtualTable.Moved)
    def _chosen(self) -> None:
        self._condition = 0
        self._draw()

    def action_next(self) -> None:
        self._turn(1)

    def action_previous(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        if self.row is not None and self.row.instances:
            self._condition = (self._condition + by) % len(self.row.instances)
            self._draw()

    def _draw(self) -> None:
        row = self.row if self.query("#told") else None  # as the app closes, it is gone again
        if row is None:
            return
        if not row.instances:
            mend = [literal(f"→ {row.mend}", PARTIAL)] if row.mend else []
            self.put("#told", Content("\n").join([literal(row.told, "" if row.usable else WRONG), *mend]))
            self._show_latest.ask(lambda: None, lambda _: self.query_one(Picture).show(None))
            return
        shown = row.instances[self._condition]
        lines = [_line(instance, instance is shown) for instance in row.instances]
        self.put("#told", Content("\n").join([*lines, Content(""), _asked(shown)]))
        media = next((part for part in shown.parts if isinstance(part, Media)), None)
        self._show_latest.ask(partial(self._picture_file, media), partial(self.query_one(Picture).show, media))

    def _picture_file(self, media: Media | None) -> Path | None:
        """The medium as a file; a table's images may come out of anything."""
        if media is None or self.found is None:
            return None
        path = Path(self._pictures.name) / media.name
        if not path.exists():
            path.write_bytes(self.found.media[media]())
        return path

    # --- the build ----------------------------------------------------------------------------------

    def action_build(self) -> None:
        """Build from the rows that can be used; a build that is there already is asked about."""
        if self.found is None or self.file is None or not self.found.usable:
            self.rashomon.tell("no row can be built from; check a table first", severity="warning")
            return
        typed = self.query_one("#field-out", Field).value.strip()
        try:
            out = typed_path(typed) if typed else self.rashomon.workspace.build_folder(self.benchmark.name)
        except RashomonError as error:
            self.rashomon.failed(error)
            return
        if exists(out):
            text = f"{out} is there already. The pictures of runs that were made of it go with it."
            self.app.push_screen(Confirm("Replace the build?", text, yes="Replace"), partial(self._build, out, True))
        else:
            text = f"{self.found.usable} rows of {self.file}, into {out}"
            self.app.push_screen(Confirm("Build?", text, yes="Build"), partial(self._build, out, False))

    def _build(self, out: Path, replace: bool, yes: bool | None) -> None:
        if not yes:
            return
        self._say("◐ building …")
        source = (self.benchmark.rows_source, str(self.file))

        def make() -> Build | str:
            try:
                return self.benchmark.build([source], out, BuildOptions(replace=replace))
            except RashomonError as error:
                return str(error)
            except OSError as error:
                return f"cannot build {out}: {error.strerror}; name another folder."

        self.in_thread(make, self._built, group="build")

    def _built(self, found: Build | str) -> None:
        self._say("")
        if isinstance(found, str):
            self.rashomon.failed(found)
            return
        told = f"built {found.manifest['instances']} instances in {found.path}; New run (ctrl+n) asks a model"
        self.rashomon.tell(told, title="Built")


def _row(row: RowCheck) -> Row:
    return [[("✓", RIGHT) if row.usable else ("✗", WRONG)], row.where, row.told]


def _line(instance: Instance, marked: bool) -> Content:
    """A condition, and what each of its sources says."""
    said = ", ".join(f"{source} {answers[0]}" for source, answers in instance.references.items() if answers)
    name = literal(f"{'▸' if marked else ' '} {instance.condition:<14}", "bold" if marked else "", limit=40)
    return name + literal(said, "" if marked else "#909090", limit=200)


def _asked(instance: Instance) -> Content:
    """The prompt's texts, an image by a mark in its place."""
    return literal(
        "".join(part.text if isinstance(part, Text) else "⟦image⟧" for part in instance.parts), newlines=True
    )
