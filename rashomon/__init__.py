"""Rashomon as a library: workspaces, runs, their records and tables.

Every package of Rashomon is also importable below this one: ``rashomon.benchmarks.vocabulary`` is the module
``benchmarks.vocabulary``, the same object.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rashomon import _alias
from rashomon._names import PACKAGES, CollisionError, check_names

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.base import Benchmark
    from benchmarks.errors import RashomonError
    from benchmarks.vocabulary import Estimate, Record, Verdict
    from judges.base import FunctionJudge, OwnJudge
    from rashomon.extending import register_benchmark, register_judge
    from rashomon.runs import Records, Run, Runs
    from rashomon.starting import RunFailedError, Started
    from rashomon.tables import Plot, ResultTable, Tables
    from rashomon.values import label, same_value
    from rashomon.workspaces import Workspace

_alias.install()

__all__ = [
    "Benchmark",
    "CollisionError",
    "Estimate",
    "FunctionJudge",
    "OwnJudge",
    "Plot",
    "RashomonError",
    "Record",
    "Records",
    "ResultTable",
    "Run",
    "RunFailedError",
    "Runs",
    "Started",
    "Tables",
    "Verdict",
    "Workspace",
    "demo_model",
    "demo_source",
    "label",
    "open",
    "register_benchmark",
    "register_judge",
    "same_value",
]

__version__: str

_PLACES = {
    "Benchmark": "benchmarks.base",
    "Estimate": "benchmarks.vocabulary",
    "FunctionJudge": "judges.base",
    "OwnJudge": "judges.base",
    "Plot": "rashomon.tables",
    "RashomonError": "benchmarks.errors",
    "Record": "benchmarks.vocabulary",
    "Records": "rashomon.runs",
    "ResultTable": "rashomon.tables",
    "Run": "rashomon.runs",
    "RunFailedError": "rashomon.starting",
    "Runs": "rashomon.runs",
    "Started": "rashomon.starting",
    "Tables": "rashomon.tables",
    "Verdict": "benchmarks.vocabulary",
    "Workspace": "rashomon.workspaces",
    "label": "rashomon.values",
    "register_benchmark": "rashomon.extending",
    "register_judge": "rashomon.extending",
    "same_value": "rashomon.values",
}
"""The modules of the names, imported when a name is first used: the command line needs none of them."""


def open(workspace: str | Path | None = None) -> Workspace:
    """Return the workspace in a folder; by default the command line's: RASHOMON_WORKSPACE, or else your user data folder."""
    check_names(PACKAGES[0])
    from rashomon.workspaces import Workspace

    return Workspace(workspace)


def demo_model(bits: int = 4) -> str:
    """Return the name of the demo's tiny model, in 4 bits or in 16, to try a run without a download."""
    check_names(PACKAGES[0])
    from app.commands.system.demo_command import demo_model

    return str(demo_model(bits))


def demo_source(benchmark: str = "cmc-bench") -> dict[str, str]:
    """Return the source that the demo builds a benchmark from, for ``Workspace.build``. Raises SpecError if there is none."""
    check_names(PACKAGES[0])
    from app.commands.system.demo_command import find_demo

    name, folder = find_demo(benchmark).source
    return {name: str(folder)}


if not TYPE_CHECKING:  # a type checker knows the names from above, and no others

    def __getattr__(name: str) -> Any:
        if name in _PLACES:
            check_names(PACKAGES[0])
            value = getattr(import_module(_PLACES[name]), name)
        elif name in PACKAGES:
            value = import_module(f"rashomon.{name}")
        elif name == "__version__":
            from app.system.version import rashomon_version

            value = rashomon_version()
        else:
            raise AttributeError(f"module 'rashomon' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *PACKAGES, "__version__"})
