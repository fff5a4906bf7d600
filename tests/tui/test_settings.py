"""Settings, help, the palette, the doctor: what the interface says of itself."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot

from app.doctor import CheckResult
from app.tui.key_commands import COMMANDS, EVERYWHERE
from app.tui.keymap import keymap
from app.tui.screens import SCREENS
from app.tui.screens.doctor_screen import DoctorScreen
from app.tui.screens.help_screen import HelpScreen
from app.tui.tui_app import RashomonApp
from app.tui.tui_settings import Settings, load_settings, settings_file
from tests.support.tui_stage import BOTH, Stage, drive, screen_text, until
from tests.tui.conftest import Snapshot
from tests.tui.test_hostile import PAYLOAD, assert_harmless

SECRET = "sk-secret-0123456789abcdef"


@pytest.fixture
def quiet(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Folders and keys of the test's own."""
    monkeypatch.setattr("app.tui.tui_settings.settings_file", lambda: tmp_path / "settings.toml")
    monkeypatch.setattr("app.tui.screens.settings_screen.settings_file", lambda: tmp_path / "settings.toml")
    monkeypatch.setattr(
        "mlx_backends.remote.api_keys._keychain", lambda name: SECRET if name == "GEMINI_API_KEY" else None
    )
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.delenv("RASHOMON_ENDPOINT_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    return stage


def opened(stage: Stage, file: Path) -> RashomonApp:
    """Return the interface with the settings in a file, as `rashomon` opens it."""
    settings, problems = load_settings(file)
    return RashomonApp(stage.workspace, images="half", settings=settings, settings_problems=problems)


@pytest.mark.parametrize("size", BOTH)
def test_settings_are_shown_without_any_key_and_kept(
    size: tuple[int, int], quiet: Stage, tmp_path: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "app.tui.screens.settings_screen.program_folders",
        lambda workspace: {"workspace": Path("/w"), "models": Path("/m")},
    )
    monkeypatch.setattr(
        "app.tui.screens.settings_screen._folder", lambda name, path: Content(f"{name:<12}{path}  9.9 GB free")
    )
    monkeypatch.setattr("app.tui.screens.settings_screen.settings_file", lambda: Path("/c/settings.toml"))
    file = tmp_path / "settings.toml"

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f2")
        await until(pilot, lambda: "keychain" in screen_text(app))
        assert re.search(r"✓ OPENAI_API_KEY +environment", screen_text(app))
        assert re.search(r"✓ GEMINI_API_KEY +keychain", screen_text(app))
        assert re.search(r"○ ANTHROPIC_API_KEY +not set", screen_text(app))
        assert SECRET not in screen_text(app)
        await snapshot(app, "settings")
        await pilot.press("j", "space", "tab", "G", "space")
        await until(pilot, lambda: load_settings(file)[0].images == "off")
        assert app.images == "off"
        assert app.theme == load_settings(file)[0].theme != "rashomon"

    drive(opened(quiet, file), script, size)
    assert SECRET not in file.read_text()
    again = opened(quiet, file)

    async def kept(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert app.theme == load_settings(file)[0].theme

    drive(again, kept)


def test_the_theme_in_use_is_in_view(quiet: Stage, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('theme = "textual-light"\n')

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f2")
        await until(pilot, lambda: "(•) textual-light" in screen_text(app))

    drive(opened(quiet, file), script, (80, 24))


def test_invalid_settings_are_reported_and_not_overwritten(quiet: Stage, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    text = (
        f'theme = "nrd"\nimages = "laser"\n[keys]\n"runs.filter" = "f12"\n"runs.fliter" = "x"\n{PAYLOAD[:5]!r} = "y"\n'
    )
    file.write_text(text)

    quiet.run("one")

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        assert app.theme == "rashomon"
        assert len(app.settings_problems) == 4
        await until(pilot, lambda: "did you mean 'nord'" in screen_text(app))
        await pilot.press("f12")
        await pilot.pause()
        assert app.focused is not None
        assert app.focused.id == "filter"
        await pilot.press("f2")
        await until(pilot, lambda: app.screen.name_ == "settings")  # type: ignore[attr-defined]
        await pilot.pause()
        assert_harmless(app)
        await pilot.press("j", "space")
        await pilot.pause()

    drive(opened(quiet, file), script)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"nothing": "x"}, "no command"),
        ({"runs.filter": "ctrl+m"}, "cannot distinguish ctrl+m from enter"),
        ({"runs.filter": "control-x y"}, "is not a key"),
        ({"runs.filter": ""}, "is not a key"),
        ({"runs.filter": "ctrl+q"}, "belongs to everywhere.leave"),
        ({"doctor.copy": "r"}, "belongs to doctor.again"),
    ],
)
def test_an_impossible_key_is_reported(asked: dict[str, str], says: str) -> None:
    good, (problem,) = keymap(asked)
    assert good == {}
    assert says in problem


