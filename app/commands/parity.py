"""``rashomon parity``: two runs or models stage by stage, or one model's ladder of frameworks and quantisations."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.commands.parity_runs import RunOptions, ask, builds_of, runs_of
from app.compare.published import PUBLISHED
from app.engine.workers.supervise import INTERRUPTED
from app.exports.writer import check_formats, write
from app.exports.writer import told as told_files
from app.figures.style import inches
from app.parity.compare_runs import compare_runs, keep
from app.parity.probing import PROBES, ProbeOptions
from app.parity.published import beside_published
from app.parity.tables import tables, to_json
from app.report.render import print_table
from app.report.render import to_json as table_to_json
from app.store.workspace import Workspace
from app.system.paths import typed_path
from app.text.console import Terminal
from app.text.escape import clean
from benchmarks.base import Table
from benchmarks.errors import SpecError


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How it is told: printed, as JSON where ``as_json``; a ladder also in ``formats`` as files in the folder ``out``, figures of
    ``width``."""

    formats: Sequence[str] = ()
    out: Path | None = None
    width: str = "column"
    as_json: bool = False


def parity(
    workspace: Workspace,
    names: Sequence[str],
    models: Sequence[str],
    asking: RunOptions,
    output: OutputOptions,
    *,
    judge: str | None,
    probes: int,
) -> int:
    """Compare two runs or models, stand a run beside the paper's rows, or climb the ladder of ``models``; the exit code."""
    rows = [name.removeprefix(PUBLISHED) for name in names if name.startswith(PUBLISHED)]
    sides = [name for name in names if not name.startswith(PUBLISHED)]
    if models:
        if sides:
            raise SpecError("--model climbs the ladder of one model; name no runs beside it but published:ROW.")
        return _climb(workspace, models, rows, asking, output, judge=judge, probes=probes)
    if output.formats:
        raise SpecError("--format writes a ladder; with two runs use `rashomon compare --format`, or --json.")
    if not sides or len(sides) > 2:
        raise SpecError("name two runs or models, or one run and published:ROW; or a model with --model.")
    folders = runs_of(workspace, sides, asking)
    if folders is None:
        return INTERRUPTED
    look = ProbeOptions(probes, builds_of(workspace, folders, asking.data), asking.force, _say)
    if len(sides) + len(rows) == 1:
        _say(keep(folders[0], replace(look, probes=probes or PROBES)))
        return 0
    body: dict[str, Any] = {}
    shown: list[Table] = []
    verdicts: list[str] = []
    if len(folders) == 2:
        found = compare_runs((folders[0], folders[1]), look, judge=judge)
        body, shown, verdicts = to_json(found), tables(found), [found.verdict]
    if rows:
        beside = beside_published(folders, rows, judge)
        body["published"] = {"verdict": beside.verdict, "comparability": list(beside.comparability)}
        shown.append(beside.table)
        verdicts.append(beside.verdict)
    _tell(verdicts, shown, body, as_json=output.as_json)
    return 0


def _climb(
    workspace: Workspace,
    models: Sequence[str],
    rows: Sequence[str],
    asking: RunOptions,
    output: OutputOptions,
    *,
    judge: str | None,
    probes: int,
) -> int:
    """Ask every rung that can be had here, and tell where the difference enters."""
    from app.exports.ladder import FORMATS, to_files
    from app.parity.ladder import tables
    from app.parity.ladder.compare import climb
    from app.parity.ladder.models import rungs

    if output.formats:
        check_formats(output.formats, FORMATS)
        inches(output.width)
    every = rungs(list(models))
    there = [rung for rung in every if not rung.why]
    missing = [f"{rung.name}: {rung.why}" for rung in every if rung.why]
    for line in missing:
        _say(line)
    if sum(not rung.aside for rung in there) < 2:
        raise SpecError(f"there is one rung or none of {models[0]} here; name the rungs, each with --model.")
    folders = ask(workspace, [rung.model for rung in there], asking)
    if folders is None:
        return INTERRUPTED
    look = ProbeOptions(probes, builds_of(workspace, folders, asking.data), asking.force, _say)
    found = climb(there, folders, look, judge=judge, missing=missing)
    body, shown, verdicts = tables.to_json(found), tables.tables(found), [found.verdict]
    if rows:
        table, told = tables.beside_paper(found, rows, judge)
        shown.append(table)
        verdicts.append(told)
        body["published"] = {"verdict": told}
    if output.formats:
        files = to_files(found, shown, verdicts, output.formats, output.width)
        folder = typed_path(output.out or Path("parity"))
        write(folder, files)
        _say(told_files(folder, files))
    _tell(verdicts, shown, body, as_json=output.as_json)
    return 0


def _tell(verdicts: Sequence[str], shown: Sequence[Table], body: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**body, "tables": [table_to_json(table) for table in shown]}, indent=2))
        return
    from rich.text import Text

    for verdict in verdicts:
        Terminal().print(Text(clean(verdict)))
        print()
    for table in shown:
        print_table(table)


def _say(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
