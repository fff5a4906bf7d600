"""Export of runs as a report, in HTML and LaTeX."""

from __future__ import annotations

from app.compare.run_view import load_views
from app.exports.export_input import Export, Files
from app.exports.report.contents import report_of
from app.exports.report.document import Report
from app.exports.report.evidence import Evidence
from app.exports.report.write_html import to_html
from app.exports.report.write_latex import to_latex_files


def to_report_files(export: Export) -> Files:
    """Return ``report.html``, ``report.tex`` and the figures of the latter."""
    report = build_report(export)
    return {"report.html": to_html(report), **to_latex_files(report)}


def html_report(export: Export) -> str:
    """Return the report as one HTML document."""
    return to_html(build_report(export))


def build_report(export: Export) -> Report:
    """Return the report of an export; see :func:`app.exports.report.contents.report_of`."""
    assert export.inputs is not None
    views = load_views(export.folders, judge=export.requested_judge)
    return report_of(Evidence(export, export.inputs, views), export.options.title)
