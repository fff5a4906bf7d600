"""Pytest plugin: each covered line is recorded with the test, or the shared fixture, that ran it.

Child processes record the test that was running when they were started. Each test's CPU seconds go to a file of JSON lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import pytest

CPU_SECONDS = "RASHOMON_CPU_SECONDS"
"""Environment variable: the folder for the CPU seconds of tests."""


def _switch(context: str) -> None:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(context)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _switch(item.nodeid)
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        _switch("")
        fixtures = sorted({name for name, of_name in _definitions(item) if of_name[-1].scope != "function"})
        line = {"test": item.nodeid, "seconds": round(_cpu_seconds() - before, 3), "fixtures": fixtures}
        if folder := os.environ.get(CPU_SECONDS):
            with (Path(folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Attribute a shared fixture's lines to the fixture: whichever test needs it first does not own them."""
    if fixturedef.scope == "function":
        return (yield)
    _switch(f"fixture {fixturedef.argname}")
    try:
        return (yield)
    finally:
        _switch(getattr(request.node, "nodeid", ""))


def _definitions(item: pytest.Item) -> Any:
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs.items() if info else ()
