"""``rashomon export``: tables, figures and samples as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.exports.export_formats import FORMATS, default_folder, export_runs
from app.exports.export_input import ExportOptions
from app.exports.export_writer import check_formats, written_message
from app.store.run_references import run_folders
from app.store.workspace import Workspace
from benchmarks.errors import SpecError


@dataclass(frozen=True, slots=True)
class ExportArguments:
    """The options of ``rashomon export``; see :func:`app.exports.export_formats.export_runs`."""

    formats: Sequence[str]
    out: Path | None = None
    judge: str | None = None
    canonical: bool = False
    width: str = "column"
    metric: str | None = None
    caption: Sequence[str] = ()
    """LaTeX captions, each "TABLE=TEXT"."""


def export(workspace: Workspace, runs: Sequence[str], arguments: ExportArguments) -> None:
    """Write the shared tables and figures of ``runs`` and the samples of each run, in every format."""
    check_formats(arguments.formats, FORMATS)
    captions = dict(_caption(text) for text in arguments.caption)
    folders = run_folders(workspace, runs)
    with spinner("reading the runs") as update:
        exported = export_runs(
            workspace,
            folders,
            formats=arguments.formats,
            out=arguments.out or default_folder(folders),
            judge=arguments.judge,
            options=ExportOptions(arguments.canonical, arguments.width, arguments.metric, captions),
            step=lambda label, done, total: update(f"{label} ({done} of {total})"),
        )
    print(written_message(exported.folder, (name for name, _ in exported.files)))


def _caption(text: str) -> tuple[str, str]:
    table, equals, caption = text.partition("=")
    if not equals or not caption.strip():
        raise SpecError(
            f"--caption {text!r} is not of the form TABLE=TEXT; an example is 'main=Results on our charts'."
        )
    return table.strip(), caption.strip()
