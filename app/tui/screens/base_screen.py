"""Base class of the screens: a title line, a footer, the current state of the workspace, and work in threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from app.tui.key_commands import Command, commands_of
from app.tui.screen_services import Services
from app.tui.theme import DIM, HEADING
from app.tui.widgets.keys_line import KeysLine
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot
from benchmarks.errors import STOPPED, RashomonError

T = TypeVar("T")


class BlindError(RashomonError):
    """The page shows what this screen conceals."""

    exit_code = STOPPED


class _Attempt(NamedTuple):
    """The callbacks of work in a thread, as :meth:`RashomonScreen.attempt` takes them."""

    done: Callable[[Any], object] | None
    failed: Callable[[Any], object]
    ended: Callable[[], object] | None


class RashomonScreen(Screen[Any]):
    """A screen of the app. A subclass defines ``name_``, ``BINDINGS = bindings(name_)``, and :meth:`body`.

    :meth:`workspace_changed` is called on the event loop when the screen is first displayed, and then whenever the workspace
    changes while it is on display. :meth:`attempt` does work without blocking the loop.
    """

    name_: ClassVar[str] = ""
    """The screen's name in ``app.tui.screens.SCREENS`` and in ``app.tui.key_commands``."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual declares them so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self._attempts: dict[Worker[Any], _Attempt] = {}
        self._written: dict[str, Content] = {}
        """The text of each Static that :meth:`update_static` wrote, by selector."""
        self.ready = False
        """True once the screen's widgets are mounted."""

    @property
    def rashomon(self) -> Services:
        """The app, typed by what screens use of it."""
        return cast(Services, self.app)

    def body(self) -> ComposeResult:
        """Yield the widgets between the title line and the footer."""
        raise NotImplementedError

    def heading(self) -> Content:
        """Return the text of the title line; foreign text in it must go through :func:`literal`."""
        return Content(self.name_.capitalize())

    def workspace_changed(self, snapshot: WorkspaceSnapshot) -> None:
        """Update what differs after a change of the workspace."""

    def displayed_runs(self) -> tuple[Path, ...]:
        """Return the folders of the runs on display; empty if the screen concerns no run, or all of them."""
        return ()

    def page_at(self) -> str:
        """Return the id of the instance at which the page opens; empty for its beginning.

        Raises:
            BlindError: If the screen must not show what is on the page.
        """
        return ""

    def page_judge(self) -> str:
        """Return the judge that was chosen for what is on display; empty for the one that answers show by themselves."""
        return ""

    def unsaved(self) -> str:
        """Return one sentence naming the input that closing the screen would lose; empty if there is none."""
        return ""

    def current_run(self, folder: Path) -> WatchedRun | None:
        """Return a run as of the last reading of the workspace; None if it no longer exists."""
        return self.rashomon.snapshot.run(folder.name)

    def compose(self) -> ComposeResult:
        yield Static(self._title(), id="title")
        yield from self.body()
        yield KeysLine()

    def _title(self) -> Content:
        """Return the title line: the screen's name stands out, and what follows its two spaces is dimmed."""
        heading = self.heading()
        end = (heading.plain + "  ").index("  ")
        return heading.stylize_before(DIM, end).stylize(f"bold {HEADING}", 0, end)

    def update_title(self) -> None:
        """Redraw the title line."""
        self.update_static("#title", self._title())

    def on_mount(self) -> None:
        # Textual itself calls the on_mount of a subclass before this one: no super() there.
        self.ready = True
        self.workspace_changed(self.rashomon.snapshot)

    def on_screen_resume(self) -> None:
        self.show_snapshot()

    def show_snapshot(self) -> None:
        """Pass the latest snapshot to :meth:`workspace_changed`, provided that the widgets exist."""
        if self.ready and self.has_widgets:
            self.workspace_changed(self.rashomon.snapshot)

    @property
    def has_widgets(self) -> bool:
        """True until the screen's widgets are removed, as it or the app closes; a callback may come later."""
        return self.is_running and bool(self.query("#title"))

    def update_static(self, selector: str, content: Content) -> None:
        """Update a Static if its content differs, since every update costs a layout."""
        if self._written.get(selector) != content:
            self._written[selector] = content
            self.query_one(selector, Static).update(content)

    def attempt(
        self,
        work: Callable[[], T],
        done: Callable[[T], object] | None = None,
        failed: Callable[[RashomonError], object] | None = None,
        *,
        ended: Callable[[], object] | None = None,
        group: str = "work",
    ) -> None:
        """Run ``work`` in a thread; then, on the event loop, call ``ended``, and ``done`` with the result.

        If ``work`` raises a RashomonError, ``failed`` is called with it instead of ``done``. An error without ``failed``, and any
        other exception, is displayed in a dialog, and the app keeps running. Only the newest call of a ``group`` counts: the
        callbacks of earlier ones are dropped, also if ``ended`` makes the newer call.
        """
        for worker in [worker for worker in self._attempts if worker.group == group]:
            del self._attempts[worker]
        worker = self.run_worker(work, thread=True, exit_on_error=False, group=group, exclusive=False)
        self._attempts[worker] = _Attempt(done, failed or self.rashomon.show_error, ended)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state not in (WorkerState.SUCCESS, WorkerState.ERROR, WorkerState.CANCELLED):
            return
        attempt = self._attempts.get(event.worker)
        if attempt is None:
            return
        if event.state != WorkerState.CANCELLED and attempt.ended is not None:
            attempt.ended()
        if self._attempts.pop(event.worker, None) is None:  # replaced by a newer one
            return
        error = event.worker.error
        if event.state == WorkerState.SUCCESS and attempt.done is not None:
            attempt.done(event.worker.result)
        elif event.state == WorkerState.ERROR and error is not None:
            (attempt.failed if isinstance(error, RashomonError) else self.rashomon.show_error)(error)

    def describe(self, command: Command) -> str | None:
        """Return a command's title on this screen; None while the command is unavailable."""
        return command.title

    def key_help(self) -> list[str]:
        """Return the scopes whose commands the help page lists, the focused widget's first."""
        focused = getattr(self.focused, "name_", "")
        return [scope for scope in dict.fromkeys((focused, self.name_)) if scope and commands_of(scope)]

    def call_on_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call ``callback`` on the event loop, unless the screen has closed by then; may be used from any thread."""

        def call() -> None:
            if self.has_widgets:
                callback(*arguments)

        self.app.call_later(call)
