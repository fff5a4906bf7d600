"""An export, from runs to files: which formats there are, and the writing of chosen ones into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from app.exports.source import Export, Files, benchmark_of, load
from app.exports.writer import check_formats
from app.exports.writer import write as write_files
from app.figures.style import FIGURE_FORMATS, inches
from app.report.tables import tables_of
from app.store.workspace import Workspace
from app.system.paths import typed_path
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
ABOUT = {
    "csv": "a file a table; samples",
    "md": "tables for GitHub",
    "latex": "tables as a document",
    "json": "tables; samples as stored",
    "parquet": "tables; samples",
    "html": "one page: all of it",
    "lm-eval": "lm-evaluation-harness",
    "inspect": "Inspect's log",
    "png": "figures, 300 dpi",
    "svg": "figures",
    "pdf": "figures for a paper",
}
"""What each format is, in a few words."""
USUAL = ("csv", "md", "latex", "json")
"""The formats that are written unless others are asked for."""


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """What an export wrote: its folder, and its files below it with their sizes in bytes."""

    folder: Path
    files: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.files)


def write(
    workspace: Workspace,
    folders: Sequence[Path],
    *,
    formats: Sequence[str],
    out: Path,
    judge: str | None = None,
    canonical: bool = False,
    width: str = "column",
    metric: str | None = None,
    captions: Mapping[str, str] = MappingProxyType({}),
    step: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> WrittenExport:
    """Write the tables of the runs in ``folders`` together, and each one's samples, in every one of ``formats``.

    ``width`` and ``metric`` are for figures: how wide they are, and which column of the main table is shown against memory.
    ``captions`` replace the titles of tables in LaTeX, by table name. ``step`` is told what comes next, and how many of how
    many steps are done. Raises SpecError for an unknown format, width, column or table, StoreError where ``out`` cannot be
    written; files that were whole by then stay.
    """
    check_formats(formats, FORMATS)
    inches(width)
    words = list(dict.fromkeys(formats))
    total = len(words) + 2
    step("reading the runs", 0, total)
    tables = tables_of(folders, judge=judge)
    found = load(workspace, folders, judge)
    given = Export(benchmark_of(found), found, tables, canonical, width, metric, captions=captions)
    for name in captions:
        if name not in (known := [table.name for table in tables]):
            raise SpecError(f"there is no table {name!r} here; {did_you_mean(name, known)}")
    if metric is not None and metric not in given.main.columns:
        raise SpecError(f"the main table has no column {metric!r}; {did_you_mean(metric, given.main.columns)}")
    files: Files = {}
    for done, word in enumerate(words, 1):
        step(f"making {word}", done, total)
        files |= _writer(word)(given)
    if not files:
        raise SpecError(f"these runs have no figure to draw as {', '.join(formats)}; their tables are in --format md.")
    step("writing", total - 1, total)
    folder = typed_path(out)
    sizes = write_files(folder, files)
    step("done", total, total)
    return WrittenExport(folder, sizes)


def usual_folder(folders: Sequence[Path]) -> Path:
    """Where an export goes unless told otherwise: ``export/RUN`` here."""
    return Path("export") / folders[0].name


def _writer(form: str) -> Callable[[Export], Files]:
    module, _, name = _WRITERS[form].partition(":")
    made: Callable[[Export], Files] = getattr(import_module(module), name)
    return made
