"""RashomonApp: holds the screens together; and :func:`open_app`, what `rashomon` on a terminal calls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from app.engine.workers.run_control import batch_of
from app.store.run import RunStore
from app.store.trash import Trash
from app.store.workspace import Workspace
from app.tui.commands import EVERYWHERE, bindings, commands_of
from app.tui.confirmations import with_agreement
from app.tui.hostile_text import harmless
from app.tui.key_queue import KeyQueue
from app.tui.keymap import keymap, shown_keys
from app.tui.processes import RunProcesses
from app.tui.screens import SCREENS
from app.tui.screens.base import RashomonScreen
from app.tui.settings import Settings, load_settings
from app.tui.theme import THEME
from app.tui.widgets.choose import ChoiceDialog
from app.tui.widgets.dialogs import Confirm, ErrorDialog, LeaveDialog, StopDialog
from app.tui.widgets.palette import Palette
from app.tui.widgets.picture import best_mode
from app.tui.workspace_watcher import Snapshot, WatchedRun, WorkspaceWatcher
from benchmarks.base import did_you_mean
from benchmarks.errors import RashomonError

if TYPE_CHECKING:
    from app.tui.result_cache import ResultCache


class RashomonApp(App[int]):
    """The interface to a workspace.

    ``workspace``, ``jobs`` (starts and stops runs), ``trash`` (the runs that were deleted here), ``snapshot`` (the workspace as
    it is now), ``under_cursor`` and ``marked`` (the run under the cursor of Runs and those marked there), ``images`` (how
    pictures are drawn), ``results`` (what was computed of runs), :meth:`go`, :meth:`failed`, :meth:`tell`, :meth:`copy` are
    what screens use.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(EVERYWHERE)
    TITLE = "rashomon"

    class Looked(Message):
        """The workspace has changed."""

        def __init__(self, snapshot: Snapshot) -> None:
            self.snapshot = snapshot
            super().__init__()

    def __init__(
        self,
        workspace: Workspace,
        *,
        images: str = "half",
        image_widget: type[Widget] | None = None,
        watch: bool = True,
        settings: Settings | None = None,
        settings_problems: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self.keys, wrong_keys = keymap(self.settings.keys)
        self.settings_problems = [*settings_problems, *wrong_keys]
        self.key_queue = KeyQueue(self, super().on_event)
        self.images = images
        self.image_widget = image_widget
        self._watches = watch
        self.jobs = RunProcesses(workspace)
        self._use_workspace(workspace)
        self.register_theme(THEME)
        self._choose_theme()

    def _use_workspace(self, workspace: Workspace) -> None:
        self.workspace = self.jobs.workspace = workspace
        self.trash = Trash(workspace)
        self.snapshot = Snapshot()
        self.under_cursor: tuple[Path, ...] = ()
        self.marked: tuple[Path, ...] = ()
        self._watch = WorkspaceWatcher(workspace)

    def _choose_theme(self) -> None:
        """Before anything is on the screen: a theme that changes has all styles read anew."""
        theme = self.settings.theme
        if theme not in self.available_themes:
            told = f"theme: there is no theme {theme!r}; {did_you_mean(theme, self.available_themes)}"
            self.settings_problems.append(told)
            theme = THEME.name
        self.theme = theme

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.Key, events.Paste, events.CursorPosition)) and not event.is_forwarded:
            self.key_queue.put(event)
        elif isinstance(event, events.MouseEvent) and not event.is_forwarded and not self.key_queue.accepts(event):
            return
        else:
            await super().on_event(event)

    def on_mount(self) -> None:
        self.key_queue.when_displayed(lambda: None)  # to know before the first dialog whether the terminal answers
        self._use_settings()
        self.push_screen(SCREENS["runs"].screen_class()())
        self._begin_to_watch()
        if self._watches:
            self.set_interval(1.0, self._ended_jobs)

    def _begin_to_watch(self) -> None:
        left = self.trash.take_over()
        if left:
            told = f"deleted before, by an interface that did not end well: {', '.join(left)}"
            self.tell(f"{told}; u on Runs brings them back, leaving removes them", severity="warning", title="Trash")
        if self._watches:
            self._watch.start(lambda snapshot: self.post_message(self.Looked(snapshot)))

    def open_workspace(self, workspace: Workspace) -> None:
        """Show another workspace. What was started in this one goes on; what was deleted in it is removed for good."""
        self._watch.stop()
        self.trash.empty()
        self._use_workspace(workspace)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(SCREENS["runs"].screen_class()())
        self._begin_to_watch()

    def _use_settings(self) -> None:
        """The keys; what is wrong in the settings was set aside, and is said."""
        self.set_keymap(self.keys)
        for problem in self.settings_problems:
            self.tell(problem, severity="warning", title="Settings")

    def on_unmount(self) -> None:
        self._watch.stop()

    def on_rashomon_app_looked(self, message: Looked) -> None:
        if message.snapshot.workspace != self.workspace.path:
            return  # of the workspace that was shown before
        self.snapshot = message.snapshot
        if self.screen_stack and isinstance(self.screen, RashomonScreen):
            self.screen.look()

    def _ended_jobs(self) -> None:
        for job in self.jobs.ended():
            self.failed(f"rashomon {job.command} ended with code {job.code}: {job.said}")

    @cached_property
    def results(self) -> ResultCache:
        """The tables and comparisons that were computed, for all screens."""
        from app.tui.result_cache import ResultCache

        return ResultCache()

    # --- what screens use ------------------------------------------------------------------------

    def go(self, name: str, folders: Sequence[Path] | None = None, *, over: bool = False) -> None:
        """Go to a screen, of ``folders`` where it needs runs (default: see :meth:`_runs_for`).

        It takes the place of whatever is above the list of runs; with ``over`` it is put on top, and Esc comes back.
        """
        entry = SCREENS[name]
        runs = tuple(self._runs_for(name) if folders is None else folders)
        if entry.needs != "nothing" and not runs:
            self.tell("choose a run first")
        elif name == "compare" and folders is None and len(runs) < 2:
            self.tell("mark two runs or more with space to compare them")
        elif entry.needs == "run" and len(runs) > 1:
            by_name = {folder.name: folder for folder in runs}

            def chosen(run: str | None) -> None:
                if run is not None:
                    self.go(name, [by_name[run]], over=over)

            self.push_screen(ChoiceDialog(f"{entry.title}: of which run?", list(by_name)), chosen)
        else:
            self.unless_unsaved(partial(self._show, name, runs, over))

    def _show(self, name: str, runs: tuple[Path, ...], over: bool) -> None:
        entry = SCREENS[name]
        made: dict[str, tuple[Any, ...]] = {"nothing": (), "run": runs[:1], "runs": (runs,)}
        if not over:
            while len(self.screen_stack) > 2:
                self.pop_screen()
        if name != "runs":
            self.push_screen(entry.screen_class()(*made[entry.needs]))

    def _runs_for(self, name: str) -> tuple[Path, ...]:
        """The runs that a screen is opened for when a key names no other.

        What is about one run is of the run that the screen shows, else of the one under the cursor of Runs. What is about
        several is of those that the screen shows, else of the marked ones, else of the one under the cursor.
        """
        shown = self.screen.shown_runs() if isinstance(self.screen, RashomonScreen) else ()
        if SCREENS[name].needs == "run":
            return shown or self.under_cursor
        if name == "compare" and len(shown) < 2:
            return self.marked
        return shown or self.marked or self.under_cursor

    def unless_unsaved(self, then: Callable[[], object]) -> None:
        """Do something that closes the screen, after a question where what is typed on it would be lost."""
        lost = self.screen.unsaved() if isinstance(self.screen, RashomonScreen) else ""
        if not lost:
            then()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                then()

        self.push_screen(Confirm("Discard what is typed?", lost, yes="Discard", no="Stay"), answered)

    def action_go(self, name: str) -> None:
        if not self.screen.is_modal:
            self.go(name)

    def action_help(self) -> None:
        if isinstance(self.screen, RashomonScreen):
            from app.tui.screens.help import HelpScreen

            self.push_screen(HelpScreen(self.screen))

    async def action_back(self) -> None:
        if len(self.screen_stack) > 2:
            self.unless_unsaved(self.pop_screen)

    def action_leave(self) -> None:
        """Leave at once where no run goes on, or when it is asked for twice."""
        active = [run for run in self.snapshot.runs if run.active]
        if isinstance(self.screen, LeaveDialog):
            self.exit(0)
        elif not (active or self.jobs.going_on()):
            self.unless_unsaved(partial(self.exit, 0))
        else:
            self.push_screen(LeaveDialog(_leaving([run.name for run in active])), partial(self._leave, active))

    def _leave(self, active: Sequence[WatchedRun], how: str | None) -> None:
        if not how:
            return
        if how == "stop":
            try:
                self.jobs.stop_all([run.folder for run in active])
            except RashomonError as error:
                self.failed(error)
                return
        self.exit(0)

    # --- what can be done to a run ---------------------------------------------------------------

    def resume(self, run: WatchedRun) -> None:
        """Resume a run that is paused, or after a question one that is unfinished."""
        if run.summary.state == "paused":
            self._do(lambda: self.jobs.resume(run.folder), f"{run.name} goes on")
        elif run.resumable:
            try:
                RunStore.require_own(run.folder)
            except RashomonError as error:
                self.failed(error)
                return
            left = run.summary.total - run.summary.done
            text = f"{run.name}\n\n{left:,} of {run.summary.total:,} answers are missing; {run.summary.spec['model']} is asked."

            def answered(yes: bool | None) -> None:
                if yes:
                    self._resume(run)

            self.push_screen(Confirm("Resume?", text, yes="Resume"), answered)
        else:
            self.tell(f"{run.name} is {run.summary.state}; there is nothing to go on with")

    def pause_or_go_on(self, run: WatchedRun) -> None:
        """Pause a run that goes on; let one that is paused go on."""
        if run.summary.state == "paused":
            self._resume(run)
        elif run.active:
            self._do(lambda: self.jobs.pause(run.folder), f"{run.name} waits after the answers under way")
        else:
            self.tell(f"{run.name} is {run.summary.state}; there is nothing to pause")

    def _resume(self, run: WatchedRun) -> None:
        spec = run.summary.spec
        models = (spec.get("model"), *spec.get("judge", ()))
        with_agreement(
            self, models, lambda new: self._do(lambda: self.jobs.resume(run.folder, new), f"{run.name} goes on")
        )

    def stop_run(self, run: WatchedRun) -> None:
        """Stop a run at the next answer; where a batch would begin another after it, ask which of the two is meant."""
        if not run.active:
            self.tell(f"{run.name} is {run.summary.state}; there is nothing to stop")
            return
        heading, text = (
            "Stop?",
            f"{run.name}\n\nIt stops at the next answer; what is answered is kept, and R resumes it.",
        )

        def stop(how: str | bool | None) -> None:
            if how == "batch":
                self._do(lambda: self.jobs.stop_batch(run.folder), f"{run.name} and its batch stop at the next answer")
            elif how:
                self._do(lambda: self.jobs.stop(run.folder), f"{run.name} stops at the next answer")

        if batch_of(run.folder) is None:
            self.push_screen(Confirm(heading, text, yes="Stop"), stop)
        else:
            text += "\n\nA batch works on it: after this run it begins its next one, unless the whole batch is stopped."
            self.push_screen(StopDialog(text), stop)

    def _do(self, work: Callable[[], None], told: str) -> None:
        try:
            work()
        except RashomonError as error:
            self.failed(error)
        else:
            self.tell(told)

    def failed(self, error: BaseException | str) -> None:
        """Show what went wrong, so that it can be copied; the app goes on."""
        if isinstance(error, (str, RashomonError)):
            told = str(error)
        else:
            told = f"{type(error).__name__}: {error}\n\nThis is a bug in Rashomon; what is stored is not touched by it."
        self.push_screen(ErrorDialog(told))

    def tell(self, message: object, *, severity: Any = "information", title: str = "") -> None:
        """A line that goes away by itself; ``message`` may be hostile."""
        self.notify(harmless(message, limit=300), title=title, severity=severity, markup=False)

    def copy(self, text: str) -> None:
        """Copy a text as it is: by the terminal (OSC 52), and by `pbcopy` on a Mac, whose Terminal.app ignores OSC 52."""
        self.copy_to_clipboard(text)
        if sys.platform == "darwin" and shutil.which("pbcopy"):
            subprocess.run(["pbcopy"], input=text.encode("utf-8", "replace"), check=False)
        self.tell("copied")

    # --- Textual's -------------------------------------------------------------------------------

    def action_command_palette(self) -> None:
        """Show the palette of commands."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        place = getattr(screen, "name_", "")
        for command in commands_of(place, EVERYWHERE):
            if command.palette:
                run = partial(self._run_command, command.action, screen)
                yield SystemCommand(command.title, f"{command.description} ({shown_keys(command, self.keys)})", run)

    async def _run_command(self, action: str, screen: Screen[Any]) -> None:
        await self.run_action(action, screen)

    def _fatal_error(self) -> None:
        # Textual's own shows local variables, and a key could be among them.
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        self._exit_renderables.append(Segments(self.console.render(Traceback(show_locals=False), self.console.options)))
        self._close_messages_no_wait()


def _leaving(names: Sequence[str]) -> str:
    """What leaving means to the runs that go on; what was started may not have come to a run yet."""
    going_on = (
        f"{', '.join(names)} {'goes' if len(names) == 1 else 'go'} on." if names else "What was started here goes on."
    )
    return (
        f"{going_on}\n\nLeave: nothing stops, and `rashomon` shows it again.\n"
        "Stop: at the next answer, and nothing after it begins; what is answered is kept, R goes on with it."
    )


def open_app(workspace: Workspace, *, images: str | None = None) -> int:
    """Open the interface on this terminal; the exit code. ``images`` goes before what the settings say."""
    settings, problems = load_settings()
    mode, widget = best_mode(images or settings.images)
    app = RashomonApp(workspace, images=mode, image_widget=widget, settings=settings, settings_problems=problems)
    app.run()
    if not app.return_code:  # after an error they are left to the next one
        app.trash.empty()
    return app.return_code or 0
