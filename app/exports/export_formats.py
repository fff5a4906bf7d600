"""Export formats, and the export of runs into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from app.exports.export_input import Export, ExportOptions, Files, benchmark_of, load_runs
from app.exports.export_writer import check_formats, write_files
from app.figures.figure_style import FIGURE_FORMATS, inches
from app.report.tables.run_tables import tables_from
from app.report.tables.table_inputs import read_inputs
from app.store.workspace import Workspace
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.untrusted.typed_paths import typed_path

_WRITERS = {
    "report": "app.exports.report.report_export:to_report_files",
    "csv": "app.exports.tabular_export:to_csv_files",
    "md": "app.exports.tabular_export:to_markdown_files",
    "latex": "app.exports.latex_export:to_latex_files",
    "json": "app.exports.tabular_export:to_json_files",
    "parquet": "app.exports.tabular_export:to_parquet_files",
    "html": "app.exports.html_export:to_html_files",
    "lm-eval": "app.exports.lm_eval_export:to_lm_eval_files",
    "inspect": "app.exports.inspect_export:to_inspect_files",
    **{form: f"app.exports.figures_export:to_{form}_files" for form in FIGURE_FORMATS},
}
FORMATS = tuple(_WRITERS)
FORMAT_DESCRIPTIONS = {
    "report": "for readers: HTML, LaTeX",
    "csv": "a table per file; samples",
    "md": "tables for GitHub",
    "latex": "tables as a document",
    "json": "tables; samples as stored",
    "parquet": "tables; samples",
    "html": "report, page of answers",
    "lm-eval": "lm-evaluation-harness",
    "inspect": "Inspect's log",
    "png": "figures, 300 dpi",
    "svg": "figures",
    "pdf": "figures for a paper",
}
"""A short description of each format."""
DEFAULT_FORMATS = ("csv", "md", "latex", "json")
"""The formats that are written by default."""


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """The result of an export: its folder, and the files in it with their sizes in bytes."""

    folder: Path
    files: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.files)


def export_runs(
    workspace: Workspace,
    folders: Sequence[Path],
    *,
    formats: Sequence[str],
    out: Path,
    judge: str | None = None,
    options: ExportOptions | None = None,
    step: Callable[[str, int, int], None] = lambda task, done, total: None,
) -> WrittenExport:
    """Write the joint tables of the runs in ``folders``, and the samples of each, in all ``formats``.

    ``step`` receives the next task, and the number of tasks done and in total. Raises SpecError for an unknown format, width,
    column or table, and StoreError if ``out`` cannot be written; files that are complete by then stay.
    """
    options = options or ExportOptions()
    check_formats(formats, FORMATS)
    inches(options.width)
    names = list(dict.fromkeys(formats))
    total = len(names) + 2
    step("reading the runs", 0, total)
    export = read_export(workspace, folders, judge, options)
    table_names, columns = [table.name for table in export.tables], export.main.columns
    for name in options.captions:
        if name not in table_names:
            raise SpecError(f"there is no table {name!r} here; {did_you_mean(name, table_names)}")
    if options.metric is not None and options.metric not in columns:
        raise SpecError(f"the main table has no column {options.metric!r}; {did_you_mean(options.metric, columns)}")
    files: Files = {}
    for done, form in enumerate(names, 1):
        step(f"making {form}", done, total)
        files |= _writer(form)(export)
    if not files:
        raise SpecError(f"these runs have no figure to draw as {', '.join(formats)}; their tables are in --format md.")
    step("writing", total - 1, total)
    folder = typed_path(out)
    sizes = write_files(folder, files)
    step("done", total, total)
    return WrittenExport(folder, sizes)


def read_export(
    workspace: Workspace,
    folders: Sequence[Path],
    judge: str | None = None,
    options: ExportOptions | None = None,
    *,
    checked: bool = True,
) -> Export:
    """Read the runs in ``folders``, and count their joint tables; for ``checked`` see :func:`read_inputs`."""
    options = options or ExportOptions()
    inputs = read_inputs(folders, judge, checked=checked and not options.canonical).with_trust(options.trust)
    runs = load_runs(workspace, folders, judge, inputs)
    return Export(
        benchmark_of(runs),
        runs,
        tables_from(inputs),
        options,
        inputs=inputs,
        folders=folders,
        workspace=workspace,
        requested_judge=judge,
    )


def default_folder(folders: Sequence[Path]) -> Path:
    """Return the default folder of an export: ``export/RUN`` in the current folder."""
    return Path("export") / folders[0].name


def _writer(form: str) -> Callable[[Export], Files]:
    module, _, name = _WRITERS[form].partition(":")
    writer: Callable[[Export], Files] = getattr(import_module(module), name)
    return writer
