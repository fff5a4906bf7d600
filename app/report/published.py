"""The papers' results: a file of cells for each paper, checked when it is read."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.base import Estimate, Table
from benchmarks.errors import SourceError

CELLS = Path(__file__).resolve().parents[2] / "assets" / "published"
_WORDS = ("paper", "table", "row", "column")
_KNOWN = {*_WORDS, "value", "sd", "n", "percent", "ours", "note"}
_WHERE = "mend the file, or install Rashomon again."


def published_names() -> tuple[str, ...]:
    """The benchmarks whose papers' results are here, whether or not the benchmark itself is."""
    return tuple(sorted(path.stem for path in CELLS.glob("*.json")))


@cache
def published_cells(benchmark: str) -> tuple[dict[str, Any], ...]:
    """Every published figure of a benchmark's paper, in the paper's order; none where they are not here.

    A cell has ``paper``, ``table``, ``row``, ``column`` and ``value``: a count (int), a figure (float; a fraction where
    ``percent`` says that the paper prints it in percent) or a word. It may have ``sd`` (the deviation that is printed with
    it), ``n`` (what it rests on), ``ours`` (the table of this tool that it belongs to) and ``note``. Raises SourceError where
    the file does not hold such cells.
    """
    return read_cells(CELLS / f"{benchmark}.json") if benchmark in published_names() else ()


def read_cells(path: Path) -> tuple[dict[str, Any], ...]:
    """The cells in a file. Raises SourceError with the first cell that is wrong, and why."""
    try:
        cells = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"the published results in {path.name} cannot be read ({error}); {_WHERE}") from None
    if not isinstance(cells, list) or not cells:
        raise SourceError(f"the published results in {path.name} are not a list of cells; {_WHERE}")
    seen: set[tuple[str, ...]] = set()
    in_percent: dict[str, bool] = {}
    for number, cell in enumerate(cells, 1):
        wrong = _wrong(cell)
        if not wrong:
            key = tuple(cell[word] for word in _WORDS)
            wrong = "stands there twice" if key in seen else ""
            seen.add(key)
        if not wrong and isinstance(cell["value"], float):
            percent = "percent" in cell
            if in_percent.setdefault(cell["table"], percent) != percent:
                wrong = "is in percent where other figures of its table are not, or the other way round"
        if wrong:
            raise SourceError(f"cell {number} of the published results in {path.name} {wrong}; {_WHERE}")
    return tuple(cells)


def _wrong(cell: Any) -> str:
    """What is wrong with one cell by itself; empty if nothing is."""
    if not isinstance(cell, dict):
        return "is no object"
    if unknown := sorted(set(cell) - _KNOWN):
        return f"has an unknown key, {unknown[0]!r}"
    if lacking := [key for key in (*_WORDS, "value") if key not in cell]:
        return f"has no {lacking[0]}"
    for key in (*_WORDS, "ours", "note"):
        if key in cell and not (isinstance(cell[key], str) and cell[key].strip() and cell[key].isprintable()):
            return f"has a {key} that is not a line of text"
    value = cell["value"]
    if isinstance(value, str):
        if not (value.strip() and value.isprintable()) or {"sd", "n", "percent"} & set(cell):
            return "has a word for a value and a figure's keys, or an empty one"
        return ""
    if not _finite(value):
        return "has a value that is no finite number"
    if "sd" in cell and not (_finite(cell["sd"]) and cell["sd"] > 0 and isinstance(value, float)):
        return "has a deviation that is no positive number, or of a count"
    if "n" in cell and not (type(cell["n"]) is int and cell["n"] > 0):
        return "has an n that is no positive whole number"
    if "percent" in cell and not (cell["percent"] is True and isinstance(value, float)):
        return "is in percent and no fraction"
    return ""


def _finite(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def published_rows(table: Table, benchmark: str) -> list[tuple[str, tuple[Estimate | None, ...]]]:
    """The paper's rows for ``table``, in its columns; a cell that the paper lacks is None."""
    found: dict[str, dict[str, Estimate]] = {}
    for cell in published_cells(benchmark):
        if cell.get("ours") == table.name:
            estimate = Estimate(cell["value"], n=cell.get("n", 0), sd=cell.get("sd"))
            found.setdefault(cell["row"], {})[cell["column"]] = estimate
    return [(f"{row} (paper)", tuple(cells.get(column) for column in table.columns)) for row, cells in found.items()]
