"""Dialog that runs a command of `rashomon`: what it would do, a confirmation, its progress, its end."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.exit_codes import VERDICTS
from app.tui.hostile_text import literal
from app.tui.screen_services import Services
from app.tui.tui_processes import Job
from app.tui.widgets.dialogs import Dialog
from benchmarks.errors import RashomonError

_POLL_SECONDS = 0.25
_LINES = 200


class Stage(Enum):
    """Stage of the dialog, with the words for it and the keys that work."""

    LOOKING = "◐ reading what it would do …   Esc cancels"
    ASKING = "y starts it, Esc cancels"
    RUNNING = "◐ running …   x stops it, Esc lets it run on"
    STOPPING = "◐ stopping …   what is complete is kept"
    DONE = "Esc closes"


class CommandDialog(Dialog[bool]):
    """A command, run after a confirmation; returns True once it has succeeded, or started.

    With ``closes`` the dialog closes itself then; otherwise it shows what the command printed until a key closes it. With
    ``detached`` it closes as soon as the command has started, and the app reports a failure.
    ``preview`` are the arguments of the command that prints what ``arguments`` would do; ``text`` is below what it prints.
    ``heading`` must be ours; everything that a command prints may be hostile.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "leave", "Close"),
        Binding("y", "start", "Start"),
        Binding("x", "stop", "Stop"),
    ]

    def __init__(
        self,
        services: Services,
        heading: str,
        arguments: Sequence[str],
        *,
        preview: Sequence[str] = (),
        text: str = "",
        closes: bool = False,
        detached: bool = False,
    ) -> None:
        super().__init__(Content(heading))
        self._services, self._heading = services, heading
        self._closes, self._detached = closes, detached
        self._arguments, self._preview = list(arguments), list(preview)
        self._question = self._text = text
        self._job: Job | None = None
        self._succeeded = False
        self.stage = Stage.LOOKING

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.painted
            with VerticalScroll():
                yield Static(literal(self._text, newlines=True), id="output")
            yield Static(Content(self.stage.value), classes="hint", id="hint")

    def on_mount(self) -> None:
        if self._preview:
            self._begin(self._preview, Stage.LOOKING)
        else:
            self._enter(Stage.ASKING)
        self.set_interval(_POLL_SECONDS, self._poll)

    def _begin(self, arguments: Sequence[str], stage: Stage) -> None:
        try:
            self._job = self._services.processes.start_job(arguments)
        except RashomonError as error:
            self._show(str(error))
            self._enter(Stage.DONE)
        else:
            self._enter(stage)

    def _enter(self, stage: Stage) -> None:
        """Go to a stage; no key counts for it before its text is on the terminal."""
        self.stage = stage
        self.painted.update(Content(self._heading))
        self.query_one("#hint", Static).update(Content(stage.value))

    def _show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.query_one("#output", Static).update(literal(text, newlines=True))
            self.query_one(VerticalScroll).scroll_end(animate=False)

    def _poll(self) -> None:
        job = self._job
        if job is None or self.stage in (Stage.ASKING, Stage.DONE):
            return
        code = job.code  # before the output, which is then complete
        output = "\n".join(job.output().splitlines()[-_LINES:])
        if code is None:
            self._show(output)
            return
        self._job = None
        if self.stage is Stage.LOOKING and code == 0:
            self._show("\n\n".join(filter(None, (output, self._question))))
            self._enter(Stage.ASKING)
            return
        self._show(output)
        self._succeeded = code in VERDICTS
        if self._succeeded and self._closes:
            self.dismiss(True)
            return
        self._heading += " ✓ done" if self._succeeded else " ✗ stopped" if code == 130 else " ✗ failed"
        self._enter(Stage.DONE)

    def action_start(self) -> None:
        if self.stage is Stage.ASKING and self.displayed:
            self._show("")
            self._begin(self._arguments, Stage.RUNNING)
            if self._detached and self._job is not None:
                self._job.attended = False
                self.dismiss(True)

    def action_stop(self) -> None:
        if self.stage is Stage.RUNNING and self.displayed and self._job is not None:
            self._job.stop()
            self._enter(Stage.STOPPING)

    def action_leave(self) -> None:
        """Close the dialog; a command that runs goes on, and the app reports its failure."""
        if self._job is not None and self.stage is Stage.LOOKING:
            self._job.stop()
        elif self._job is not None:
            self._job.attended = False
            self._services.toast(f"{self._heading}: goes on")
        self.dismiss(self._succeeded)
