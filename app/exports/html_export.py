"""Export to HTML: the report, and the page of answers that it links to."""

from __future__ import annotations

from app.exports.export_input import Export, Files
from app.exports.report.report_export import html_report
from app.view.contents.page_contents import Contents
from app.view.saved.saved_page import saved_page

_PAGE = "samples.html"


def to_html_files(export: Export) -> Files:
    """Return ``report.html`` and ``samples.html``."""
    assert export.workspace is not None
    options = export.options
    contents = Contents(export.workspace, export.folders, judge=export.requested_judge, rule=options.trust, saved=True)
    report = html_report(export, lambda instance: f"{_PAGE}#instance={contents.number(instance)}")
    return {"report.html": report, _PAGE: saved_page(contents, canonical=options.canonical)}
