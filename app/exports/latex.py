"""Tables as a LaTeX document."""

from __future__ import annotations

from app.exports.source import Export, Files
from app.report.latex import document


def to_latex_files(given: Export) -> Files:
    """``tables.tex``: a document that compiles as it is, with every table and what was run."""
    tables = (*given.tables, given.runs_table())
    return {"tables.tex": document(tables, given.benchmark.title, of=given.benchmark.name, captions=given.captions)}
