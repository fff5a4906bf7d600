"""Export of a comparison: its tables, figures and warnings, and in HTML every answer of its runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.exports.export_input import Export, Files
from app.exports.figures import to_pdf_files, to_png_files, to_svg_files
from app.exports.sample_browser import page
from app.report.latex import document
from app.report.render import to_csv, to_markdown
from app.text.escape import markdown


def _csv(export: Export) -> Files:
    return {f"{table.name}.csv": to_csv(table) for table in (*export.tables, export.runs_table())}


def _markdown(export: Export) -> Files:
    warnings = "".join(f"- {markdown(text)}\n" for text in export.warnings)
    tables = "\n".join(to_markdown(table) for table in (*export.tables, export.runs_table()))
    return {"comparison.md": f"{warnings}\n{tables}" if warnings else tables}


def _latex(export: Export) -> Files:
    tables = (*export.tables, export.runs_table())
    return {
        "comparison.tex": document(
            tables, export.benchmark.title, export.warnings, of=f"{export.benchmark.name}-comparison"
        )
    }


def _html(export: Export) -> Files:
    return {"comparison.html": page(export)}


WRITERS: Mapping[str, Callable[[Export], Files]] = {
    "csv": _csv,
    "md": _markdown,
    "latex": _latex,
    "html": _html,
    "png": to_png_files,
    "svg": to_svg_files,
    "pdf": to_pdf_files,
}
