"""``rashomon parity``: two runs or models compared stage by stage, or a ladder of one model's versions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.commands.results.parity_runs import AnswerOptions, answer_runs, candidate_builds, find_or_answer_runs
from app.compare.papers.paper_distance import compare_with_paper
from app.exports.export_writer import check_formats, write_files, written_message
from app.figures.figure_style import inches
from app.json_output.json_envelope import print_json
from app.json_output.parity_json import ParityResult, ladder_json, pair_json
from app.json_output.tables_json import table_json
from app.parity.model_probing import DEFAULT_PROBES, ProbeOptions
from app.parity.parity_report import compare_runs, store_probes
from app.parity.parity_tables import tables
from app.report.runs.portable_facts import portable_message
from app.report.tables.judge_selection import judge_of
from app.report.tables.table_rendering import print_table
from app.store.run_references import PUBLISHED, PublishedRow, find_reference
from app.store.workspace import Workspace
from app.text.console import Terminal
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Table


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options of the output: JSON if ``as_json``; for a ladder also files of ``formats`` in the folder ``out``."""

    formats: Sequence[str] = ()
    out: Path | None = None
    width: str = "column"
    as_json: bool = False


def parity(
    workspace: Workspace,
    names: Sequence[str],
    answering: AnswerOptions,
    output: OutputOptions,
    *,
    models: Sequence[str],
    judge: str | None,
    probes: int,
) -> int:
    """Compare two runs or models, a run with the paper's rows, or the versions of a model; return the exit code."""
    rows = [_paper_row(workspace, name) for name in names if name.startswith(PUBLISHED)]
    run_names = [name for name in names if not name.startswith(PUBLISHED)]
    if models:
        if run_names:
            raise SpecError("--model compares the versions of one model; name no runs with it except published:ROW.")
        return _compare_ladder(workspace, models, rows, answering, output, judge=judge, probes=probes)
    if output.formats:
        raise SpecError(
            "--format needs --model; to write files about two runs use `rashomon compare --format`, or --json."
        )
    if not run_names or len(run_names) > 2:
        raise SpecError("name two runs or models, or one run and published:ROW; or a model with --model.")
    folders = find_or_answer_runs(workspace, run_names, answering)
    probing = ProbeOptions(
        probes, candidate_builds(workspace, folders, answering.data), answering.force, _print_progress
    )
    if len(run_names) + len(rows) == 1:
        message = store_probes(folders[0], replace(probing, probes=probes or DEFAULT_PROBES))
        if output.as_json:
            print_json("parity", ParityResult(message=portable_message(message, workspace.path)), folders=folders)
        else:
            _print_progress(message)
        return 0
    result = ParityResult()
    printed: list[Table] = []
    if len(folders) == 2:
        comparison = compare_runs((folders[0], folders[1]), probing, judge=judge)
        result = replace(result, verdicts=(comparison.verdict,), pair=pair_json(comparison))
        printed = tables(comparison)
    if rows:
        published = compare_with_paper(folders, rows, judge)
        verdicts = (*result.verdicts, published.verdict)
        result = replace(result, verdicts=verdicts, comparability=published.comparability)
        printed.append(published.table)
    _print_results(result, printed, folders, judge, as_json=output.as_json)
    return 0


def _paper_row(workspace: Workspace, text: str) -> str:
    """Return the name of a paper's row. Raises SpecError for a bundle's run, which has more than its tables to compare."""
    reference = find_reference(workspace, text)
    if not isinstance(reference, PublishedRow) or reference.folder is not None:
        raise SpecError(
            f"{text} is a bundle's run; leave published: out, or compare its tables with `rashomon compare`."
        )
    return reference.name


def _compare_ladder(
    workspace: Workspace,
    models: Sequence[str],
    rows: Sequence[str],
    answering: AnswerOptions,
    output: OutputOptions,
    *,
    judge: str | None,
    probes: int,
) -> int:
    """Run every version of the model that is available here, and print where its answers change; return the exit code."""
    from app.exports.ladder_export import FORMATS, to_files
    from app.parity.ladder import ladder_tables as tables
    from app.parity.ladder.ladder_comparison import compare_rungs
    from app.parity.ladder.ladder_models import find_rungs

    if output.formats:
        check_formats(output.formats, FORMATS)
        inches(output.width)
    ladder = find_rungs(list(models))
    available = [rung for rung in ladder if not rung.why]
    missing = [f"{rung.name}: {rung.why}" for rung in ladder if rung.why]
    for line in missing:
        _print_progress(line)
    if sum(not rung.side_branch for rung in available) < 2:
        raise SpecError(f"fewer than two versions of {models[0]} are available here; name each version with --model.")
    folders = answer_runs(workspace, [rung.model for rung in available], answering)
    probing = ProbeOptions(
        probes, candidate_builds(workspace, folders, answering.data), answering.force, _print_progress
    )
    comparison = compare_rungs(available, folders, probing, judge=judge, missing=missing)
    printed, verdicts = tables.tables(comparison), [comparison.verdict]
    if rows:
        table, verdict = tables.compare_with_paper_columns(comparison, rows, judge)
        printed.append(table)
        verdicts.append(verdict)
    if output.formats:
        files = to_files(comparison, printed, verdicts, output.formats, output.width)
        folder = typed_path(output.out or Path("parity"))
        write_files(folder, files)
        _print_progress(written_message(folder, files))
    result = ParityResult(verdicts=tuple(verdicts), ladder=ladder_json(comparison))
    _print_results(result, printed, folders, judge, as_json=output.as_json)
    return 0


def _print_results(
    result: ParityResult, printed: Sequence[Table], folders: Sequence[Path], judge: str | None, *, as_json: bool
) -> None:
    if as_json:
        result = replace(result, tables=tuple(map(table_json, printed)))
        print_json("parity", result, folders=folders, judge=judge_of(folders, judge))
        return
    from rich.text import Text

    for verdict in result.verdicts:
        Terminal().print(Text(clean(verdict)))
        print()
    for table in printed:
        print_table(table)


def _print_progress(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
