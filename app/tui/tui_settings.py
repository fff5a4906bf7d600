"""The user's settings of the interface: a small file; invalid settings are reported and fall back to the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict

from app.run_spec import validation_problems
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.untrusted.safe_files import open_regular, replace_file
from benchmarks.untrusted.safe_toml import parse_toml

_MAX_BYTES = 1 << 20

Images = Literal["auto", "sixel", "kitty", "blocks", "half", "off"]


Trust = Literal["not said", "image", "text", "flag"]


class Settings(BaseModel):
    """Settings: ``theme`` by name, ``images`` as in ``--images``, ``keys`` from command ids to comma-separated keys.

    ``trust`` is what should win where the user's sources disagree; None before that was asked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    theme: str = "rashomon"
    images: Images = "auto"
    trust: Trust | None = None
    keys: Mapping[str, str] = {}

    @property
    def rule(self) -> str | None:
        """The rule on what should win, as ``--trust`` takes it; None while the user has not said it."""
        return None if self.trust == "not said" else self.trust


def settings_file() -> Path:
    """Return the path of the settings: ``settings.toml`` in the user's configuration folder."""
    from platformdirs import user_config_path

    return user_config_path("rashomon") / "settings.toml"


def load_settings(path: Path | None = None) -> tuple[Settings, list[str]]:
    """Return the settings, and one sentence for each invalid entry that is ignored; a missing file is no problem."""
    path = path or settings_file()
    try:
        with open_regular(path) as stream:
            values = parse_toml(stream.read(_MAX_BYTES))
    except FileNotFoundError:
        return Settings(), []
    except (OSError, ValueError) as error:
        return Settings(), [f"{path} cannot be read ({error}); the default settings are used."]
    messages = []
    for key, problem in validation_problems(Settings, values).items():
        first, _, rest = key.partition(".")
        known = did_you_mean(first, Settings.model_fields) if first not in Settings.model_fields else f"{problem}."
        messages.append(f"{path}: {key}: {known} The entry is ignored.")
        if rest and isinstance(values.get(first), dict):
            values[first].pop(rest, None)
        else:
            values.pop(first, None)
    return Settings.model_validate(values), messages


def save_settings(settings: Settings, path: Path | None = None) -> Path:
    """Write the settings and return their path.

    Raises:
        SpecError: If the file cannot be written.
    """
    path = path or settings_file()
    values: dict[str, Any] = {key: value for key, value in settings.model_dump(mode="json").items() if value}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.parent, path.name, tomli_w.dumps(values).encode("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot write {path}: {error}.") from error
    return path
