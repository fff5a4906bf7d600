"""Export to HTML: the report, and the sample browser."""

from __future__ import annotations

from app.exports import sample_browser
from app.exports.export_input import Export, Files
from app.exports.report.export import html_report


def to_html_files(export: Export) -> Files:
    """Return ``report.html`` and ``samples.html``."""
    return {"report.html": html_report(export), "samples.html": sample_browser.page(export)}
