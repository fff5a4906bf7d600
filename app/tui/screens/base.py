"""RashomonScreen: what every screen has: a title line, a footer, the workspace as it is now, and work in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from app.tui.commands import Command, commands_of
from app.tui.widgets.keys_line import KeysLine
from app.tui.workspace_watcher import Snapshot, WatchedRun

if TYPE_CHECKING:
    from app.tui.app import RashomonApp

T = TypeVar("T")


class RashomonScreen(Screen[Any]):
    """A screen of the app. A subclass gives ``name_``, ``BINDINGS = bindings(name_)``, and :meth:`body`.

    ``changed(snapshot)`` is called on the event loop when something in the workspace changed and the screen is shown, and once
    when it is first shown. ``in_thread`` does work without blocking the loop.
    """

    name_: ClassVar[str] = ""
    """The screen's name in ``app.tui.screens.SCREENS`` and in ``app.tui.commands``."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual declares them so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012

    DEFAULT_CSS = """
    RashomonScreen { background: $background; }
    RashomonScreen #title { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    RashomonScreen #body { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._then: dict[Worker[Any], Callable[[Any], None]] = {}
        self._written: dict[str, Content] = {}
        self.ready = False
        """Whether its widgets are there."""

    @property
    def rashomon(self) -> RashomonApp:
        """The app, as the type checker should know it."""
        app: Any = self.app
        found: RashomonApp = app
        return found

    def body(self) -> ComposeResult:
        """The widgets between the title line and the footer."""
        raise NotImplementedError

    def heading(self) -> Content:
        """What stands in the title line; text that is not ours through :func:`literal`."""
        return Content(self.name_.capitalize())

    def changed(self, snapshot: Snapshot) -> None:
        """The workspace has changed. Update only what differs."""

    def shown_runs(self) -> tuple[Path, ...]:
        """The runs that the screen is about; none where it is about none, or about all."""
        return ()

    def unsaved(self) -> str:
        """Return what would be lost if the screen were closed, in a sentence; empty where nothing would."""
        return ""

    def run_now(self, folder: Path) -> WatchedRun | None:
        """A run as it was when it was last looked at; None when it is gone."""
        return self.rashomon.snapshot.run(folder.name)

    def compose(self) -> ComposeResult:
        yield Static(self.heading(), id="title")
        yield from self.body()
        yield KeysLine()

    def retitle(self) -> None:
        """Write the title line again."""
        self.put("#title", self.heading())

    def on_mount(self) -> None:
        # Textual calls the on_mount of a subclass before this one by itself: no super().
        self.ready = True
        self.changed(self.rashomon.snapshot)

    def on_screen_resume(self) -> None:
        self.look()

    def look(self) -> None:
        """Hand over the workspace as it is now, if there is something to show it in."""
        if self.ready and self.is_running and self.query("#title"):  # as the app closes, they are gone again
            self.changed(self.rashomon.snapshot)

    def put(self, where: str, content: Content) -> None:
        """Write a Static's text, if it is another than the one that stands there: writing costs a layout."""
        if self._written.get(where) != content:
            self._written[where] = content
            self.query_one(where, Static).update(content)

    def in_thread(self, work: Callable[[], T], then: Callable[[T], None], *, group: str = "work") -> None:
        """Do ``work`` in a thread, then call ``then`` with what it returned on the event loop.

        Of a ``group`` only the newest counts: an earlier one's ``then`` is not called any more. What ``work`` raises is shown
        as an error that can be copied, in one sentence for a RashomonError; the app goes on.
        """
        for worker in [one for one in self._then if one.group == group]:
            del self._then[worker]
        worker = self.run_worker(work, thread=True, exit_on_error=False, group=group, exclusive=False)
        self._then[worker] = then

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state not in (WorkerState.SUCCESS, WorkerState.ERROR, WorkerState.CANCELLED):
            return
        then = self._then.pop(event.worker, None)
        if then is None:
            return
        if event.state == WorkerState.SUCCESS:
            then(event.worker.result)
        elif event.state == WorkerState.ERROR and event.worker.error is not None:
            self.rashomon.failed(event.worker.error)

    def describe(self, command: Command) -> str | None:
        """Return what a command is called here; None where there is no such thing now."""
        return command.title

    def key_help(self) -> list[str]:
        """The places whose commands work here, for the help page: the focused widget's first."""
        focused = getattr(self.focused, "name_", "")
        return [place for place in dict.fromkeys((focused, self.name_)) if place and commands_of(place)]

    def later(self, what: Callable[..., None], *arguments: Any) -> None:
        """Call ``what`` on the event loop, from any thread."""
        self.app.call_later(partial(what, *arguments))
