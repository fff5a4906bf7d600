"""Settings: how the interface looks, which keys and folders there are. Nothing here shows a key's value."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.store.workspace import Workspace
from app.system.paths import free_space
from app.tui.commands import bindings
from app.tui.hostile_text import literal
from app.tui.screens.base import RashomonScreen
from app.tui.settings import Settings, save_settings, settings_file
from app.tui.theme import DIM, PARTIAL, RIGHT
from app.tui.widgets.choice_table import ChoiceTable, Option
from app.tui.widgets.picture import MODES
from app.tui.widgets.virtual_table import Column
from benchmarks.errors import RashomonError
from mlx_backends.models.discovery import hub_cache
from mlx_backends.remote.api_keys import VARIABLES, place

_MODES = {
    "auto": "as the terminal can",
    "sixel": "from the next start",
    "kitty": "from the next start",
    "half": "blocks, everywhere",
    "off": "none",
}


class SettingsScreen(RashomonScreen):
    """Colours, pictures, keys and folders. Space chooses; what is chosen holds at once and is kept."""

    name_ = "settings"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)
    DEFAULT_CSS = """
    SettingsScreen #title { text-wrap: nowrap; text-overflow: ellipsis; }
    SettingsScreen Horizontal { height: 8; }
    SettingsScreen VerticalScroll { height: 1fr; padding: 0 1; }
    SettingsScreen.-tall Horizontal { height: 12; }
    """

    def heading(self) -> Content:
        return Content("Settings  ") + literal(settings_file(), DIM)

    def body(self) -> ComposeResult:
        with Horizontal():
            yield ChoiceTable((Column("colours", 0),), single=True, id="themes")
            yield ChoiceTable((Column("pictures", 8), Column("", 0)), single=True, id="images")
        with VerticalScroll(can_focus=True):
            yield Static(id="facts")

    def on_mount(self) -> None:
        app = self.rashomon
        dark = sorted(name for name, theme in app.available_themes.items() if theme.dark)
        names = ["rashomon", *(name for name in dark if name != "rashomon")]
        themes = self.query_one("#themes", ChoiceTable)
        themes.offer([Option(name, [name]) for name in names], choose=[app.theme])
        images = self.query_one("#images", ChoiceTable)
        images.offer([Option(mode, [mode, _MODES[mode]]) for mode in MODES], choose=[app.settings.images])
        self.set_focus(themes)
        self.query_one("#facts", Static).update(self._facts({}))
        self.in_thread(lambda: {name: place(name) for name in VARIABLES}, self._keys_found, group="keys")

    @on(ChoiceTable.Changed, "#themes")
    def _theme(self, event: ChoiceTable.Changed) -> None:
        self.app.theme = str(event.table.chosen[0])
        self._keep(theme=self.app.theme)

    @on(ChoiceTable.Changed, "#images")
    def _images(self, event: ChoiceTable.Changed) -> None:
        mode = str(event.table.chosen[0])
        if mode in ("half", "off"):
            self.rashomon.images, self.rashomon.image_widget = mode, None
        self._keep(images=mode)

    def _keep(self, **changed: str) -> None:
        """Keep a setting. One that the file has wrong is not written over: it is said instead."""
        app = self.rashomon
        app.settings = Settings.model_validate({**app.settings.model_dump(), **changed})
        if app.settings_problems:
            app.tell(f"it holds until you leave; mend {settings_file()} to have it kept", severity="warning")
            return
        try:
            save_settings(app.settings)
        except RashomonError as error:
            app.failed(error)

    def _keys_found(self, found: dict[str, str | None]) -> None:
        self.query_one("#facts", Static).update(self._facts(found))

    def _facts(self, found: dict[str, str | None]) -> Content:
        app = self.rashomon
        lines = [_head("Keys of remote engines (never shown, never written)")]
        for name in VARIABLES:
            where = found.get(name) if found else "..."
            mark = Content.styled("✓ ", RIGHT) if where and found else Content.styled("○ ", DIM)
            lines.append(mark + Content(f"{name:<24}{where or 'not set'}"))
        lines.append(_head("Folders"))
        lines += [_folder(name, path) for name, path in folders(app.workspace).items()]
        lines.append(_head("Keyboard"))
        file = literal(settings_file())
        lines.append(Content("a table [keys] in ") + file + Content(': "runs.filter" = "f"; ids stand in Help'))
        lines += [literal(f"{name} = {keys}", newlines=False) for name, keys in app.keys.items()]
        lines += [Content.styled("! ", PARTIAL) + literal(problem) for problem in app.settings_problems]
        return Content("\n").join(lines)

    def action_copy(self) -> None:
        self.rashomon.copy(str(settings_file()))


def folders(workspace: Workspace) -> dict[str, Path]:
    """The folders that Rashomon reads and writes."""
    from platformdirs import user_cache_path

    return {
        "workspace": workspace.path,
        "runs": workspace.runs_folder,
        "builds": workspace.path / "benchmarks",
        "models": hub_cache(),
        "cache": user_cache_path("rashomon"),
    }


def _folder(name: str, path: Path) -> Content:
    told = literal(path)
    try:
        free = f"{free_space(path) / 1e9:.1f} GB free"
    except OSError:
        free = "cannot be read"
    return Content(f"{name:<12}") + told + Content.styled(f"  {'' if path.exists() else 'not made yet, '}{free}", DIM)


def _head(text: str) -> Content:
    return Content.styled(f"\n{text}", "bold")
