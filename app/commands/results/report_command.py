"""``rashomon report``: a paper-style document about runs, from stored data alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.compare.runs.run_view import reject_duplicates
from app.exports.export_formats import default_folder, export_runs
from app.exports.export_input import ExportOptions
from app.exports.export_writer import written_message
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from benchmarks import number_ranges as ranges


def report(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    out: Path | None,
    judge: str | None,
    title: str,
    margin: float,
    trust: str | None,
    canonical: bool,
) -> None:
    """Write ``report.html``, ``report.tex`` and the figures of the latter."""
    ranges.MARGIN.check("--margin", margin)
    folders = run_folders(workspace, runs)
    reject_duplicates(folders)
    with spinner("reading the runs") as update:
        exported = export_runs(
            workspace,
            folders,
            formats=["report"],
            out=out or default_folder(folders),
            judge=judge,
            options=ExportOptions(canonical, width="page", title=title, margin=margin, trust=trust),
            step=lambda label, done, total: update(f"{label} ({done} of {total})"),
        )
    print(written_message(exported.folder, (name for name, _ in exported.files)))
