"""Plugins: benchmarks, judges and engines of other installed packages, found through their entry points; and of scripts.

A plugin that cannot be used hides nothing else: :meth:`Registry.working` leaves it out, and :meth:`Registry.broken` has its
package and error. What a script registers is in an environment variable, so that the processes that it starts know it too.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import Any, Generic, TypeVar

from benchmarks.errors import STOPPED, RashomonError, SpecError
from benchmarks.plugins.plugin_code import plugin_code, short_reason

VARIABLE = "RASHOMON_PLUGINS"
"""The environment variable with what scripts registered, as JSON: group to name to ["module:class", folder of the module]."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """An entry point that cannot be used: its group, its name, its package and the error."""

    group: str
    name: str
    package: str
    error: str

    def __str__(self) -> str:
        return f"{self.group.removeprefix('rashomon.')}: {self.name[:80]!r} of the package {self.package[:80]}: {self.error}"


class PluginError(SpecError):
    """A plugin that is installed and cannot be used; ``broken`` says why."""

    def __init__(self, broken: BrokenPlugin) -> None:
        super().__init__(
            f"{broken.name[:80]!r} of the package {broken.package[:80]} cannot be used: {broken.error}. "
            "Repair, update or uninstall that package; `rashomon doctor` tries it again."
        )
        self.broken = broken


class PluginFault(RashomonError):
    """An exception that the code of a plugin in use has raised, or let pass."""

    exit_code = STOPPED


@dataclass(frozen=True)
class Registry(Generic[T]):
    """Registered classes of one group of entry points: name to a class without arguments, an instance of which is used.

    ``built_in`` maps names to "module:class", which no plugin replaces. ``accept`` takes the name and an instance of a plugin,
    and returns what is used; it raises for one that is none.
    """

    group: str
    built_in: Mapping[str, str]
    accept: Callable[[str, Any], T]

    def names(self) -> tuple[str, ...]:
        """Return the names in :attr:`built_in`, then those of the plugins, also of broken ones; nothing is imported."""
        return tuple(dict.fromkeys((*self.built_in, *_plugins(self.group)[0])))

    def get(self, name: str) -> T | None:
        """Return what is registered as ``name``, or None where there is nothing. Raises PluginError for a broken plugin."""
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            built_in: T = getattr(import_module(module), attribute)()
            return built_in
        point = _plugins(self.group)[0].get(name)
        if point is None:
            return None
        if point not in _failed:
            try:
                with plugin_code():
                    accepted = self.accept(name, _loaded(point)())
                _in_use[_top(point)] = _package(point)
                return accepted
            except Exception as error:
                _failed[point] = BrokenPlugin(self.group, name, _package(point), short_reason(error))
        raise PluginError(_failed[point])

    def working(self) -> Iterator[T]:
        """Yield all that can be used, the built-in first."""
        for name in self.names():
            try:
                item = self.get(name)
            except PluginError:
                continue
            assert item is not None
            yield item

    def broken(self, *, again: bool = False) -> list[BrokenPlugin]:
        """Return the plugins that cannot be used; with ``again``, those too dangerous to import are tried once more."""
        points, problems = _plugins(self.group)
        broken = list(problems)
        for name, point in points.items():
            if name in self.built_in:
                broken.append(BrokenPlugin(self.group, name, _package(point), "Rashomon's own has that name"))
                continue
            if again:
                forget()
                _crash(point, again=True)
            try:
                self.get(name)
            except PluginError as error:
                broken.append(error.broken)
        return broken


_failed: dict[EntryPoint, BrokenPlugin] = {}
"""The entry points that failed in this process, which are not imported again."""

_in_use: dict[str, str] = {}
"""The top-level modules of the plugins that are used in this process, each with its package."""


def plugin_fault(error: BaseException) -> PluginFault | None:
    """Return the error to report in place of one that passed through a plugin's code; None if it did not."""
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        package = _in_use.get(str(frame.f_globals.get("__name__")).partition(".")[0])
        if package is not None:
            code = frame.f_code
            place = f"{code.co_name} ({os.path.basename(code.co_filename)}, line {line})"
            return PluginFault(
                f"the package {package[:80]} failed in {place[:200]}: {short_reason(error)}; repair, update or uninstall it."
            )
    return None


def packages_in_use() -> tuple[str, ...]:
    """Return the packages whose plugins are used in this process."""
    return tuple(sorted({package[:80] for package in _in_use.values()}))


@cache
def _plugins(group: str) -> tuple[Mapping[str, EntryPoint], tuple[BrokenPlugin, ...]]:
    """Return the entry points of ``group`` by name, and those that are hidden; of several of one name, the first counts.

    Those of scripts come last.
    """
    points: dict[str, EntryPoint] = {}
    broken: list[BrokenPlugin] = []
    for point in _entry_points(group, broken):
        first = points.setdefault(point.name, point)
        if (first.value, _package(first)) != (point.value, _package(point)):
            broken.append(
                BrokenPlugin(
                    group, point.name, _package(point), f"the package {_package(first)[:80]} has that name too"
                )
            )
    for name, (value, _) in _registered().get(group, {}).items():
        points.setdefault(name, EntryPoint(name, value, group))
    return points, tuple(broken)


def _entry_points(group: str, broken: list[BrokenPlugin]) -> list[EntryPoint]:
    """Return the entry points of a group; a package whose metadata cannot be read is added to ``broken``."""
    try:
        return list(entry_points(group=group))
    except Exception:  # of one package; the others are read one by one
        points: list[EntryPoint] = []
    for place in distributions():
        try:
            points += place.entry_points.select(group=group)
        except Exception as error:
            folder = str(getattr(place, "_path", "unknown")).rpartition(os.sep)[2]
            broken.append(BrokenPlugin(group, "entry_points.txt", folder, short_reason(error)))
    return points


@cache
def _loaded(point: EntryPoint) -> Any:
    """Return what an entry point names, imported. Raises whatever that raises."""
    if point.dist is None:
        _, folder = _registered().get(point.group, {}).get(point.name, ("", ""))
        if folder and folder not in sys.path:
            sys.path.append(folder)
    elif reason := _crash(point):
        raise SpecError(reason)
    return point.load()


def _top(point: EntryPoint) -> str:
    """Return the top-level module of an entry point."""
    return _module(point).partition(".")[0]


def _module(point: EntryPoint) -> str:
    return point.value.partition(":")[0].strip()


def _crash(point: EntryPoint, *, again: bool = False) -> str:
    from benchmarks.plugins.plugin_trial import crash  # only where another package is installed

    return crash(_module(point), _package(point, with_version=True), again=again)


def _package(point: EntryPoint, *, with_version: bool = False) -> str:
    """Return the name of the package that an entry point is of; for one of a script, its module."""
    if point.dist is None:
        return point.value
    try:
        name = str(point.dist.name)
        return f"{name} {point.dist.version}" if with_version else name
    except Exception:  # metadata without a name
        return str(getattr(point.dist, "_path", "unknown")).rpartition(os.sep)[2]


def register(group: str, name: str, value: str, folder: str) -> None:
    """Register "module:class", whose module is in ``folder``, for this process and those that it starts."""
    registered = _registered()
    registered.setdefault(group, {})[name] = (value, folder)
    os.environ[VARIABLE] = json.dumps(registered)
    forget()


def forget() -> None:
    """Look for plugins anew when they are next needed."""
    _plugins.cache_clear()
    _loaded.cache_clear()
    _failed.clear()


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
