"""`python -m tests.mutation.ordered TESTS FAILED`: the tests of a list in its order, until the first that fails."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.rest.parts import file_of


class _Ordered:
    def __init__(self, tests: list[str], failed: Path) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self._failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self._place]
        items[:] = sorted(known, key=lambda item: self._place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.write_text(report.nodeid, "utf-8")


def main(order: Path, failed: Path) -> int:
    """Run the tests; return pytest's exit code, 0 where none of them is there."""
    tests = json.loads(order.read_text("utf-8"))
    files = list(dict.fromkeys(map(file_of, tests)))
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files], plugins=[_Ordered(tests, failed)])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
