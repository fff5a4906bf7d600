"""The Export screen: formats, folder and options, and the files written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from app.exports.expected_files import expected_files
from app.exports.export_formats import (
    DEFAULT_FORMATS,
    FORMAT_DESCRIPTIONS,
    FORMATS,
    WrittenExport,
    default_folder,
    export_runs,
)
from app.exports.export_input import ExportOptions
from app.tui.hostile_text import literal, sanitize
from app.tui.key_commands import bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, PARTIAL, RIGHT, WRONG
from app.tui.widgets.check_list import CheckList
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.displayed_text import DisplayedText
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import RashomonError
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from benchmarks.vocabulary import Table

_OPTIONS = (("canonical", "no times, memory, paths"), ("page", "figures as wide as a page"))


class ExportScreen(RashomonScreen):
    """Select formats and options, choose a folder, and write.

    The files that would be written are listed, and those that exist are marked; afterwards, the files with their sizes.
    """

    name_ = "export"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self, folders: tuple[Path, ...], *, judge: str | None = None) -> None:
        super().__init__()
        self.folders, self.judge = folders, judge
        self.written: WrittenExport | None = None
        self._tables: list[Table] | None = None
        """The tables of the runs; None until they have been computed."""
        self._writing = False
        self._messages = 0
        """The number of messages so far; a list of files that was begun before the last one is dropped."""
        self.painted = DisplayedText(Content("Created if it does not exist."), classes="label")

    def displayed_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        names = literal(", ".join(folder.name for folder in self.folders), "bold", limit=200)
        by = literal(f"  labels by {self.judge}", DIM, limit=100) if self.judge else Content("")
        return Content("Export  ") + names + by

    def body(self) -> ComposeResult:
        formats = [(form, f"{form:<8}{FORMAT_DESCRIPTIONS[form]}") for form in FORMATS]
        with Horizontal(id="form"):
            yield panel(CheckList(formats, DEFAULT_FORMATS, id="formats"), "Formats")
            with Vertical(id="options-side"):
                with panel(Vertical(id="folder-panel"), "Folder"):
                    yield Input(sanitize(typed_path(default_folder(self.folders))), id="folder", compact=True)
                    yield self.painted
                yield panel(CheckList(_OPTIONS, id="options"), "Options")
                with panel(VerticalScroll(id="report-scroll"), "Files"):
                    yield Button("Write (w)", id="write", variant="primary", compact=True)
                    yield Static(id="report")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#formats"))
        self._report("◐ reading the tables …", "")
        results, folders, judge = self.rashomon.results, self.folders, self.judge

        self.attempt(lambda: results.tables(folders, judge), self._show_tables, self._report_error, group="tables")

    def _show_tables(self, tables: list[Table]) -> None:
        self._tables = tables
        self._list_files()

    @on(CheckList.Changed)
    @on(Input.Changed, "#folder")
    def _list_files(self) -> None:
        """List the files that would be written, and mark those that exist."""
        if self._tables is None or self._writing:
            return
        formats = self.query_one("#formats", CheckList).checked
        canonical = "canonical" in self.query_one("#options", CheckList).checked
        names = expected_files(formats, self._tables, self.folders, canonical=canonical)
        typed, messages = self.query_one("#folder", Input).value, self._messages

        def work() -> set[str]:
            out = typed_path(typed)
            return {name for name in names if path_exists(out / name)}

        def show_error(error: RashomonError) -> None:
            if messages == self._messages:
                self._report_error(error)

        def show(existing: set[str]) -> None:
            if messages != self._messages:
                return
            replaced = f", replaces {len(existing)}" if existing else ""
            lines = [
                Content(f"w writes {_count(len(names))}{replaced}:") if names else Content("No format is selected.")
            ]
            lines += [
                literal(name, DIM) if name not in existing else literal(f"{name}  exists", PARTIAL) for name in names
            ]
            self.query_one("#report", Static).update(Content("\n").join(lines))

        self.attempt(work, show, show_error, group="export")

    @on(Button.Pressed, "#write")
    @on(Input.Submitted, "#folder")
    def _pressed(self) -> None:
        self.action_write()

    def action_write(self) -> None:
        """Write the selected formats."""
        formats = self.query_one("#formats", CheckList).checked
        if not formats:
            self._report("! select a format first, with space", WRONG)
            return
        try:
            out = typed_path(self.query_one("#folder", Input).value)
        except RashomonError as error:
            self._report_error(error)
            return
        if path_exists(out):
            text = f"{out}\n\nThe folder exists. Files of the same name in it are replaced."
            self.app.push_screen(
                Confirm("Write into this folder?", text, yes="Write"),
                lambda yes: self._write(out, formats) if yes else None,
            )
        elif self.painted.displayed:
            self._write(out, formats)

    def _write(self, out: Path, formats: list[str]) -> None:
        folders, workspace, judge = self.folders, self.rashomon.workspace, self.judge
        options = self.query_one("#options", CheckList).checked
        canonical, width = "canonical" in options, "page" if "page" in options else "column"
        self.query_one("#write", Button).disabled = self._writing = True

        def step(part: str, done: int, total: int) -> None:
            self.call_on_loop(self._report, f"◐ {part} …  {done} of {total}", "")

        def work() -> WrittenExport:
            options = ExportOptions(canonical, width)
            return export_runs(workspace, folders, formats=formats, out=out, judge=judge, options=options, step=step)

        def end() -> None:
            self.query_one("#write", Button).disabled = self._writing = False

        self.attempt(work, self._show_written, self._report_error, ended=end, group="export")

    def _show_written(self, export: WrittenExport) -> None:
        self.written = export
        lines = [
            literal(
                f"✓ {len(export.files)} file{'s' * (len(export.files) != 1)}, {_size(export.size)}, in {export.folder}",
                RIGHT,
            ),
            *(literal(f"{_size(size):>9}  {name}") for name, size in export.files),
        ]
        self.query_one("#report", Static).update(Content("\n").join(lines))

    def _report_error(self, error: RashomonError) -> None:
        self._report(f"! {error}", WRONG)

    def _report(self, message: str, colour: str) -> None:
        self._messages += 1
        self.query_one("#report", Static).update(literal(message, colour))


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
