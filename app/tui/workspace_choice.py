"""The choice of another workspace: a demo's, the regular one, or any folder."""

from __future__ import annotations

from pathlib import Path

from app.store.bundles.bundle_opening import is_bundle_file
from app.store.workspace import DEMOS_FOLDER, Workspace
from app.tui.screen_services import BackgroundScreen, Services
from app.tui.widgets.choice_dialogs import ChoiceDialog
from app.tui.widgets.dialogs import Confirm, TextDialog
from benchmarks.errors import RashomonError, StoreError
from benchmarks.untrusted.typed_paths import typed_path

_OTHER_FOLDER = "another folder …"
_DEMO = "cmc-bench"
"""The benchmark of the demo that a key runs."""


def display_name(workspace: Workspace) -> str:
    """Return a workspace's name for a title; a demo's includes its parent folder, a bundle's is its file's."""
    path = workspace.path
    if workspace.read_only:
        return f"{workspace.bundle.name if workspace.bundle else 'a bundle'}, read-only"
    return f"{DEMOS_FOLDER}/{path.name}" if path.parent.name == DEMOS_FOLDER else path.name


def choose_workspace(screen: BackgroundScreen) -> None:
    """Switch to a demo's workspace, from there to the regular one, or to any other folder."""
    app = screen.rashomon
    current, regular = app.workspace.path, _regular_workspace(app.workspace)
    others = {str(other.path): other for other in (regular, *regular.demos()) if other.path != current}

    def on_choice(path: str | None) -> None:
        if path == _OTHER_FOLDER:
            _ask_for_folder(screen)
        elif path is not None:
            app.open_workspace(others[path])

    app.push_screen(ChoiceDialog("Open a workspace", [*others, _OTHER_FOLDER]), on_choice)


def open_demo(app: Services) -> None:
    """Open the newest demo's workspace; run the demo first if there is none, after a confirmation."""
    workspace = _regular_workspace(app.workspace)
    demos = workspace.demos()
    if demos:
        app.open_workspace(demos[0])
        return

    def on_answer(yes: bool | None) -> None:
        if not yes:
            return
        try:
            app.processes.start(["demo"])
        except StoreError as error:
            app.show_error(error)
        else:
            app.open_workspace(Workspace(workspace.path / DEMOS_FOLDER / _DEMO))

    text = (
        "A tiny model in two precisions, and baselines that ignore the input, answer questions on drawn charts. "
        "It takes a minute or two, and nothing is downloaded. o returns to this workspace."
    )
    app.push_screen(Confirm("Run the demo?", text, yes="Run"), on_answer)


def _regular_workspace(current: Workspace) -> Workspace:
    """Return the workspace on display, the one that the demo on display belongs to, or the user's beside a bundle."""
    if current.read_only:
        return Workspace.find()
    return Workspace(current.path.parent.parent) if current.path.parent.name == DEMOS_FOLDER else current


def _ask_for_folder(screen: BackgroundScreen) -> None:
    app = screen.rashomon

    def on_answer(path: str | None) -> None:
        if path is not None:
            screen.attempt(lambda: Workspace.find(Path(path)), app.open_workspace, group="open")

    text = "The path of its folder, or of a bundle:"
    app.push_screen(TextDialog("Open a workspace", text, check=_check_folder), on_answer)


def _check_folder(text: str) -> str:
    """Return one sentence if ``text`` is neither an existing folder nor a bundle."""
    try:
        is_place = bool(text) and (typed_path(text).is_dir() or is_bundle_file(typed_path(text)))
    except (OSError, ValueError, RashomonError):
        is_place = False
    return "" if is_place else "there is no such folder or bundle"
