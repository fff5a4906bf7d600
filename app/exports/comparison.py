"""A comparison as files: its tables, figures and warnings, and in HTML every answer of its runs beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.exports.figures import to_pdf_files, to_png_files, to_svg_files
from app.exports.html import page
from app.exports.source import Export, Files
from app.report.latex import document
from app.report.render import to_csv, to_markdown
from app.text.escape import markdown


def _csv(given: Export) -> Files:
    return {f"{table.name}.csv": to_csv(table) for table in (*given.tables, given.runs_table())}


def _markdown(given: Export) -> Files:
    told = "".join(f"- {markdown(warning)}\n" for warning in given.warnings)
    tables = "\n".join(to_markdown(table) for table in (*given.tables, given.runs_table()))
    return {"comparison.md": f"{told}\n{tables}" if told else tables}


def _latex(given: Export) -> Files:
    tables = (*given.tables, given.runs_table())
    return {
        "comparison.tex": document(
            tables, given.benchmark.title, given.warnings, of=f"{given.benchmark.name}-comparison"
        )
    }


def _html(given: Export) -> Files:
    return {"comparison.html": page(given)}


WRITERS: Mapping[str, Callable[[Export], Files]] = {
    "csv": _csv,
    "md": _markdown,
    "latex": _latex,
    "html": _html,
    "png": to_png_files,
    "svg": to_svg_files,
    "pdf": to_pdf_files,
}
