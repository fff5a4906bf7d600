"""Export: which formats, where to, and what was written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Checkbox, Input, SelectionList, Static
from textual.widgets.selection_list import Selection

from app.exports.write import ABOUT, FORMATS, USUAL, Written, usual_folder, write
from app.paths import typed_path
from app.tui.commands import bindings
from app.tui.safe import literal
from app.tui.screens.base import RashomonScreen
from app.tui.theme import RIGHT, WRONG
from benchmarks.errors import RashomonError


class ExportScreen(RashomonScreen):
    """Formats as boxes, a folder, and how; the files with their sizes when it is done."""

    name_ = "export"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    ExportScreen #form { height: 1fr; }
    ExportScreen SelectionList { width: 44; height: 1fr; border: none; background: $surface; }
    ExportScreen.-narrow SelectionList { width: 36; }
    ExportScreen #how { width: 1fr; height: 1fr; padding: 0 1; }
    ExportScreen #how Input { height: 3; }
    ExportScreen Checkbox { border: none; padding: 0; background: $background; }
    ExportScreen Button { margin-top: 1; }
    ExportScreen #told { height: 1fr; min-height: 4; margin-top: 1; }
    """

    def __init__(self, folders: tuple[Path, ...]) -> None:
        super().__init__()
        self.folders = folders
        self.judge: str | None = None
        self.written: Written | None = None

    def heading(self) -> Content:
        names = literal(", ".join(folder.name for folder in self.folders), "bold", limit=200)
        return Content("Export  ") + names

    def body(self) -> ComposeResult:
        with Horizontal(id="form"):
            yield SelectionList[str](
                *(Selection(Content(f"{form:<8} {ABOUT[form]}"), form, form in USUAL) for form in FORMATS), id="formats"
            )
            with Vertical(id="how"):
                yield Static(Content("Folder"))
                yield Input(str(typed_path(usual_folder(self.folders))), id="folder")
                yield Checkbox("canonical: no times, memory, places", id="canonical")
                yield Checkbox("figures as wide as a page, not a column", id="page")
                yield Button("Write (w)", id="write", variant="primary")
                with VerticalScroll(id="told"):
                    yield Static(id="said")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#formats").focus()

    @on(Button.Pressed, "#write")
    @on(Input.Submitted, "#folder")
    def _pressed(self) -> None:
        self.action_write()

    def action_write(self) -> None:
        """Write the chosen formats."""
        chosen = set(self.query_one("#formats", SelectionList).selected)
        formats = [form for form in FORMATS if form in chosen]
        if not formats:
            self._say("! mark a format first, with space", WRONG)
            return
        folders, workspace, judge = self.folders, self.rashomon.workspace, self.judge
        out = Path(self.query_one("#folder", Input).value)
        canonical = self.query_one("#canonical", Checkbox).value
        width = "page" if self.query_one("#page", Checkbox).value else "column"
        self.query_one("#write", Button).disabled = True

        def step(what: str, done: int, total: int) -> None:
            self.later(self._say, f"◐ {what} …  {done} of {total}", "")

        def make() -> Written | str:
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

    def _wrote(self, found: Written | str) -> None:
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
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"
