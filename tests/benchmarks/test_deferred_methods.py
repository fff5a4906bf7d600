"""A method whose code is elsewhere finds it, and passes on what the method is given."""

from __future__ import annotations

import inspect
from pkgutil import resolve_name

import pytest

from benchmarks.base import Benchmark
from benchmarks.registry import BUILT_IN, get_benchmark


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_deferred_method_fits_the_function_that_it_calls(name: str) -> None:
    for kind in type(get_benchmark(name)).__mro__:
        for attribute, value in vars(kind).items():
            call = getattr(value, "__func__", value)
            if getattr(call, "__qualname__", "") != "method.<locals>.call":
                continue
            code = resolve_name(inspect.getclosurevars(call).nonlocals["target"])
            parameters = list(inspect.signature(getattr(Benchmark, attribute)).parameters.values())
            if isinstance(value, staticmethod):
                del parameters[0]
            positional = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
            named = [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]
            inspect.signature(code).bind(*positional, **dict.fromkeys(named))
