"""Pytest plugin that runs one part of the slow tests within a time, and reports what failed or was not reached."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests.rest.parts import changed_files, file_of, recorded_seconds, select_turn

NOT_REACHED = "the time of this part is up"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turn", type=int, help="The part of the slow tests to run, counted round.")
    parser.addoption("--until", type=float, help="When to start no more tests, in seconds since 1970.")
    parser.addoption("--outcome", help="The file for what failed, what was not reached, and the seconds of each file.")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    turn = config.getoption("--turn")
    if turn is None:
        return
    changed = changed_files(config.rootpath)
    by_id = {item.nodeid: item for item in items}
    selected = select_turn(list(by_id), turn, recorded_seconds(), changed)
    config.hook.pytest_deselected(items=[item for name, item in by_id.items() if name not in set(selected)])
    items[:] = [by_id[name] for name in selected]


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip(NOT_REACHED)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--outcome") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcome(Path(config.getoption("--outcome"))))


class _Outcome:
    """Outcome of the tests of all processes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failed: dict[str, None] = {}
        self._not_reached: list[str] = []
        self._seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._collected = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None
        elif report.skipped and NOT_REACHED in str(report.longrepr):
            self._not_reached.append(report.nodeid)
        elif not report.skipped:
            self._seconds[file_of(report.nodeid)][report.nodeid] += report.duration

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collected = self._collected and not report.failed

    def pytest_sessionfinish(self) -> None:
        means = {name: sum(of.values()) / len(of) for name, of in self._seconds.items()}
        outcome = {"failed": list(self._failed), "not_reached": self._not_reached, "seconds": means}
        if self._collected:
            self._file.write_text(json.dumps(outcome), "utf-8")
