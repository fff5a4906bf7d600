"""``rashomon parity``: two runs or models stage by stage, or one model's ladder of frameworks and quantisations."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.commands.batch import work
from app.compare.published import PUBLISHED
from app.config import load_spec
from app.display import make_display
from app.engine.plan import check, plan
from app.engine.supervise import INTERRUPTED
from app.exports.source import Files
from app.exports.writing import check_formats, write
from app.exports.writing import told as told_files
from app.figures.style import FIGURE_FORMATS, inches, to_bytes
from app.parity.pair import compare_runs, keep
from app.parity.probing import PROBES
from app.parity.published import beside_published
from app.parity.tables import tables, to_json
from app.paths import typed_path
from app.report.console import Terminal
from app.report.latex import document
from app.report.render import print_table, to_csv, to_markdown
from app.report.render import to_json as table_to_json
from app.report.text import clean, markdown
from app.store.database import DATABASE
from app.store.run import RunStore
from app.store.workspace import Workspace
from benchmarks.base import Table
from benchmarks.errors import SpecError, StoreError
from mlx_backends.registry import looks_like_model

FORMATS = ("csv", "md", "latex", *FIGURE_FORMATS)

EXAMPLES = 24
"""How many examples models are asked, where nobody says otherwise."""


def parity(
    workspace: Workspace,
    names: Sequence[str],
    asked: Mapping[str, Any],
    *,
    models: Sequence[str],
    judge: str | None,
    probes: int,
    data: Path | None,
    force: bool,
    display: str | None,
    formats: Sequence[str],
    out: Path | None,
    width: str,
    as_json: bool,
) -> int:
    """Compare two runs or models, stand a run beside the paper's rows, or climb the ladder of ``models``; the exit code.

    ``asked`` is what the spec of a run that is still to be made says besides its model.
    """
    rows = [name.removeprefix(PUBLISHED) for name in names if name.startswith(PUBLISHED)]
    sides = [name for name in names if not name.startswith(PUBLISHED)]
    if models:
        if sides:
            raise SpecError("--model climbs the ladder of one model; name no runs beside it but published:ROW.")
        return _climb(
            workspace,
            models,
            rows,
            {**asked, "data": data},
            judge=judge,
            probes=probes,
            data=data,
            force=force,
            display="none" if as_json else display,
            formats=formats,
            out=out,
            width=width,
            as_json=as_json,
        )
    if formats:
        raise SpecError("--format writes a ladder; with two runs use `rashomon compare --format`, or --json.")
    if not sides or len(sides) > 2:
        raise SpecError("name two runs or models, or one run and published:ROW; or a model with --model.")
    folders = _runs(workspace, sides, {**asked, "data": data}, force=force, display="none" if as_json else display)
    if folders is None:
        return INTERRUPTED
    builds = _builds(workspace, folders, data)
    body: dict[str, Any] = {}
    shown: list[Table] = []
    verdicts: list[str] = []
    if len(sides) + len(rows) == 1:
        _say(keep(folders[0], probes=probes or PROBES, builds=builds, force=force, say=_say))
        return 0
    if len(folders) == 2:
        found = compare_runs((folders[0], folders[1]), judge=judge, probes=probes, builds=builds, force=force, say=_say)
        body, shown, verdicts = to_json(found), tables(found), [found.verdict]
    if rows:
        beside = beside_published(folders, rows, judge)
        body["published"] = {"verdict": beside.verdict, "comparability": list(beside.comparability)}
        shown.append(beside.table)
        verdicts.append(beside.verdict)
    _tell(verdicts, shown, body, as_json=as_json)
    return 0


def _climb(
    workspace: Workspace,
    models: Sequence[str],
    rows: Sequence[str],
    asked: Mapping[str, Any],
    *,
    judge: str | None,
    probes: int,
    data: Path | None,
    force: bool,
    display: str | None,
    formats: Sequence[str],
    out: Path | None,
    width: str,
    as_json: bool,
) -> int:
    """Ask every rung that can be had here, and tell where the difference enters."""
    from app.parity import ladder_tables
    from app.parity.ladder import climb
    from app.parity.rungs import rungs

    if formats:
        check_formats(formats, FORMATS)
        inches(width)
    every = rungs(list(models))
    there = [rung for rung in every if not rung.why]
    missing = [f"{rung.name}: {rung.why}" for rung in every if rung.why]
    for line in missing:
        _say(line)
    if sum(not rung.aside for rung in there) < 2:
        raise SpecError(f"there is one rung or none of {models[0]} here; name the rungs, each with --model.")
    folders = ask(workspace, [rung.model for rung in there], asked, force=force, display=display)
    if folders is None:
        return INTERRUPTED
    builds = _builds(workspace, folders, data)
    found = climb(there, folders, judge=judge, probes=probes, builds=builds, force=force, say=_say, missing=missing)
    body, shown, verdicts = ladder_tables.to_json(found), ladder_tables.tables(found), [found.verdict]
    if rows:
        table, told = ladder_tables.beside_paper(found, rows, judge)
        shown.append(table)
        verdicts.append(told)
        body["published"] = {"verdict": told}
    if formats:
        from app.figures.ladder import figure

        files: Files = {}
        for word in dict.fromkeys(formats):
            if word in FIGURE_FORMATS:
                files[f"ladder.{word}"] = to_bytes(figure(found, width=width), word)
            elif word == "csv":
                files |= {f"{table.name}.csv": to_csv(table) for table in shown}
            elif word == "md":
                files["ladder.md"] = "\n".join([*(f"{markdown(v)}\n" for v in verdicts), *map(to_markdown, shown)])
            else:
                files["ladder.tex"] = document(shown, "Where the difference enters", verdicts)
        folder = typed_path(out or Path("parity"))
        write(folder, files)
        _say(told_files(folder, files))
    _tell(verdicts, shown, body, as_json=as_json)
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


def _runs(
    workspace: Workspace, names: Sequence[str], asked: Mapping[str, Any], *, force: bool, display: str | None
) -> list[Path] | None:
    """The folders of the runs that are named; a model among them is asked first, as the run beside it was or as ``asked``.

    None where that was interrupted.
    """
    known = [_run(workspace, name) for name in names]
    if None not in known:
        return [folder for folder in known if folder is not None]
    pattern = next((folder for folder in known if folder is not None), None)
    made = {}
    for name, folder in zip(names, known, strict=True):
        if folder is None:
            made[name] = name
    folders = ask(workspace, list(made), asked, like=pattern, force=force, display=display)
    if folders is None:
        return None
    by_name = dict(zip(made, folders, strict=True))
    return [folder or by_name[name] for name, folder in zip(names, known, strict=True)]


def _run(workspace: Workspace, name: str) -> Path | None:
    """The run's folder; None where ``name`` is a model's. Raises StoreError where it is neither."""
    if not (Path(name) / DATABASE).is_file() and name not in workspace.run_names() and looks_like_model(name):
        return None
    return workspace.run_folder(name)


def ask(
    workspace: Workspace,
    models: Sequence[str],
    asked: Mapping[str, Any],
    *,
    like: Path | None = None,
    force: bool = False,
    display: str | None = None,
) -> list[Path] | None:
    """The runs of ``models``, each made or gone on with: asked as the run ``like`` was, else as ``asked`` says.

    None where it was interrupted. Raises SpecError and the other errors of a spec, StoreError where a run is left unfinished.
    """
    said = {key: value for key, value in asked.items() if value not in (None, [], {}, ())}
    if isinstance(said.get("data"), Path):
        said["data"] = str(typed_path(said["data"]))
    if like is not None:
        with RunStore.read(like) as store:
            before = store.meta("spec")
        left_out = ("model", "name", "prompt_set", "judge", "decoding")
        said = {
            **{key: value for key, value in before.items() if key not in left_out and value not in (None, [], {})},
            **before["decoding"],
            "prompt_set": [before["prompt_set"]],
            "judge": before["judge"],
            **({"data": said["data"]} if "data" in said else {}),
        }
    elif "benchmark" not in said:
        raise SpecError("models are asked a benchmark's questions: name it with --benchmark.")
    else:
        said.setdefault("limit", EXAMPLES)
    specs = load_spec(None, {**said, "model": list(models)}).runs()
    checked = [check(workspace, spec) for spec in specs]
    planned = [plan(workspace, each) for each in checked]
    code = work(workspace, planned, make_display(display), display="none", force=force)
    if code == INTERRUPTED:
        return None
    for run in planned:
        with RunStore.read(run.folder) as store:
            if next(store.pending(), None) is not None:
                raise StoreError(f"{run.name} could not be answered to the end; `rashomon resume {run.name}` goes on.")
    return [run.folder for run in planned]


def _builds(workspace: Workspace, folders: Sequence[Path], data: Path | None) -> list[Path]:
    """Where the runs' media may lie: where it is said, where each run found them, and the workspace's build."""
    found = [typed_path(data)] if data is not None else []
    for folder in folders:
        with RunStore.read(folder) as store:
            where, benchmark = store.meta("data"), store.meta("spec")["benchmark"]
        found += [*([Path(where)] if where else []), workspace.build_folder(benchmark)]
    return list(dict.fromkeys(found))


def _say(line: str) -> None:
    print(clean(line), file=sys.stderr, flush=True)
