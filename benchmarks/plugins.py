"""Plugins: benchmarks, judges and engines of other installed packages, found through their entry points; and of scripts.

What a script registers is in an environment variable, so that the processes that it starts know it too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from benchmarks.errors import SpecError

VARIABLE = "RASHOMON_PLUGINS"
"""The environment variable with what scripts registered, as JSON: group to name to ["module:class", folder of the module]."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of ``group`` by name; of several of one name, the first. Those of scripts come last."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, point)
    for name, (value, _) in _registered().get(group, {}).items():
        points.setdefault(name, EntryPoint(name, value, group))
    return points


def register(group: str, name: str, value: str, folder: str) -> None:
    """Register "module:class", whose module is in ``folder``, for this process and those that it starts."""
    registered = _registered()
    registered.setdefault(group, {})[name] = (value, folder)
    os.environ[VARIABLE] = json.dumps(registered)
    plugins.cache_clear()


def registered(group: str, name: str) -> str | None:
    """Return the "module:class" that a script registered under ``name``; None if there is none."""
    return _registered().get(group, {}).get(name, (None,))[0]


def _registered() -> dict[str, dict[str, tuple[str, str]]]:
    """Return what scripts registered. Raises SpecError if the variable was changed by hand."""
    text = os.environ.get(VARIABLE)
    try:
        return {
            str(group): {str(name): (str(value), str(folder)) for name, (value, folder) in points.items()}
            for group, points in (json.loads(text) if text else {}).items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise SpecError(f"the environment variable {VARIABLE} cannot be read ({error}); unset it.") from error


def names(group: str, built_in: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in ``built_in``, then those of the plugins in ``group``."""
    return tuple(dict.fromkeys((*built_in, *plugins(group))))


def load(name: str, group: str, built_in: Mapping[str, str]) -> Any:
    """Return the class that is registered as ``name``, or None where there is none.

    ``built_in`` maps names to "module:class", which no plugin replaces. Raises SpecError for a plugin that cannot be imported.
    """
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(import_module(module), attribute)
    point = plugins(group).get(name)
    if point is None:
        return None
    _, folder = _registered().get(group, {}).get(name, ("", ""))
    if point.dist is None and folder and folder not in sys.path:
        sys.path.append(folder)
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist else point.value
        raise SpecError(f"{name} of the package {package} cannot be imported ({error}); install it again.") from error
