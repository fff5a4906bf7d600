"""Methods whose code is in a module that is imported only when they are called.

Lists of benchmarks import the class of each one, but not what builds and counts. A target is written "module:name"; the interface
is the method that it implements, such as ``Benchmark.tables``, whose type it has.
"""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

Interface = TypeVar("Interface", bound=Callable[..., Any])


def method(interface: Interface, target: str) -> Interface:
    """Return a method that calls the function ``target`` with its object and arguments."""

    def call(*arguments: Any, **options: Any) -> Any:
        return resolve_name(target)(*arguments, **options)

    return cast(Interface, call)


def function(interface: Interface, target: str) -> Interface:
    """Return a static method that calls the function ``target``."""
    return cast(Interface, staticmethod(method(interface, target)))


def instance(target: str) -> Any:
    """Return a property whose value is made by the class ``target``, without arguments."""
    return property(lambda _: resolve_name(target)())
