"""Published results: a file of cells for each paper, validated when it is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SourceError
from benchmarks.vocabulary import Estimate, Table

CELLS = Path(__file__).resolve().parents[2] / "assets" / "published"
_WORDS = ("paper", "table", "row", "column")
_KNOWN = {*_WORDS, "value", "sd", "n", "percent", "ours", "note"}
_ADVICE = "fix the file, or reinstall Rashomon."
_OF_PAPER = re.compile(r" \((?:all conditions, )?(?:Tables?|Figures?|[Ss]ections?|equations?|Appendix)\b[^()]*\)")


def published_names() -> tuple[str, ...]:
    """Return the names of the benchmarks with published results."""
    return tuple(sorted(path.stem for path in CELLS.glob("*.json")))


@cache
def published_cells(benchmark: str) -> tuple[dict[str, Any], ...]:
    """Return every published result of a benchmark's paper, in the paper's order; empty if there is no file.

    A cell has ``paper``, ``table``, ``row``, ``column`` and ``value``: a count (int), a metric (float; a fraction, even if
    ``percent`` marks it as printed in percent) or a word. It may have ``sd`` (the printed deviation), ``n`` (the number of
    instances), ``ours`` (the matching table of this tool) and ``note``. Raises SourceError for a malformed file.
    """
    return read_cells(CELLS / f"{benchmark}.json") if benchmark in published_names() else ()


def read_cells(path: Path) -> tuple[dict[str, Any], ...]:
    """Read the cells in a file. Raises SourceError for the first malformed cell, with the reason."""
    try:
        cells = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"the published results in {path.name} cannot be read ({error}); {_ADVICE}") from None
    if not isinstance(cells, list) or not cells:
        raise SourceError(f"the published results in {path.name} are not a list of cells; {_ADVICE}")
    seen: set[tuple[str, ...]] = set()
    in_percent: dict[str, bool] = {}
    for number, cell in enumerate(cells, 1):
        problem = _problem(cell)
        if not problem:
            key = tuple(cell[word] for word in _WORDS)
            problem = "is repeated" if key in seen else ""
            seen.add(key)
        if not problem and isinstance(cell["value"], float):
            percent = "percent" in cell
            if in_percent.setdefault(cell["table"], percent) != percent:
                problem = "is in percent and other values of its table are not, or the other way round"
        if problem:
            raise SourceError(f"cell {number} of the published results in {path.name} {problem}; {_ADVICE}")
    return tuple(cells)


def _problem(cell: Any) -> str:
    """Return what is wrong with a single cell; "" if nothing is."""
    if not isinstance(cell, dict):
        return "is not an object"
    if unknown := sorted(set(cell) - _KNOWN):
        return f"has an unknown key, {unknown[0]!r}"
    if lacking := [key for key in (*_WORDS, "value") if key not in cell]:
        return f"has no {lacking[0]}"
    for key in (*_WORDS, "ours", "note"):
        if key in cell and not _is_line(cell[key]):
            return f"has a {key} that is not a line of text"
    value = cell["value"]
    if isinstance(value, str):
        is_word = value.strip() and value.isprintable() and not {"sd", "n", "percent"} & set(cell)
        return "" if is_word else "has an empty value, or a word for a value and the keys of a number"
    if not _finite(value):
        return "has a value that is not a finite number"
    for key, is_valid, problem in _OF_NUMBERS:
        if key in cell and not is_valid(cell[key], value):
            return problem
    return ""


_OF_NUMBERS: Sequence[tuple[str, Callable[[Any, float], bool], str]] = (
    (
        "sd",
        lambda sd, value: _finite(sd) and sd > 0 and isinstance(value, float),
        "has a deviation that is not positive, or belongs to a count",
    ),
    ("n", lambda n, value: type(n) is int and n > 0, "has an n that is not a positive integer"),
    (
        "percent",
        lambda percent, value: percent is True and isinstance(value, float),
        "is in percent but not a fraction",
    ),
)
"""The keys of a number, each with its check, by the key's value and the number, and the problem."""


def _is_line(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip()) and text.isprintable()


def _finite(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def published_rows(table: Table, benchmark: str) -> list[tuple[str, tuple[Estimate | None, ...]]]:
    """Return the paper's rows for ``table``, in its columns; None where the paper has no cell.

    A count with an ``n`` becomes the share that the table has in its place (CMC-Bench, section 5.3).
    """
    rows: dict[str, dict[str, Estimate]] = {}
    for cell in published_cells(benchmark):
        if cell.get("ours") == table.name:
            share = isinstance(cell["value"], int) and "n" in cell
            value = cell["value"] / cell["n"] if share else cell["value"]
            estimate = Estimate(value, n=cell.get("n", 0), sd=cell.get("sd"))
            rows.setdefault(cell["row"], {})[cell["column"]] = estimate
    return [(f"{row} (paper)", tuple(cells.get(column) for column in table.columns)) for row, cells in rows.items()]


def has_only_own_rows(runs: Iterable[Answers], benchmark: Benchmark) -> bool:
    """Return whether every example of the runs comes from the user's own table, so that no paper's rows are comparable."""
    own = own_sources(benchmark)
    sources = [{kind.strata.get("source", "") for kind in answers.kinds} for answers in runs]
    return all(of_run and of_run <= own for of_run in sources)


def own_sources(benchmark: Benchmark) -> frozenset[str]:
    """Return the names of the data sources that are the user's own."""
    return frozenset(source.name for source in benchmark.sources if source.own or source.name == benchmark.rows_source)


def without_paper(table: Table) -> Table:
    """Return ``table`` with the paper's table numbers removed from its title and notes."""
    return replace(
        table, title=_OF_PAPER.sub("", table.title), notes=tuple(_OF_PAPER.sub("", note) for note in table.notes)
    )
