"""Export of figures: those that the papers draw of their tables, and of several runs, quality against memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.exports.export_input import Export, Files
from app.figures.comparison_figures import comparison_figures as compared
from app.figures.figure_style import to_bytes
from app.figures.table_figures import draw_quality_and_memory, draw_table
from app.report.tables.paper_rows import without_published

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def export_figures(export: Export) -> Iterator[tuple[str, str, Figure]]:
    """Yield every figure of these runs, or of their comparison, as its name, its title, and the figure."""
    if export.comparison is not None:
        yield from compared(export.comparison, width=export.options.width)
        return
    for table in export.tables:
        if table.chart is None:
            continue
        figure = draw_table(without_published(table), width=export.options.width)
        if figure is not None:
            yield table.name, table.title, figure
    column = export.options.metric or (export.main.columns[0] if export.main.columns else None)
    if column is not None and not export.options.canonical:
        peaks = {run.label: run.peak_memory for run in export.runs}
        figure = draw_quality_and_memory(without_published(export.main), column, peaks, width=export.options.width)
        if figure is not None:
            yield "memory", f"{column} against peak memory", figure


def to_png_files(export: Export) -> Files:
    """Return ``NAME.png`` for each figure, at 300 dpi."""
    return _files(export, "png")


def to_svg_files(export: Export) -> Files:
    """Return ``NAME.svg`` for each figure."""
    return _files(export, "svg")


def to_pdf_files(export: Export) -> Files:
    """Return ``NAME.pdf`` for each figure."""
    return _files(export, "pdf")


def _files(export: Export, form: str) -> Files:
    return {f"{name}.{form}": to_bytes(figure, form) for name, _, figure in export_figures(export)}
