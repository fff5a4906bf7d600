"""The page on coverage: it lists every numbered table and figure, and its commands run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.json_output.json_envelope import plain
from app.json_output.tables_json import table_json
from app.papers.paper_setups import find_setup
from app.papers.published_results import published_cells
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import read_inputs
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from tests.support.command import Rashomon
from tests.support.covered_runs import RUN, finish_run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
NUMBERED = {
    "cmc-bench": (4, 3),
    "clash": (16, 11),
    "mmkc-bench": (6, 23),
    "crosscheck-bench": (7, 8),
    "contra4": (7, 10),
}
"""The numbers of tables and of figures in each paper."""
ADDED = {
    ("crosscheck-bench", "interventions"): {f"{name} gain" for name in ("A5: Numeric", "A6: OCR", "A7: Logic")},
    ("contra4", "main"): {"4 Modalities / All"},
}
"""Columns of which the paper's table has no cells: our own, and those that our copy of the paper's text lacks."""
EMPTY = {("cmc-bench", "both-audit")}
"""Tables that have no row where nothing is wrong."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rashomon]:
    """Return a function that builds a benchmark and finishes its run, once for all tests."""

    @cache
    def finish(benchmark: str) -> Rashomon:
        rashomon = Rashomon(tmp_path_factory.mktemp(benchmark))
        finish_run(benchmark, rashomon)
        return rashomon

    return finish


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
def test_the_commands_run(benchmark: str, finished: Callable[[str], Rashomon]) -> None:
    rashomon = finished(benchmark)
    with RunStore.read(run_folder(Workspace(rashomon.workspace), RUN)) as store:
        sample = next(store.records()).instance.id
    for command in sorted({command for _, _, command in rows(benchmark) if command}):
        words = [{"RUN": RUN, "ID": sample}.get(word, word) for word in shlex.split(command)[1:]]
        setup = next((word for word in words if word.startswith("paper:")), None)
        if setup is not None:
            find_setup(setup)  # or a setup of another name would exit with the same code
        rashomon.run(*words, code=0 if setup is None else 3)  # neither its models nor all builds are here


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", NUMBERED)
def test_a_named_table_is_the_papers_and_has_values_of_the_run(
    benchmark: str, finished: Callable[[str], Rashomon], tmp_path: Path
) -> None:
    """The table says which of the paper's it is, has the columns of the paper's cells, and draws the figure."""
    rashomon = finished(benchmark)
    # Some of these small runs are over own rows, whose tables have no number of a paper.
    inputs = replace(read_inputs([rashomon.workspace / "runs" / RUN]), own_rows_only=False)
    shown = {table.name: plain(table_json(table)) for table in tables_from(inputs)}
    rashomon.run("export", RUN, "--format", "svg", "--out", str(tmp_path / "figures"))
    drawn = {file.stem for file in (tmp_path / "figures").glob("*.svg")}
    published: dict[tuple[str, str], dict[str, None]] = {}
    for cell in published_cells(benchmark):
        published.setdefault((cell["table"], cell.get("ours", "")), {})[cell["column"]] = None
    for part, _, command in rows(benchmark):
        words = shlex.split(command)
        if words[1:4] != ["show", "RUN", "--table"]:
            continue
        table = shown[words[4]]
        own = [row for row in table["rows"] if not row["label"].endswith(" (paper)")]
        assert (benchmark, words[4]) in EMPTY or any(_has_value(cell) for row in own for cell in row["cells"].values())
        for number in re.findall(r"Table \d+", part):
            assert f"({number})" in table["title"]
            added = ADDED.get((benchmark, words[4]), set())
            assert [*published[number, words[4]]] == [title for title in titles(table) if title not in added]
        assert "Figure" not in part or words[4] in drawn, part


def test_a_run_of_pope_fills_clashs_table_14(finished: Callable[[str], Rashomon]) -> None:
    rashomon = finished("pope")
    (main,) = rashomon.json("show", RUN, "--table", "main")["tables"]
    assert "(Table 14)" in main["title"]
    assert titles(main) == list(dict.fromkeys(cell["column"] for cell in published_cells("pope")))
    own = [row for row in main["rows"] if not row["label"].endswith((" (paper)", " (ours)"))]
    assert [cell["value"] for row in own for cell in row["cells"].values()] == [0.5, 0.5, 0.5]


def titles(table: dict[str, Any]) -> list[str]:
    return [column["title"] for column in table["columns"]]


def _has_value(cell: object) -> bool:
    return cell["value"] is not None if isinstance(cell, dict) else cell is not None
