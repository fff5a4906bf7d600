"""Plugins: benchmarks, judges and engines of other installed packages, found through their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from benchmarks.errors import SpecError


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of ``group`` by name; of several of one name, the first."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, point)
    return points


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
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist else point.value
        raise SpecError(f"{name} of the package {package} cannot be imported ({error}); install it again.") from error
