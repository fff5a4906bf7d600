"""Export: which formats, where to, and what was written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from app.exports.formats import ABOUT, FORMATS, USUAL, WrittenExport, usual_folder, write
from app.system.paths import exists, typed_path
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import RIGHT, WRONG
from app.tui.widgets.dialogs import Confirm
from app.tui.widgets.painted import Painted
from app.tui.widgets.ticks import CheckList
from benchmarks.errors import RashomonError

_HOW = (("canonical", "no times, memory, places"), ("page", "figures as wide as a page"))


class ExportScreen(RashomonScreen):
    """Formats as boxes, a folder, and how; the files with their sizes when it is done."""

    name_ = "export"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    ExportScreen #form { height: 1fr; }
    ExportScreen #what { width: 40; height: 1fr; background: $surface; }
    ExportScreen #what Ticks { height: 1fr; }
    ExportScreen #how { width: 1fr; height: 1fr; padding: 0 1; }
    ExportScreen .over { color: #909090; padding: 0 1; }
    ExportScreen #told { height: 1fr; min-height: 4; margin-top: 1; }
    """

    def __init__(self, folders: tuple[Path, ...], *, judge: str | None = None) -> None:
        super().__init__()
        self.folders, self.judge = folders, judge
        self.written: WrittenExport | None = None
        self.painted = Painted(Content("Folder"), classes="over")

    def shown_runs(self) -> tuple[Path, ...]:
        return self.folders

    def heading(self) -> Content:
        names = literal(", ".join(folder.name for folder in self.folders), "bold", limit=200)
        by = literal(f"  labels by {self.judge}", "$text-muted", limit=100) if self.judge else Content("")
        return Content("Export  ") + names + by

    def body(self) -> ComposeResult:
        with Horizontal(id="form"):
            with Vertical(id="what"):
                yield Static(Content("Formats"), classes="over")
                yield CheckList([(form, f"{form:<8}{ABOUT[form]}") for form in FORMATS], USUAL, id="formats")
            with Vertical(id="how"):
                yield self.painted
                yield Input(str(typed_path(usual_folder(self.folders))), id="folder")
                yield CheckList(_HOW, id="options")
                yield Button("Write (w)", id="write", variant="primary")
                with VerticalScroll(id="told"):
                    yield Static(id="said")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#formats"))

    @on(Button.Pressed, "#write")
    @on(Input.Submitted, "#folder")
    def _pressed(self) -> None:
        self.action_write()

    def action_write(self) -> None:
        """Write the chosen formats."""
        formats = self.query_one("#formats", CheckList).ticked
        if not formats:
            self._say("! mark a format first, with space", WRONG)
            return
        try:
            out = typed_path(self.query_one("#folder", Input).value)
        except RashomonError as error:
            self._say(f"! {error}", WRONG)
            return
        if exists(out):
            text = f"{out}\n\nis there already; files of the same names in it are replaced."
            self.app.push_screen(
                Confirm("Write into this folder?", text, yes="Write"),
                lambda yes: self._write(out, formats) if yes else None,
            )
        elif self.painted.displayed:
            self._write(out, formats)

    def _write(self, out: Path, formats: list[str]) -> None:
        folders, workspace, judge = self.folders, self.rashomon.workspace, self.judge
        options = self.query_one("#options", CheckList).ticked
        canonical, width = "canonical" in options, "page" if "page" in options else "column"
        self.query_one("#write", Button).disabled = True

        def step(what: str, done: int, total: int) -> None:
            self.later(self._say, f"◐ {what} …  {done} of {total}", "")

        def make() -> WrittenExport | str:
            try:
                return write(
                    workspace,
                    folders,
                    formats=formats,
                    out=out,
                    judge=judge,
                    canonical=canonical,
                    width=width,
                    step=step,
                )
            except RashomonError as error:
                return str(error)

        self.in_thread(make, self._wrote, group="export")

    def _wrote(self, found: WrittenExport | str) -> None:
        self.query_one("#write", Button).disabled = False
        if isinstance(found, str):
            self._say(f"! {found}", WRONG)
            return
        self.written = found
        told = [
            literal(f"✓ {len(found.files)} files, {_size(found.size)}, in {found.folder}", RIGHT),
            *(literal(f"{_size(size):>9}  {name}") for name, size in found.files),
        ]
        self.query_one("#said", Static).update(Content("\n").join(told))

    def _say(self, told: str, colour: str) -> None:
        self.query_one("#said", Static).update(literal(told, colour))


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
