"""Licence of a model, as the model card in its folder states it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.errors import RashomonError
from benchmarks.rows.reader_types import open_source
from mlx_backends.models.model_discovery import resolve

CARD = "README.md"
_MAX_BYTES = 65_536
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"^(license|license_name):[ \t]*['\"]?([A-Za-z0-9][\w .+-]{0,79}?)['\"]?[ \t]*(?:#.*)?$", re.MULTILINE
)


def stated_licence(model: str) -> str | None:
    """Return the licence that the card of a local model states; None if there is none, or the model is not on this machine."""
    try:
        return read_licence(resolve(model))
    except (RashomonError, OSError, ImportError):
        return None


def read_licence(folder: Path) -> str | None:
    """Return the licence in the front matter of the model card in ``folder``; its own name where it is ``other``."""
    try:
        with open_source(folder / CARD) as card:
            text = card.read(_MAX_BYTES).decode("utf-8", "replace")
    except RashomonError:
        return None
    front = _FRONT_MATTER.match(text)
    fields = dict(_FIELD.findall(front[1])) if front else {}
    licence = fields.get("license", "")
    if licence.casefold() == "other":
        licence = fields.get("license_name", licence)
    return licence or None