def test_the_registry_has_no_two_commands_on_one_key() -> None:
    assert not [name for name, count in Counter(command.id for command in COMMANDS).items() if count > 1]
    for place in {command.where for command in COMMANDS}:
        keys = Counter(key for command in COMMANDS if command.where == place for key in command.keys.split(","))
        assert not [key for key, count in keys.items() if count > 1], place
    for command in COMMANDS:
        if command.action.startswith("app.go("):
            assert command.id.rpartition(".")[2] in SCREENS


@pytest.mark.parametrize("size", BOTH)
def test_help_is_about_the_focused_widget_and_the_screen(
    size: tuple[int, int], quiet: Stage, tmp_path: Path, snapshot: Snapshot
) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f3", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.pause()
        text = screen_text(app)
        assert "on this screen" in text
        await snapshot(app, "help-doctor")
        await pilot.press("escape", "1", "f12", "f1")
        await until(pilot, lambda: "You are typing" in screen_text(app))
        assert "f12" in screen_text(app)

    quiet.run("one")
    file = tmp_path / "settings.toml"
    file.write_text('[keys]\n"runs.filter" = "f12"\n')
    findings = [CheckResult("machine", True, "a machine")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.tui.screens.doctor_screen.examine", lambda workspace: iter(findings))
        drive(opened(quiet, file), script, size)


@pytest.mark.slow
def test_every_screen_without_a_run_has_help_of_its_own(quiet: Stage, tmp_path: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        for name, entry in SCREENS.items():
            if entry.needs == "nothing":
                app.open_screen(name)
                await until(pilot, lambda name=name: getattr(app.screen, "name_", "") == name)  # type: ignore[misc]
                await pilot.press("f1")
                await until(pilot, lambda: isinstance(app.screen, HelpScreen))
                await pilot.pause()
                assert f"Help: {entry.title}" in screen_text(app)
                assert "on this screen" in screen_text(app)
                await pilot.press("escape")
                await until(pilot, lambda: not isinstance(app.screen, HelpScreen))

    drive(opened(quiet, tmp_path / "none.toml"), script)


def test_the_palette_finds_a_command_and_does_it(quiet: Stage, tmp_path: Path) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("ctrl+p", *"doctor")
        await until(pilot, lambda: "Check this machine" in screen_text(app) and "(9 f3)" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: getattr(app.screen, "name_", "") == "doctor")

    drive(opened(quiet, tmp_path / "none.toml"), script)
    listed = [command for command in COMMANDS if command.palette and command.where == EVERYWHERE]
    assert {"everywhere.help", "everywhere.go.settings", "everywhere.go.new"} <= {command.id for command in listed}


@pytest.mark.parametrize("size", BOTH)
def test_the_doctor_shows_what_the_command_finds(
    size: tuple[int, int], quiet: Stage, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [
        CheckResult("machine", True, "Linux x86_64, 16.0 GB for models"),
        CheckResult("models", True, "0 models in a folder", "fetch one."),
        CheckResult("mlx", False, f"it said {PAYLOAD}", "install mlx again."),
    ]
    monkeypatch.setattr("app.tui.screens.doctor_screen.examine", lambda workspace: iter(findings))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f3")
        await until(pilot, lambda: "1 failed" in screen_text(app))
        await pilot.press("G")
        await until(pilot, lambda: "→ install mlx again" in screen_text(app))
        await pilot.pause()
        assert_harmless(app)
        await snapshot(app, "doctor")

    drive(quiet.app(), script, size)


def test_a_result_that_comes_after_the_screen_has_closed_is_dropped(
    quiet: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last result comes from its thread as the screen closes, whose widgets are gone by then."""
    findings = [CheckResult("machine", True, "a machine")]
    monkeypatch.setattr("app.tui.screens.doctor_screen.examine", lambda workspace: iter(findings))

    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f3")
        await until(pilot, lambda: "a machine" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, DoctorScreen)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen and not screen.query("#title"))
        screen.checking = True
        screen.call_on_loop(screen._finish)
        screen.call_on_loop(screen._add, findings[0])
        await pilot.pause()
        assert len(screen.results) == 1

    drive(quiet.app(), script)


def test_the_doctor_examines_this_machine(quiet: Stage) -> None:
    async def script(pilot: Pilot[Any], app: RashomonApp) -> None:
        await pilot.press("f3")
        await until(pilot, lambda: "keys" in screen_text(app) and "checking" not in screen_text(app))
        assert "mlx-vlm" in screen_text(app)
        assert SECRET not in screen_text(app)

    drive(quiet.app(), script)


def test_the_settings_file_is_in_the_users_configuration_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert settings_file().is_relative_to(tmp_path)
    assert settings_file().name == "settings.toml"
    assert Settings().theme == "rashomon"
