"""The Settings screen: theme, pictures, what should win, API keys (never their values), folders and keymap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from app.store.workspace import Workspace
from app.system.project_paths import free_space
from app.tui.hostile_text import literal
from app.tui.key_commands import bindings
from app.tui.screen_services import Services
from app.tui.screens.base_screen import RashomonScreen
from app.tui.theme import DIM, HEADING, PARTIAL, RIGHT, THEME
from app.tui.tui_settings import Settings, save_settings, settings_file
from app.tui.widgets.choice_table import ChoiceOption, ChoiceTable
from app.tui.widgets.table_columns import Column
from app.tui.widgets.terminal_picture import MODES
from app.tui.widgets.titled_panel import panel
from benchmarks.errors import RashomonError
from benchmarks.fetch.hub_cache import hub_cache
from benchmarks.untrusted.private_folders import cache_folder
from mlx_backends.remote.api_keys import VARIABLES, key_source

_MODES = {
    "auto": "best available",
    "sixel": "on restart",
    "kitty": "on restart",
    "blocks": "finest blocks",
    "half": "half blocks",
    "off": "none",
}


NOT_SAID = "not said"
TRUST_WORDS: Mapping[str, str] = {NOT_SAID: NOT_SAID, "image": "the image", "text": "the text", "flag": "a flag on it"}
"""The choices of what should win where sources disagree, in words."""


class SettingsScreen(RashomonScreen):
    """Theme, pictures, what should win in a conflict, keys and folders. Space selects, which applies at once and is saved."""

    name_ = "settings"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def heading(self) -> Content:
        return Content("Settings  ") + literal(settings_file(), DIM)

    def body(self) -> ComposeResult:
        with Horizontal():
            yield panel(ChoiceTable((Column("name", 0), Column("", 5)), single=True, id="themes"), "Theme")
            yield panel(ChoiceTable((Column("mode", 8), Column("", 0)), single=True, id="images"), "Pictures")
            yield panel(ChoiceTable((Column("in a conflict", 0),), single=True, id="trust"), "What should win")
        with panel(VerticalScroll(can_focus=True), "API keys, folders, keyboard"):
            yield Static(id="facts")

    def on_mount(self) -> None:
        app = self.rashomon
        available = app.available_themes
        names = sorted(available, key=lambda name: (name != THEME.name, not available[name].dark, name))
        options = [ChoiceOption(name, [name, "dark" if available[name].dark else "light"]) for name in names]
        themes = self.query_one("#themes", ChoiceTable)
        themes.offer(options, choose=[self.app.theme])
        images = self.query_one("#images", ChoiceTable)
        images.offer([ChoiceOption(mode, [mode, _MODES[mode]]) for mode in MODES], choose=[app.settings.images])
        trust, said = self.query_one("#trust", ChoiceTable), app.settings.trust or NOT_SAID
        trust.offer([ChoiceOption(word, [words]) for word, words in TRUST_WORDS.items()], choose=[said])
        themes.cursor, images.cursor = names.index(self.app.theme), MODES.index(app.settings.images)
        trust.cursor = [*TRUST_WORDS].index(said)
        self.set_focus(themes)
        self.query_one("#facts", Static).update(self._facts({}))
        self.attempt(lambda: {name: key_source(name) for name in VARIABLES}, self._show_keys, group="keys")

    @on(ChoiceTable.Changed, "#themes")
    def _theme(self, event: ChoiceTable.Changed) -> None:
        self.app.theme = str(event.table.chosen[0])
        change_settings(self.rashomon, theme=self.app.theme)

    @on(ChoiceTable.Changed, "#images")
    def _images(self, event: ChoiceTable.Changed) -> None:
        mode = str(event.table.chosen[0])
        if mode in ("blocks", "half", "off"):
            self.rashomon.images, self.rashomon.image_widget = mode, None
        change_settings(self.rashomon, images=mode)

    @on(ChoiceTable.Changed, "#trust")
    def _trust(self, event: ChoiceTable.Changed) -> None:
        change_settings(self.rashomon, trust=str(event.table.chosen[0]))

    def _show_keys(self, locations: dict[str, str | None]) -> None:
        self.query_one("#facts", Static).update(self._facts(locations))

    def _facts(self, key_locations: dict[str, str | None]) -> Content:
        """Return the facts below the choices; ``key_locations`` is empty until the API keys are looked up."""
        app = self.rashomon
        lines = [Content.styled("! ", PARTIAL) + literal(problem) for problem in app.settings_problems]
        lines.append(Content.styled("API keys (never displayed or saved)", f"bold {HEADING}"))
        for name in VARIABLES:
            location = key_locations.get(name) if key_locations else "..."
            mark = Content.styled("✓ ", RIGHT) if location and key_locations else Content.styled("○ ", DIM)
            lines.append(mark + Content(f"{name:<24}{location or 'not set'}"))
        lines.append(_head("Folders"))
        lines += [_folder(name, path) for name, path in program_folders(app.workspace).items()]
        lines.append(_head("Keyboard"))
        file = literal(settings_file())
        lines.append(Content("[keys] in ") + file + Content(': "runs.filter" = "f"'))
        lines += [literal(f"{name} = {keys}", newlines=False) for name, keys in app.keys.items()]
        return Content("\n").join(lines)

    def action_copy(self) -> None:
        self.rashomon.copy(str(settings_file()))


def change_settings(app: Services, **changed: str) -> None:
    """Apply a setting and save it, unless the file has errors: it is not overwritten then."""
    app.settings = Settings.model_validate({**app.settings.model_dump(), **changed})
    if app.settings_problems:
        app.toast(f"applies until you quit; fix {settings_file()} to save it", severity="warning")
        return
    try:
        save_settings(app.settings)
    except RashomonError as error:
        app.show_error(error)


def program_folders(workspace: Workspace) -> dict[str, Path]:
    """Return the folders that Rashomon reads and writes, by name."""
    return {
        "workspace": workspace.path,
        "runs": workspace.runs_folder,
        "builds": workspace.path / "benchmarks",
        "models": hub_cache(),
        "cache": cache_folder(),
    }


def _folder(name: str, path: Path) -> Content:
    try:
        space = f"{free_space(path) / 1e9:.1f} GB free"
    except OSError:
        space = "cannot be read"
    note = f"{'' if path.exists() else 'does not exist yet, '}{space}"
    return Content(f"{name:<12}") + literal(path) + Content.styled(f"  {note}", DIM)


def _head(text: str) -> Content:
    return Content.styled(f"\n{text}", f"bold {HEADING}")
