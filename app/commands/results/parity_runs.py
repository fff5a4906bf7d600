"""The runs that ``rashomon parity`` compares: runs named on the command line, and new runs of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.commands.running.run_execution import ExecutionOptions, execute_runs
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.commands.terminal.progress_display import make_display
from app.engine.run_plan import check_spec, plan_run
from app.exit_codes import FAILURES, EndedError
from app.run_spec import load_spec
from app.store.run_references import StoredRun, match_reference, run_folder
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.typed_paths import typed_path
from mlx_backends.engine_registry import looks_like_model

DEFAULT_LIMIT = 24
"""The default number of examples for models."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options for running a model: ``spec`` has the keys of its spec other than the model, ``data`` names the build."""

    spec: Mapping[str, Any]
    data: Path | None = None
    force: bool = False
    display: str | None = None
    allowed: Sequence[str] = ()
    """Addresses the user allows."""


def find_or_answer_runs(workspace: Workspace, names: Sequence[str], options: AnswerOptions) -> list[Path]:
    """Return the folders of the named runs.

    A model among the names is run first, with the spec of the other run if there is one and with ``options`` otherwise.
    """
    confirm_addresses((), options.allowed)
    known = [_run(workspace, name) for name in names]
    if None not in known:
        return [folder for folder in known if folder is not None]
    template = next((folder for folder in known if folder is not None), None)
    models = list(dict.fromkeys(name for name, folder in zip(names, known, strict=True) if folder is None))
    by_name = dict(zip(models, answer_runs(workspace, models, options, template=template), strict=True))
    return [folder or by_name[name] for name, folder in zip(names, known, strict=True)]


def _run(workspace: Workspace, name: str) -> Path | None:
    """Return the run's folder, or None if ``name`` is a model. Raises SpecError or StoreError if it is neither."""
    reference = match_reference(workspace, name)
    if isinstance(reference, StoredRun):
        return reference.folder
    return None if looks_like_model(name) else run_folder(workspace, name)


def answer_runs(
    workspace: Workspace, models: Sequence[str], options: AnswerOptions, *, template: Path | None = None
) -> list[Path]:
    """Create or resume the runs of ``models`` and return their folders.

    Their spec is that of the run ``template`` if there is one, and that of ``options`` otherwise. Raises SpecError and the
    other errors of a spec, EndedError if the runs could not continue, and StoreError if one is left unfinished.
    """
    values = {key: value for key, value in options.spec.items() if value not in (None, [], {}, ())}
    if options.data is not None:
        values["data"] = str(typed_path(options.data))
    if template is not None:
        with RunStore.read(template) as store:
            before = store.meta("spec")
        excluded = ("model", "name", "prompt_set", "judge", "decoding")
        values = {
            **{key: value for key, value in before.items() if key not in excluded and value not in (None, [], {})},
            **before["decoding"],
            "prompt_set": [before["prompt_set"]],
            "judge": before["judge"],
            **({"data": values["data"]} if "data" in values else {}),
        }
    elif "benchmark" not in values:
        raise SpecError("a model needs a benchmark to answer; name one with --benchmark.")
    else:
        values.setdefault("limit", DEFAULT_LIMIT)
    specs = load_spec(None, {**values, "model": list(models)}).runs()
    confirm_addresses([name for spec in specs for name in (spec.model, *spec.judge)], options.allowed)
    checked = [check_spec(workspace, spec) for spec in specs]
    plans = [plan_run(workspace, run) for run in checked]
    # The display shows the progress; the runs' results are not printed.
    execution = ExecutionOptions(display="none", force=options.force)
    try:
        execute_runs(workspace, plans, make_display(options.display), execution)
    except EndedError as end:
        if end.exit_code != FAILURES:  # errors are compared like other answers
            raise
    for run in plans:
        with RunStore.read(run.folder) as store:
            if next(store.pending(), None) is not None:
                raise StoreError(f"{run.name} is not finished; `rashomon resume {run.name}` resumes it.")
    return [run.folder for run in plans]


def candidate_builds(workspace: Workspace, folders: Sequence[Path], data: Path | None) -> list[Path]:
    """Return the builds that may hold the runs' media: ``data``, each run's own build, and the workspace's build."""
    builds = [typed_path(data)] if data is not None else []
    for folder in folders:
        with RunStore.read(folder) as store:
            builds += [workspace.build_of(store), workspace.build_folder(store.meta("spec")["benchmark"])]
    return list(dict.fromkeys(builds))
