"""The user's settings of the interface: a small file, checked when it is read. What is wrong in it falls back, and is said."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict

from app.run_spec import problems
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError
from benchmarks.untrusted.safe_files import open_regular, replace_file

_LARGEST = 1 << 20

Images = Literal["auto", "sixel", "kitty", "half", "off"]


class Settings(BaseModel):
    """``theme`` by its name, ``images`` as ``--images``, ``keys`` from a command's id to keys with commas between."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    theme: str = "rashomon"
    images: Images = "auto"
    keys: Mapping[str, str] = {}


def settings_file() -> Path:
    """Where the settings are kept: ``settings.toml`` in the user's configuration folder."""
    from platformdirs import user_config_path

    return user_config_path("rashomon") / "settings.toml"


def load_settings(path: Path | None = None) -> tuple[Settings, list[str]]:
    """The settings, and a sentence for each thing in the file that is wrong and was left out. No file is no problem."""
    path = path or settings_file()
    try:
        with open_regular(path) as stream:
            values = tomllib.loads(stream.read(_LARGEST).decode())
    except FileNotFoundError:
        return Settings(), []
    except (OSError, ValueError, RecursionError) as error:
        return Settings(), [f"{path} cannot be read ({error}); the usual settings are used."]
    wrong = problems(Settings, values)
    told = []
    for key, why in wrong.items():
        first, _, rest = key.partition(".")
        known = did_you_mean(first, Settings.model_fields) if first not in Settings.model_fields else f"{why}."
        told.append(f"{path}: {key}: {known} It is left out.")
        if rest and isinstance(values.get(first), dict):
            values[first].pop(rest, None)
        else:
            values.pop(first, None)
    return Settings.model_validate(values), told


def save_settings(settings: Settings, path: Path | None = None) -> Path:
    """Write the settings; where. Raises SpecError where that is not possible."""
    path = path or settings_file()
    values: dict[str, Any] = {key: value for key, value in settings.model_dump(mode="json").items() if value}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.parent, path.name, tomli_w.dumps(values).encode("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot write {path}: {error}.") from error
    return path
