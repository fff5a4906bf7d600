"""Faults for mutation testing: valid Python, different from the source, on the same lines."""

from __future__ import annotations

import ast
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.mutation.faults import faults_of
from tests.mutation.reach import REPORTER, with_reports
from tests.support.command import ROOT

SOURCE = '''
def total(values: list[int], most: int = 3) -> int:
    """Return a sum."""
    if values and (len(values)
                   < most):
        return sum(values) + 1
    return 0
'''


def test_operators_boundaries_and_returns_are_changed() -> None:
    texts = {fault.text for fault in faults_of("total.py", SOURCE.encode())}
    assert texts == {
        "(values or len(values) < most)",
        "(len(values) <= most)",
        "(len(values) >= most)",
        "(sum(values) - 1)",
        "(2)",
        "(1)",
        "return None",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["benchmarks/stats/intervals.py", "judges/panel_judge.py", "app/store/run_store.py"])
def test_a_fault_leaves_every_other_line_where_it_is(name: str) -> None:
    source = (ROOT / name).read_bytes()
    lines = source.splitlines()
    faults = faults_of(name, source)
    assert len(faults) > 20
    for fault in faults:
        changed = fault.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        assert len(changed.splitlines()) == len(lines)
        assert changed.splitlines()[: fault.line - 1] == lines[: fault.line - 1]


def test_reports_name_what_is_reached_and_change_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = faults_of("total.py", SOURCE.encode())
    reported = with_reports(SOURCE.encode(), enumerate(faults))
    reached: set[int] = set()
    monkeypatch.setitem(sys.modules, REPORTER, SimpleNamespace(reached=reached.add))
    names: dict[str, Any] = {}
    exec(reported, names)  # noqa: S102
    assert reported.count(b"\n") == SOURCE.count("\n")
    assert names["total"]([1, 2]) == 4
    assert reached == {number for number, fault in enumerate(faults) if fault.line < 7}, "all but the last return"
    assert names["total"]([]) == 0
    assert reached == set(range(len(faults)))
