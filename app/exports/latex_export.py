"""Export of tables to a LaTeX document."""

from __future__ import annotations

from app.exports.export_input import Export, Files
from app.report.tables.latex_tables import document


def to_latex_files(export: Export) -> Files:
    """Return ``tables.tex``: a complete document with every table and a description of the runs."""
    tables = (*export.tables, export.runs_table())
    return {
        "tables.tex": document(
            tables, export.benchmark.title, of=export.benchmark.name, captions=export.options.captions
        )
    }
