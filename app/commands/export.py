"""``rashomon export``: tables, figures and samples as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from app.exports.source import Export, Files, benchmark_of, load
from app.exports.writing import check_formats, write
from app.figures.style import FIGURE_FORMATS, inches
from app.paths import typed_path
from app.report.tables import tables_of
from app.store.workspace import Workspace
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError

_WRITERS = {
    "csv": "app.exports.plain:to_csv_files",
    "md": "app.exports.plain:to_markdown_files",
    "latex": "app.exports.latex:to_latex_files",
    "json": "app.exports.plain:to_json_files",
    "parquet": "app.exports.plain:to_parquet_files",
    "html": "app.exports.html:to_html_files",
    "lm-eval": "app.exports.lm_eval:to_lm_eval_files",
    "inspect": "app.exports.inspect_log:to_inspect_files",
    **{form: f"app.exports.figures:to_{form}_files" for form in FIGURE_FORMATS},
}
FORMATS = tuple(_WRITERS)


def export(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    formats: Sequence[str],
    out: Path | None,
    judge: str | None,
    canonical: bool,
    width: str,
    metric: str | None,
) -> None:
    """Write the tables of ``runs`` together, and each one's samples, in every one of ``formats``.

    ``width`` and ``metric`` are for figures: how wide they are, and which column of the main table is shown against memory.
    Raises SpecError for an unknown format, width or column.
    """
    check_formats(formats, FORMATS)
    inches(width)
    folders = [workspace.run_folder(run) for run in runs]
    folder = typed_path(out or Path("export") / folders[0].name)
    tables = tables_of(folders, judge=judge)
    found = load(workspace, folders, judge)
    given = Export(benchmark_of(found), found, tables, canonical, width, metric)
    if metric is not None and metric not in given.main.columns:
        raise SpecError(f"the main table has no column {metric!r}; {did_you_mean(metric, given.main.columns)}")
    files: Files = {}
    for word in dict.fromkeys(formats):
        files |= _writer(word)(given)
    if not files:
        raise SpecError(f"these runs have no figure to draw as {', '.join(formats)}; their tables are in --format md.")
    write(folder, files)


def _writer(form: str) -> Callable[[Export], Files]:
    module, _, name = _WRITERS[form].partition(":")
    made: Callable[[Export], Files] = getattr(import_module(module), name)
    return made
