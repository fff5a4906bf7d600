"""Registration of judges and benchmarks of one's own, for this process and the workers that it starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks import registry as benchmark_registry
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.plugins import find_plugins
from judges import judge_registry
from judges.base import FunctionJudge, OwnJudge

JudgeClass = TypeVar("JudgeClass", bound=Callable[[], FunctionJudge | OwnJudge])
BenchmarkClass = TypeVar("BenchmarkClass", bound=type[Benchmark])


def register_judge(kind: JudgeClass) -> JudgeClass:
    """Register a class of judges under its ``name``, and return it; usable as a decorator.

    The class is a ``FunctionJudge`` or an ``OwnJudge``, in a module: workers are processes of their own and import it. A class of
    a notebook's cell labels through ``Run.judge``. Raises SpecError for such a class, and for a name that is taken.
    """
    _register(kind, judge_registry.GROUP, judge_registry.judge_names())
    return kind


def register_benchmark(kind: BenchmarkClass) -> BenchmarkClass:
    """Register a class of benchmarks under its ``name``, and return it; see :func:`register_judge`."""
    _register(kind, benchmark_registry.GROUP, benchmark_registry.benchmark_names())
    return kind


def _register(kind: object, group: str, names: tuple[str, ...]) -> None:
    name, module = getattr(kind, "name", None), str(getattr(kind, "__module__", ""))
    attribute = str(getattr(kind, "__qualname__", ""))
    if not isinstance(name, str) or not name:
        raise SpecError(f"{attribute or kind!r} has no name; give its class a `name`.")
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if module == "__main__" or file is None or not attribute.isidentifier():
        raise SpecError(
            f"the class {attribute} of {name!r} is in no module that a worker can import; move it to the top level of a .py file."
        )
    value = f"{module}:{attribute}"
    if name in names and find_plugins.registered(group, name) != value:
        raise SpecError(f"the name {name!r} is taken; give {attribute} another.")
    path = Path(file).resolve()
    find_plugins.register(group, name, value, str(path.parents[1] if path.name == "__init__.py" else path.parent))
