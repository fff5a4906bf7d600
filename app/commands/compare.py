"""``rashomon compare``: runs beside each other, and beside the paper's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from app.commands.spinner import doing
from app.compare.headline import headlines
from app.compare.published import PUBLISHED
from app.compare.tables import Comparison, to_json
from app.compare.tables import compare as compare_runs
from app.exports.writer import check_formats, told, write
from app.figures.style import FIGURE_FORMATS, inches
from app.report.headline import others
from app.report.render import print_table
from app.report.render import to_json as table_to_json
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.escape import clean
from benchmarks.base import did_you_mean
from benchmarks.errors import SpecError

FORMATS = ("csv", "md", "latex", "html", *FIGURE_FORMATS)


def compare(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    judge: str | None,
    baseline: str | None,
    metrics: Sequence[str],
    group_by: str | None,
    flips: bool,
    cells: Sequence[str],
    formats: Sequence[str] | None,
    out: Path | None,
    width: str,
    as_json: bool,
    only: str | None = None,
    all_tables: bool = False,
) -> None:
    """Print what differs between ``runs``, and how sure that is; or write it in ``formats`` into the folder ``out``.

    Without ``all_tables``, or ``only`` the name of one, the tables that were asked for are printed: of the differences, the
    quantisations, the flipped instances or the paper's rows.
    """
    inches(width)
    if formats is not None:
        check_formats(formats, FORMATS)
    sides = [found_run(workspace, run) for run in runs]
    with doing(f"comparing {len(sides)} runs"):
        found = compare_runs(
            sides,
            judge=judge,
            baseline=workspace.run_folder(baseline) if baseline else None,
            metrics=metrics,
            group_by=group_by,
            instances=flips,
            cells=cells,
        )
    if formats is not None:
        _write(workspace, found, judge, formats, out, width)
        return
    tables = found.tables
    if only is not None:
        tables = tuple(table for table in tables if table.name == only)
        if not tables:
            raise SpecError(
                f"there is no table {only!r} here; {did_you_mean(only, [each.name for each in found.tables])}"
            )
    if as_json:
        whole = {**to_json(found), "tables": [table_to_json(table) for table in tables]}
        print(json.dumps(whole, indent=2))
        return
    told = [clean(line) for line in headlines(found)]
    told += [f"! {clean(warning)}" for warning in found.warnings]
    print("\n".join(told), end="\n\n" if told else "")
    shown = tables if only is not None or all_tables else [table for table in tables if table.name in _main(found)]
    for table in shown:
        print_table(table)
    if only is None and (more := others(tables, [table.name for table in shown])):
        print(more)


def _main(found: Comparison) -> tuple[str, ...]:
    """The names of the tables that answer what was asked."""
    names = [table.name for table in found.tables]
    flipped = [name for name in names if name == "flipped"]
    paper = [name for name in names if name == "published"]
    first = next((name for name in ("tradeoff", "differences") if name in names), "")
    return (first, *flipped, *paper)


def _write(
    workspace: Workspace,
    found: Comparison,
    judge: str | None,
    formats: Sequence[str],
    out: Path | None,
    width: str,
) -> None:
    from app.exports.comparison import WRITERS
    from app.exports.source import Export, Files, load

    files: Files = {}
    with doing("reading the runs") as say:
        runs = load(workspace, found.folders, judge)
        given = Export(
            found.sides.benchmark, runs, found.tables, width=width, warnings=found.warnings, comparison=found
        )
        for word in dict.fromkeys(formats):
            say(f"making {word}")
            files |= WRITERS[word](given)
    if not files:
        raise SpecError(f"these runs have no figure to draw as {', '.join(formats)}; their tables are in --format md.")
    folder = typed_path(out or Path("comparison"))
    write(folder, files)
    print(told(folder, files))


def found_run(workspace: Workspace, run: str) -> str | Path:
    """A run's folder; a row of the paper's as it is named."""
    return run if run.startswith(PUBLISHED) else workspace.run_folder(run)
