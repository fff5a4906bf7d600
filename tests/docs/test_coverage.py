"""The page on coverage: it lists every numbered table and figure, and its commands run."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from assets.demo.recipe import evaluate
from benchmarks.registry import get_benchmark
from tests.support.command import Rashomon

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
NUMBERED = {
    "cmc-bench": (4, 3),
    "clash": (16, 11),
    "mmkc-bench": (6, 23),
    "crosscheck-bench": (7, 8),
    "contra4": (7, 10),
}
"""The numbers of tables and of figures in each paper."""
DEMO = ("cmc-bench", "clash", "mmkc-bench")
NEEDS_MORE = {("clash", "judges"), ("clash", "spatial"), ("clash", "spatial-open")}
"""Tables that need a judge of another kind, or spatial samples; their names are looked up in the code."""


@cache
def rows(benchmark: str) -> list[tuple[str, str, str]]:
    """Return part, state and command of each row."""
    section = PAGE.read_text("utf-8").split(f"\n## {benchmark}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    return [(row[0], row[1], row[2].strip("`")) for row in cells[1:]]


@pytest.mark.parametrize("benchmark", NUMBERED)
def test_every_numbered_table_and_figure_is_listed(benchmark: str) -> None:
    listed = set(re.findall(r"(?:Table|Figure) \d+", " ".join(part for part, _, _ in rows(benchmark))))
    tables, figures = NUMBERED[benchmark]
    expected = {f"Table {n}" for n in range(1, tables + 1)} | {f"Figure {n}" for n in range(1, figures + 1)}
    assert listed == expected


@pytest.mark.parametrize("benchmark", NUMBERED)
def test_a_state_is_one_of_three_and_only_what_works_has_a_command(benchmark: str) -> None:
    for part, state, command in rows(benchmark):
        assert state in ("has", "half", "no"), part
        assert bool(command) == (state != "no"), part


@pytest.mark.parametrize("benchmark", NUMBERED)
def test_the_commands_run(benchmark: str, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    if benchmark in DEMO:
        evaluate.build(benchmark, rashomon.workspace / "benchmarks" / benchmark)
        rashomon.run("--batch", "--benchmark", benchmark, "--model", "policy:random", "--limit", "8", "--name", "one")
    for command in sorted({command for _, _, command in rows(benchmark) if command}):
        words = ["one" if word == "RUN" else word for word in shlex.split(command)[1:]]
        setup = next((word for word in words if word.startswith("paper:")), None)
        if "--table" in words and (benchmark not in DEMO or (benchmark, words[-1]) in NEEDS_MORE):
            source = Path(get_benchmark(benchmark).__class__.__module__.replace(".", "/"))
            files = (PAGE.parents[1] / source.parts[0] / source.parts[1]).rglob("*.py")
            assert any(f'"{words[-1]}"' in file.read_text("utf-8") for file in files), command
        elif "--sample" in words:
            assert rashomon.run("show", "--help").stdout
        else:
            rashomon.run(*words, code=0 if setup is None else 2)  # neither its models nor all builds are here
