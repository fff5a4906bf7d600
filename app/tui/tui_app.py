"""RashomonApp, the application object; and :func:`open_app`, which `rashomon` calls on a terminal.

Imports inside functions keep start-up quick: the help page and everything that computes results are loaded on first use.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from app.exit_codes import INTERRUPTED
from app.store.run_trash import Trash
from app.store.workspace import Workspace
from app.tui.browser_page import open_page
from app.tui.hostile_text import sanitize, sanitize_paste
from app.tui.key_commands import EVERYWHERE, bindings, commands_of
from app.tui.key_queue import KeyQueue
from app.tui.keymap import format_keys, keymap
from app.tui.open_external import copy_on_mac
from app.tui.page_servers import PageServers
from app.tui.screen_services import Severity
from app.tui.screens import SCREENS
from app.tui.screens.base_screen import RashomonScreen
from app.tui.style_sheets import STYLES
from app.tui.terminal_watch import TerminalWatch
from app.tui.theme import THEME, legible_colours
from app.tui.tui_processes import RunProcesses
from app.tui.tui_settings import Settings, load_settings
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.command_palette import Palette
from app.tui.widgets.dialogs import Confirm, ErrorDialog, LeaveDialog
from app.tui.widgets.terminal_picture import best_mode
from app.tui.workspace_watcher import WatchedRun, WorkspaceSnapshot, WorkspaceWatcher
from benchmarks.errors import RashomonError, StoreError, did_you_mean
from benchmarks.plugins.find_plugins import plugin_fault

if TYPE_CHECKING:
    from app.compare.result_cache import ResultCache


class RashomonApp(App[int]):
    """The interface to a workspace.

    Screens use it as :class:`app.tui.screen_services.Services`.

    Attributes:
        workspace: The workspace on display.
        pages: The servers of the page in the browser.
        processes: Starts, pauses, stops and resumes runs.
        trash: The runs that were deleted in this session.
        snapshot: The workspace as of its last reading.
        under_cursor: The folder of the run under the cursor of Runs; empty where there is none.
        marked: The folders of the runs marked on Runs.
        images: How pictures are drawn: "sixel", "kitty", "blocks", "half" or "off".
        image_widget: The widget that draws pictures, None for our own.
        settings: The user's settings.
        settings_problems: One sentence for every invalid setting.
        keys: The user's key bindings by command id.
        key_queue: The queue that delivers keys and pastes.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(EVERYWHERE)
    CSS_PATH = STYLES
    TITLE = "rashomon"

    class WorkspaceChanged(Message):
        """The workspace has changed."""

        def __init__(self, snapshot: WorkspaceSnapshot) -> None:
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
        self.keys, key_problems = keymap(self.settings.keys)
        self.settings_problems = [*settings_problems, *key_problems]
        self._terminal = TerminalWatch(self)
        self.key_queue = KeyQueue(self, super().on_event)
        self.images = images
        self.image_widget = image_widget
        self._watching = watch
        self.processes = RunProcesses(workspace)
        self.pages = PageServers()
        self._use_workspace(workspace)
        self.register_theme(THEME)
        self._choose_theme()

    def _use_workspace(self, workspace: Workspace) -> None:
        self.workspace = self.processes.workspace = workspace
        self.trash = Trash(workspace)
        self.snapshot = WorkspaceSnapshot()
        self.under_cursor: tuple[Path, ...] = ()
        self.marked: tuple[Path, ...] = ()
        self._watcher = WorkspaceWatcher(workspace)

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's variables, and our colours as they can be read in it."""
        variables = super().get_css_variables()
        self.theme_variables = variables | legible_colours(variables)
        return self.theme_variables

    def _choose_theme(self) -> None:
        """Set the theme before anything is displayed: changing it later has all styles computed again."""
        theme = self.settings.theme
        if theme not in self.available_themes:
            self.settings_problems.append(f"theme: no theme {theme!r}; {did_you_mean(theme, self.available_themes)}")
            theme = THEME.name
        self.theme = theme

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, (events.Key, events.Paste, events.CursorPosition)) and not event.is_forwarded:
            if isinstance(event, events.Paste):
                event = events.Paste(sanitize_paste(event.text))
            self.key_queue.put(event)
        elif isinstance(event, events.MouseEvent) and not event.is_forwarded and not self.key_queue.accepts(event):
            return
        elif isinstance(event, events.Key) and not self.key_queue.accepts(event):
            return  # it has bubbled up from a screen on which a dialog has opened since, whose bindings would get it
        else:
            await super().on_event(event)

    def on_mount(self) -> None:
        self.key_queue.when_displayed(lambda: None)  # to know before the first dialog whether the terminal replies
        self._apply_settings()
        self.push_screen(SCREENS["runs"].screen_class()())
        self._start_watching()
        if self._watching:
            self.set_interval(1.0, self._report_failures)
        self._terminal.watch()

    def _start_watching(self) -> None:
        leftovers = self.trash.take_over()
        if leftovers:
            message = (
                f"deleted by a session that ended abnormally, or by --prune: {', '.join(leftovers)}; "
                "press u on Runs to restore, or quit to remove for good"
            )
            self.toast(message, severity="warning", title="Trash")
        if self._watching:
            self._watcher.start(lambda snapshot: self.post_message(self.WorkspaceChanged(snapshot)))

    def open_workspace(self, workspace: Workspace) -> None:
        """Switch to another workspace.

        Processes started in the current one keep running; runs deleted in it are removed for good.
        """
        self._watcher.stop()
        self.trash.empty()
        self._use_workspace(workspace)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(SCREENS["runs"].screen_class()())
        self._start_watching()

    def _apply_settings(self) -> None:
        """Set the keymap, and report every setting that was ignored."""
        self.set_keymap(self.keys)
        for problem in self.settings_problems:
            self.toast(problem, severity="warning", title="Settings")

    def on_unmount(self) -> None:
        self._terminal.restore()
        self._watcher.stop()
        self.pages.close()

    def on_rashomon_app_workspace_changed(self, message: WorkspaceChanged) -> None:
        if message.snapshot.workspace != self.workspace.path:
            return  # late news of the previous workspace
        self.snapshot = message.snapshot
        if self.screen_stack and isinstance(self.screen, RashomonScreen):
            self.screen.show_snapshot()

    def _report_failures(self) -> None:
        for process in self.processes.failures():
            self.show_error(f"rashomon {process.command} ended with code {process.code}: {process.last_line}")

    @cached_property
    def results(self) -> ResultCache:
        """The cache of computed tables and comparisons, shared by all screens."""
        from app.compare.result_cache import ResultCache

        return ResultCache()

    # --- what screens use ------------------------------------------------------------------------

    def open_screen(
        self, name: str, folders: Sequence[Path] | None = None, *, on_top: bool = False, query: str = ""
    ) -> None:
        """Open a screen, for ``folders`` if it needs runs (default: see :meth:`_default_runs`).

        It replaces whatever is above the list of runs; with ``on_top`` it is put on top, and Esc returns. ``query`` is the
        filter with which Samples opens, the build's folder for New run and Vary, or the section of Vary.
        """
        entry = SCREENS[name]
        runs = tuple(self._default_runs(name) if folders is None else folders)
        if entry.writes and not self.may_write():
            return
        if name == "compare" and folders is None and len(runs) < 2:
            self.toast("mark two or more runs with space to compare them")
        elif entry.needs != "nothing" and not runs:
            self.toast("choose a run first")
        elif entry.needs == "run" and len(runs) > 1:
            by_name = {folder.name: folder for folder in runs}

            def on_choice(run: str | None) -> None:
                if run is not None:
                    self.open_screen(name, [by_name[run]], on_top=on_top, query=query)

            self.push_screen(ChoiceDialog(f"{entry.title}: choose a run", list(by_name)), on_choice)
        else:
            self.confirm_discard(partial(self._show_screen, name, runs, on_top, query))

    def _show_screen(self, name: str, runs: tuple[Path, ...], on_top: bool, query: str) -> None:
        entry = SCREENS[name]
        arguments: dict[str, tuple[Any, ...]] = {"nothing": (), "run": runs[:1], "runs": (runs,)}
        if not on_top:
            while len(self.screen_stack) > 2:
                self.pop_screen()
        if name != "runs":
            self.push_screen(entry.screen_class()(*arguments[entry.needs], *[query] * bool(query)))

    def _default_runs(self, name: str) -> tuple[Path, ...]:
        """Return the runs to open a screen for when none are named.

        A screen of one run takes the run on display, else the one under the cursor of Runs. A screen of several runs takes
        those on display, else the marked ones, else the one under the cursor.
        """
        displayed = self.screen.displayed_runs() if isinstance(self.screen, RashomonScreen) else ()
        if SCREENS[name].needs == "run":
            return displayed or self.under_cursor
        if name == "compare" and len(displayed) < 2:
            return self.marked
        return displayed or self.marked or self.under_cursor

    def may_write(self) -> bool:
        """Return whether the workspace can be written to; show why not for a bundle."""
        try:
            self.workspace.require_writable()
        except StoreError as error:
            (command,) = (command for command in commands_of("runs") if command.action == "workspace")
            self.show_error(f"{error} {format_keys(command, self.keys)} in Runs opens another workspace.")
            return False
        return True

    def confirm_discard(self, then: Callable[[], object]) -> None:
        """Call ``then``, which closes the screen; ask first if unsaved input would be lost."""
        unsaved = self.screen.unsaved() if isinstance(self.screen, RashomonScreen) else ""
        if not unsaved:
            then()
            return

        def on_answer(yes: bool | None) -> None:
            if yes:
                then()

        self.push_screen(Confirm("Discard your input?", unsaved, yes="Discard", no="Stay"), on_answer)

    def action_go(self, name: str) -> None:
        if not self.screen.is_modal:
            self.open_screen(name)

    def action_page(self) -> None:
        """Open the page of the runs on display in the browser, at the instance on display."""
        if isinstance(self.screen, RashomonScreen):
            open_page(self.screen, self.pages, self._default_runs("tables"))

    def action_help(self) -> None:
        if isinstance(self.screen, RashomonScreen):
            from app.tui.screens.help_screen import HelpScreen

            self.push_screen(HelpScreen(self.screen))

    async def action_back(self) -> None:
        if len(self.screen_stack) > 2:
            self.confirm_discard(self.pop_screen)

    async def action_close(self) -> None:
        """Return to the previous screen; on the first one, quit as :meth:`action_leave` does."""
        if len(self.screen_stack) > 2:
            await getattr(self.screen, "action_back", self.action_back)()  # some screens have a step back of their own
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Quit at once if no run is active or the key is pressed twice; otherwise ask."""
        active = [run for run in self.snapshot.runs if run.active]
        if isinstance(self.screen, LeaveDialog):
            self.exit(0)
        elif not (active or self.processes.running_count()):
            self.confirm_discard(partial(self.exit, 0))
        else:
            self.push_screen(LeaveDialog([run.name for run in active]), partial(self._leave, active))

    def _leave(self, active: Sequence[WatchedRun], choice: str | None) -> None:
        if not choice:
            return
        if choice == "stop":
            try:
                self.processes.stop_all([run.folder for run in active])
            except RashomonError as error:
                self.show_error(error)
                return
        self.exit(0)

    def show_error(self, error: BaseException | str) -> None:
        """Show an error in a dialog from which it can be copied; the app keeps running."""
        if isinstance(error, (str, RashomonError)):
            message = str(error)
        elif (fault := plugin_fault(error)) is not None:
            message = str(fault)
        else:
            message = f"{type(error).__name__}: {error}\n\nThis is a bug in Rashomon. Your stored data is not affected."
        self.push_screen(ErrorDialog(message))

    def toast(self, message: object, *, severity: Severity = "information", title: str = "") -> None:
        """Show a notification that disappears by itself; ``message`` may be hostile."""
        self.notify(sanitize(message, limit=300), title=title, severity=severity, markup=False)

    def copy(self, text: str) -> None:
        """Copy a text verbatim: through the terminal (OSC 52), on a Mac also with `pbcopy`, as Terminal.app ignores OSC 52."""
        self.copy_to_clipboard(text)
        copy_on_mac(text)
        self.toast("copied")

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
                yield SystemCommand(command.title, f"{command.description} ({format_keys(command, self.keys)})", run)

    async def _run_command(self, action: str, screen: Screen[Any]) -> None:
        await self.run_action(action, screen)

    def _handle_exception(self, error: Exception) -> None:
        # A signal may end the interface while a screen opens, whose widgets are then gone.
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual's own traceback shows local variables, which could include an API key.
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        self._exit_renderables.append(Segments(self.console.render(Traceback(show_locals=False), self.console.options)))
        self._close_messages_no_wait()


def open_app(workspace: Workspace, *, images: str | None = None) -> int:
    """Open the interface on this terminal and return the exit code.

    Args:
        workspace: The workspace to open.
        images: How to draw pictures; overrides the user's settings.

    Raises:
        KeyboardInterrupt: If a signal has ended it.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # a library's warning has no place on the screen
    settings, problems = load_settings()
    mode, widget = best_mode(images or settings.images)
    app = RashomonApp(workspace, images=mode, image_widget=widget, settings=settings, settings_problems=problems)
    gc.freeze()  # collections then skip what importing has made, which takes half of the time of one
    app.run()
    if app.return_code == INTERRUPTED:
        raise KeyboardInterrupt
    if not app.return_code:  # after an error, the trash is left to the next session
        app.trash.empty()
    return app.return_code or 0
