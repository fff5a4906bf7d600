"""Export of runs as a report, in HTML and LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.compare.runs.view_reader import load_views
from app.exports.export_input import Export, Files
from app.exports.report.report_contents import report_of
from app.exports.report.report_document import Example, Report
from app.exports.report.report_html import to_html
from app.exports.report.report_inputs import Evidence
from app.exports.report.report_latex import to_latex_files
from app.report.tables.latex_tables import without_papers_number
from benchmarks.errors import SpecError


def to_report_files(export: Export) -> Files:
    """Return ``report.html``, ``report.tex`` and the figures of the latter."""
    report = build_report(export)
    return {"report.html": to_html(report), **to_latex_files(report)}


def html_report(export: Export, link_of: Callable[[str], str] = lambda instance: "") -> str:
    """Return the report as one HTML document; ``link_of`` has the address of an instance by its id, empty without one."""
    report = build_report(export)
    first_page = [
        replace(block, link=link_of(block.instance)) if isinstance(block, Example) else block
        for block in report.first_page
    ]
    return to_html(replace(report, first_page=first_page))


def build_report(export: Export) -> Report:
    """Return the report of an export; see :func:`app.exports.report.report_contents.report_of`."""
    inputs = export.inputs
    assert inputs is not None
    # The report numbers its own tables.
    tables = [replace(table, title=without_papers_number(table.title)) for table in export.tables]
    export = replace(export, tables=tables)
    comparable = True
    try:
        views = load_views(export.folders, judge=export.requested_judge)
    except SpecError:  # a panel that gives an answer several labels
        views, comparable = load_views(export.folders), False
    return report_of(Evidence(export, inputs, views, comparable), export.options.title)
