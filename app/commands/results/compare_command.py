"""``rashomon compare``: a comparison of runs with each other and with a paper's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.commands.terminal.spinner import spinner
from app.compare.comparison_headline import headlines, shows_transitions
from app.compare.comparison_tables import Comparison
from app.compare.comparison_tables import compare as compare_runs
from app.compare.fine_tuning.fine_tuning_verdict import MARGIN, Verdict, verdict
from app.exports.export_writer import check_formats, write_files, written_message
from app.figures.figure_style import FIGURE_FORMATS, inches
from app.json_output.comparison_json import compare_result
from app.json_output.json_envelope import print_json
from app.report.tables.run_headline import other_tables_note
from app.report.tables.table_rendering import print_table
from app.store.run_references import PublishedRow, find_reference, run_folder
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Table

FORMATS = ("csv", "md", "latex", "html", *FIGURE_FORMATS)


@dataclass(frozen=True, slots=True)
class CompareArguments:
    """The options of ``rashomon compare``."""

    judge: str | None = None
    baseline: str | None = None
    metrics: Sequence[str] = ()
    group_by: str | None = None
    flips: bool = False
    cells: Sequence[str] = ()
    margin: float = MARGIN
    formats: Sequence[str] | None = None
    out: Path | None = None
    width: str = "column"
    as_json: bool = False
    only: str | None = None
    """The name of the one table to print."""
    all_tables: bool = False


def compare(workspace: Workspace, runs: Sequence[str], arguments: CompareArguments) -> None:
    """Print the differences between ``runs`` with their significance, or write them to files.

    By default the tables that the arguments request are printed: for own rows the transitions, then the differences or
    quantisations, the flipped instances and the paper's rows.
    """
    inches(arguments.width)
    ranges.MARGIN.check("--margin", arguments.margin)
    if arguments.formats is not None:
        check_formats(arguments.formats, FORMATS)
    references = [find_reference(workspace, run) for run in runs]
    compared = [reference if isinstance(reference, PublishedRow) else reference.folder for reference in references]
    with spinner(f"comparing {len(compared)} runs"):
        comparison = compare_runs(
            compared,
            judge=arguments.judge,
            baseline=run_folder(workspace, arguments.baseline, whole=True) if arguments.baseline else None,
            metrics=arguments.metrics,
            group_by=arguments.group_by,
            instances=arguments.flips,
            cells=arguments.cells,
        )
    verdicts = [verdict(tuning, arguments.margin) for tuning in comparison.fine_tunings]
    if arguments.formats is not None:
        noted = replace(comparison, tables=_with_verdicts(comparison.tables, verdicts))
        _write(workspace, noted, arguments.formats, arguments)
        return
    tables = comparison.tables if arguments.only is None else _only(comparison.tables, arguments.only)
    if arguments.as_json:
        received = [reference.folder for reference in references if isinstance(reference, PublishedRow)]
        folders = (*comparison.folders, *filter(None, received))
        print_json(
            "compare", compare_result(comparison, verdicts, tables), folders=folders, judge=comparison.views.judge
        )
        return
    _print(comparison, verdicts, tables, arguments)


def _only(tables: Sequence[Table], name: str) -> tuple[Table, ...]:
    """Return the tables of a name. Raises SpecError if there is none."""
    named = tuple(table for table in tables if table.name == name)
    if not named:
        raise SpecError(f"there is no table {name!r} here; {did_you_mean(name, [table.name for table in tables])}")
    return named


def _print(
    comparison: Comparison, verdicts: Sequence[Verdict], tables: Sequence[Table], arguments: CompareArguments
) -> None:
    lines = [clean(line) for line in (*(x.text for x in verdicts), *headlines(comparison))]
    lines += [f"! {clean(warning)}" for warning in comparison.warnings]
    print("\n".join(lines), end="\n\n" if lines else "")
    prints_all = arguments.only is not None or arguments.all_tables
    printed = tables if prints_all else [table for table in tables if table.name in _requested_tables(comparison)]
    for table in printed:
        print_table(table)
    if arguments.only is None and (more := other_tables_note(tables, [table.name for table in printed])):
        print(more)


def _requested_tables(comparison: Comparison) -> tuple[str, ...]:
    """Return the names of the tables that the arguments of the comparison request."""
    names = [table.name for table in comparison.tables]
    flipped = [name for name in names if name == "flipped"]
    paper = [name for name in names if name in ("published", "received")]
    first = next((name for name in ("tradeoff", "differences") if name in names), "")
    tuning = [name for name in names if name in ("fine-tuning", "regressions")]
    transitions = ["transitions"] if shows_transitions(comparison) else []
    return (*transitions, *(tuning or (first,)), *flipped, *paper)


def _with_verdicts(tables: Sequence[Table], verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    """Return the tables with the verdicts among the notes of what changed with fine-tuning."""
    texts = [of.text for of in verdicts]
    return tuple(replace(x, notes=(*texts, *x.notes)) if x.name == "fine-tuning" else x for x in tables)


def _write(workspace: Workspace, comparison: Comparison, formats: Sequence[str], arguments: CompareArguments) -> None:
    from app.exports.comparison_export import WRITERS
    from app.exports.export_input import Export, ExportOptions, Files, load_runs

    files: Files = {}
    with spinner("reading the runs") as update:
        runs = load_runs(workspace, comparison.folders, arguments.judge)
        export = Export(
            comparison.views.benchmark,
            runs,
            comparison.tables,
            ExportOptions(width=arguments.width, margin=arguments.margin),
            warnings=comparison.warnings,
            comparison=comparison,
            folders=comparison.folders,
            workspace=workspace,
            requested_judge=arguments.judge,
        )
        for file_format in dict.fromkeys(formats):
            update(f"writing {file_format}")
            files |= WRITERS[file_format](export)
    if not files:
        raise SpecError(
            f"there is no figure of these runs to draw as {', '.join(formats)}; --format md writes their tables."
        )
    folder = typed_path(arguments.out or Path("comparison"))
    write_files(folder, files)
    print(written_message(folder, files))
