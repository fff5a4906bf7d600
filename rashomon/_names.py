"""Names of the packages that an installation puts beside ``rashomon``, and the check that they are Rashomon's.

It uses the standard library alone, so that it also works where another package has taken one of the names.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("app", "judges", "mlx_backends", "benchmarks")
"""The packages that are also importable as ``rashomon.NAME``. Each imports only those after it."""

_ROOT = Path(__file__).resolve().parents[1]
_FILES = dict.fromkeys(PACKAGES, ("__init__.py",)) | {"app": ("__init__.py", "main.py")}
"""Files that another package of the same name would most likely overwrite; ours name Rashomon in their first line."""

_MARK = b"rashomon"
_FIRST_BYTES = 200


class CollisionError(ImportError):
    """Another package that would be imported in place of one of Rashomon's. The message names it and says what to do."""


def find_collision(package: str = PACKAGES[0]) -> str | None:
    """Return a sentence about the first name that ``package`` needs and another package has taken, or None."""
    for name in PACKAGES[PACKAGES.index(package) :]:
        place = _place(name)
        if place is None:
            return f"Rashomon's package {name!r} is missing; install Rashomon again."
        if place != _ROOT / name:
            return f"the package {name!r} would be imported from {str(place)!r}, which is not Rashomon's; {_SHADOWED}"
        for file in _FILES[name]:
            if not _is_ours(_ROOT / name / file):
                return f"another package has replaced or removed {str(_ROOT / name / file)!r}; {_REPLACED}"
    return None


_SHADOWED = (
    "start it where PYTHONPATH and the current folder hold no such package, or install it in an environment of its own "
    "(`pipx install rashomon`)."
)
_REPLACED = (
    "remove the other package and install Rashomon again, or install it in an environment of its own "
    "(`pipx install rashomon`)."
)


def check_names(package: str) -> None:
    """Raise CollisionError if ``package``, or what it imports, would be another package's."""
    if problem := find_collision(package):
        raise CollisionError(problem)


def _is_ours(file: Path) -> bool:
    try:
        with open(file, "rb") as stream:
            return _MARK in stream.read(_FIRST_BYTES).lower()
    except OSError:
        return False


def _place(name: str) -> Path | None:
    """Return the folder that ``name`` is, or would be, imported from; None if there is none."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else PathFinder.find_spec(name)
    if spec is None:
        return None
    if spec.origin is not None:
        file = Path(spec.origin).resolve()
        return file.parent if file.name.startswith("__init__.") else file
    # A folder without __init__.py: its places, of which ours may be one.
    return next((Path(place).resolve() for place in spec.submodule_search_locations or ()), None)
