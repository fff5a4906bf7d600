"""Version of Rashomon, whose only place is ``pyproject.toml``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def rashomon_version() -> str:
    """Return the version of the installed package; "unknown" if Rashomon runs from its source without being installed."""
    try:
        return version("rashomon")
    except PackageNotFoundError:
        return "unknown"
