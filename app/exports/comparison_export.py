"""Export of a comparison: its tables, figures and warnings, and in HTML the page of its runs' answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.exports.export_input import Export, Files
from app.exports.figures_export import to_pdf_files, to_png_files, to_svg_files
from app.report.tables.latex_tables import document
from app.report.tables.table_rendering import to_csv, to_markdown
from app.text.text_escaping import clean, markdown
from app.view.contents.page_contents import Contents
from app.view.contents.page_overview import printed_table
from app.view.saved.saved_page import saved_page


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
    assert export.workspace is not None
    contents = Contents(
        export.workspace, export.folders, judge=export.requested_judge, margin=export.options.margin, saved=True
    )
    tables = tuple(printed_table(table) for table in (*export.tables, export.runs_table()))
    overview = replace(contents.overview(), comparison=tables, warnings=tuple(map(clean, export.warnings)))
    return {"comparison.html": saved_page(contents, overview=overview)}


WRITERS: Mapping[str, Callable[[Export], Files]] = {
    "csv": _csv,
    "md": _markdown,
    "latex": _latex,
    "html": _html,
    "png": to_png_files,
    "svg": to_svg_files,
    "pdf": to_pdf_files,
}
