"""Protocols of the app and its screens, as far as other modules use them.

Screens, widgets and helpers depend on these protocols rather than on the app, which imports all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from textual.theme import Theme
from textual.widget import Widget

from app.store.run_trash import Trash
from app.store.workspace import Workspace
from app.tui.key_queue import KeyQueue
from app.tui.tui_processes import RunProcesses
from app.tui.tui_settings import Settings
from app.tui.workspace_watcher import WorkspaceSnapshot
from benchmarks.errors import RashomonError

if TYPE_CHECKING:
    from app.compare.result_cache import ResultCache

T = TypeVar("T")
Severity = Literal["information", "warning", "error"]


class Services(Protocol):
    """The app as screens and widgets use it; :class:`app.tui.tui_app.RashomonApp` documents the attributes."""

    workspace: Workspace
    processes: RunProcesses
    trash: Trash
    snapshot: WorkspaceSnapshot
    under_cursor: tuple[Path, ...]
    marked: tuple[Path, ...]
    images: str
    image_widget: type[Widget] | None
    settings: Settings
    settings_problems: list[str]
    keys: dict[str, str]
    key_queue: KeyQueue

    @property
    def available_themes(self) -> dict[str, Theme]:
        """The themes by name."""

    @property
    def results(self) -> ResultCache:
        """The cache of computed tables and comparisons, shared by all screens."""

    def open_screen(
        self, name: str, folders: Sequence[Path] | None = None, *, on_top: bool = False, query: str = ""
    ) -> None:
        """Open a screen by name."""

    def may_write(self) -> bool:
        """Return whether the workspace can be written to; show why not for a bundle."""

    def open_workspace(self, workspace: Workspace) -> None:
        """Switch to another workspace."""

    def push_screen(self, screen: Any, callback: Callable[[Any], None] | None = None) -> Any:
        """Show a dialog and call ``callback`` with its result."""

    async def action_back(self) -> None:
        """Close the screen on top."""

    def show_error(self, error: BaseException | str) -> None:
        """Show an error in a dialog from which it can be copied."""

    def toast(self, message: object, *, severity: Severity = "information", title: str = "") -> None:
        """Show a notification; ``message`` may be hostile."""

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard."""


class BackgroundScreen(Protocol):
    """A screen that works in threads."""

    @property
    def rashomon(self) -> Services:
        """The app."""

    def attempt(
        self,
        work: Callable[[], T],
        done: Callable[[T], object] | None = None,
        failed: Callable[[RashomonError], object] | None = None,
        *,
        ended: Callable[[], object] | None = None,
        group: str = "work",
    ) -> None:
        """Run ``work`` in a thread, then call ``ended``, and ``done`` with the result or ``failed`` with the error."""
