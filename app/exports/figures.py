"""Figures as files: those the paper draws of its tables, and of several runs, quality against memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.exports.source import Export, ExportedRun, Files
from app.figures.comparison import figures as compared
from app.figures.style import to_bytes
from app.figures.tables import draw, quality_and_memory
from app.report.tables import own_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(given: Export) -> Iterator[tuple[str, str, Figure]]:
    """Every figure of these runs, or of their comparison: its name, what it shows, and it."""
    if given.comparison is not None:
        yield from compared(given.comparison, width=given.width)
        return
    for table in given.tables:
        if table.chart is None:
            continue
        drawn = draw(own_rows(table, given.benchmark.name), width=given.width)
        if drawn is not None:
            yield table.name, table.title, drawn
    column = given.metric or (given.main.columns[0] if given.main.columns else None)
    if column is not None and not given.canonical:
        peaks = {run.label: _peak(run) for run in given.runs}
        drawn = quality_and_memory(own_rows(given.main, given.benchmark.name), column, peaks, width=given.width)
        if drawn is not None:
            yield "memory", f"{column} against peak memory", drawn


def to_png_files(given: Export) -> Files:
    """``NAME.png`` for each figure, at 300 dpi."""
    return _files(given, "png")


def to_svg_files(given: Export) -> Files:
    """``NAME.svg`` for each figure."""
    return _files(given, "svg")


def to_pdf_files(given: Export) -> Files:
    """``NAME.pdf`` for each figure."""
    return _files(given, "pdf")


def _files(given: Export, form: str) -> Files:
    return {f"{name}.{form}": to_bytes(drawn, form) for name, _, drawn in figures(given)}


def _peak(run: ExportedRun) -> int:
    return max((each.peak_memory or 0 for record in run.records for each in record.generations), default=0)
