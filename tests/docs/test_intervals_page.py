"""The page on intervals: it is that of its script, and intervals by closed formulas have the coverage that they claim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from docs.coverage_rates import BORROWED_KINDS, MOST_REJECTED, REPLICATES, SECTIONS, TESTS, Kind, measure
from docs.intervals_page import PAGE
from docs.simulated_clusters import BORROWED, DESIGNS, Design

TABLES = {**SECTIONS, "False positives": TESTS, "Borrowed pictures": BORROWED_KINDS}
CLOSED = [kind for kinds in (*SECTIONS.values(), TESTS) for kind in kinds if kind.most == REPLICATES]
BORROWED_CLOSED = [kind for kind in BORROWED_KINDS if kind.most == REPLICATES]
PAGES, CHARTS = DESIGNS[0], DESIGNS[2]
CELLS = [pytest.param(kind, design, id=f"{kind.names[0]}-{design.name}") for kind in CLOSED for design in kind.designs]


def _rows(heading: str) -> Iterator[list[str]]:
    """Yield the cells of the table's rows under a heading of the page, the header first."""
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("heading", TABLES)
def test_the_page_has_the_kinds_and_designs_that_the_script_measures(heading: str) -> None:
    header, *rows = _rows(heading)
    assert header[1:] == [design.name for design in DESIGNS]
    kinds = [(name, kind) for kind in TABLES[heading] for name in kind.names]
    assert [row[0] for row in rows] == [name for name, _ in kinds]
    for (_, kind), row in zip(kinds, rows, strict=True):
        for design, cell in zip(DESIGNS, row[1:], strict=True):
            cases = len(BORROWED) if heading == "Borrowed pictures" else len(design.correlations)
            assert len(cell.split()) == (cases if design in kind.designs else 0)


def test_bold_cells_are_those_that_the_page_names() -> None:
    named = PAGE.read_text("utf-8").split("\n## ")[0].count("\n- ")
    bold = [row[0] for heading in TABLES for row in list(_rows(heading))[1:] if "**" in "".join(row)]
    assert named == len(bold)


@pytest.mark.parametrize("kind", CLOSED, ids=lambda kind: kind.names[0])
def test_closed_formulas_cover_the_truth(kind: Kind) -> None:
    """300 replicates of pages whose answers are correlated."""
    designs = [design for design in (PAGES, CHARTS) if design in kind.designs] or list(kind.designs)
    for design in designs:
        for rate in measure(kind, design, design.correlations[len(design.correlations) // 2], 300):
            assert rate.worst <= MOST_REJECTED + 0.04 if kind.test else rate.worst >= 0.9


@pytest.mark.parametrize("kind", BORROWED_CLOSED, ids=lambda kind: kind.names[0])
def test_closed_formulas_cover_the_truth_with_borrowed_pictures(kind: Kind) -> None:
    for rate in measure(kind, CHARTS, 0.6, 300, "half"):
        assert rate.worst <= MOST_REJECTED + 0.04 if kind.test else rate.worst >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "design"), CELLS)
def test_no_cell_of_a_closed_formula_misses_its_bound(kind: Kind, design: Design) -> None:
    """2,000 replicates; at least 93%, or at most 6% false positives, up to two standard errors."""
    rates = [rate for correlation in design.correlations for rate in measure(kind, design, correlation, 2000)]
    assert {(rate.name, rate.correlation): rate.rates for rate in rates if rate.fails} == {}
