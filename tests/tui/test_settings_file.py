"""The settings file: kept, read back, and no trouble when it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.tui.tui_settings import Settings, load_settings, save_settings
from benchmarks.errors import SpecError


def test_saved_settings_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "settings.toml"
    assert load_settings(file) == (Settings(), [])
    wanted = Settings(theme="nord", images="off", keys={"runs.filter": "f", "new.start": "f9,ctrl+r"})
    assert save_settings(wanted, file) == file
    assert load_settings(file) == (wanted, [])
    assert [entry.name for entry in file.parent.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    ("text", "left", "says"),
    [
        ('theme = "nord"\nimages = "laser"', Settings(theme="nord"), "images: input should be 'auto'"),
        ('theme = 3\nimages = "off"', Settings(images="off"), "theme"),
        ('themes = "nord"', Settings(), "did you mean 'theme'"),
        ('keys = "f"', Settings(), "keys"),
        ('[keys]\n"runs.filter" = 3\n"new.start" = "f9"', Settings(keys={"new.start": "f9"}), "keys.runs"),
        ("theme = ", Settings(), "cannot be read"),
        ("\x00", Settings(), "cannot be read"),
        ("theme = " + "[" * 5_000, Settings(), "cannot be read"),
    ],
)
def test_an_invalid_setting_falls_back_alone_and_is_reported(
    tmp_path: Path, text: str, left: Settings, says: str
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    settings, problems = load_settings(file)
    assert settings == left
    assert len(problems) == 1
    assert says in problems[0]


@given(st.binary(max_size=200))
def test_no_file_is_too_odd(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("odd") / "settings.toml"
    file.write_bytes(content)
    settings, problems = load_settings(file)
    assert problems or settings == load_settings(file)[0]


def test_a_folder_in_its_place_is_reported(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").mkdir()
    settings, problems = load_settings(tmp_path / "settings.toml")
    assert settings == Settings()
    assert problems
    with pytest.raises(SpecError, match="cannot write"):
        save_settings(Settings(theme="nord"), tmp_path / "settings.toml")
