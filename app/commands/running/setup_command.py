"""``rashomon --batch paper:NAME``: the plan of a paper's setup, printed and carried out: data, models, build and runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from app.commands.building.build_command import BuildArguments, build
from app.commands.building.construction_models import ConstructionModels
from app.commands.data_and_models.data_command import fetch_data, list_data, print_fetched
from app.commands.data_and_models.models_command import fetch_model, list_model
from app.commands.running.batch_command import batch
from app.commands.running.run_execution import ExecutionOptions, print_message
from app.commands.running.setup_lines import plan_lines, question
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.exit_codes import DONE, EndedError
from app.fetch.benchmark_downloads import get_recipe
from app.fetch.fetch_plan import disk_problem
from app.json_output.json_events import PlanEvent, PlannedData, PlannedModel, PlannedSetupRun, event_line, outcome
from app.json_output.json_only_output import print_own
from app.new_run.setup_plan import SetupPlan, plan_setup
from app.papers.paper_setups import PREFIX, find_setup
from app.report.runs.portable_facts import portable_path
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.fetch.hub_repository import check_online
from benchmarks.fetch.remote_file import FetchError
from mlx_backends.portable_model_names import without_folders


def run_setup(
    workspace: Workspace,
    name: str,
    overrides: Mapping[str, Any],
    options: ExecutionOptions,
    command: str,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    """Fetch, build and run what a paper's setup needs, after a question; return 0. With ``dry_run``, print the plan alone.

    ``command`` is the command line without ``--dry-run`` and ``--yes``. It continues an interrupted one, since what is fetched,
    built or answered is not done again. Raises EndedError if the plan cannot be carried out, SpecError if nobody can be asked,
    FetchError, and as :func:`app.commands.running.batch_command.batch`.
    """
    setup = find_setup(name)
    on_cluster = options.on_cluster
    plan = plan_setup(
        workspace, setup, overrides, force=options.force, accept_engine=options.accept_engine, elsewhere=on_cluster
    )
    left = plan.to_fetch or plan.data.to_build
    if dry_run or plan.problems or left:
        _print_plan(plan, workspace, setup.differences, "" if yes else command, options.display)
    if dry_run:
        confirm_addresses((), options.allowed)
        outcome.message = "the plan can be carried out; nothing was fetched, built or run"
    if plan.problems:
        raise EndedError(plan.exit_code, " ".join(plan.problems))
    if dry_run:
        return DONE
    if left:
        if plan.to_fetch and not (yes or _confirm(plan, command, options)):
            outcome.message = "nothing was fetched, built or run"
            print_message(f"{outcome.message}.", options.display)
            return DONE
        with _printing(options.display):
            _fetch(workspace, plan, f"{command} --yes" if yes else command, force=options.force)
            if plan.data.to_build:
                build(workspace, setup.name, BuildArguments(sources=plan.data.sources), ConstructionModels())
    return batch(workspace, Path(name), overrides, options)


def _print_plan(
    plan: SetupPlan, workspace: Workspace, differences: Sequence[str], command: str, display: str | None
) -> None:
    """Print a plan for a person, and as an event if events are displayed."""
    for line in plan_lines(plan, workspace, differences, command):
        print_message(line, display)
    if display == "json":
        print_own(event_line(_plan_event(plan, workspace)), flush=True)


def _plan_event(plan: SetupPlan, workspace: Workspace) -> PlanEvent:
    data = plan.data
    return PlanEvent(
        setup=plan.name,
        data=PlannedData(
            state=data.state,
            description=data.what,
            folder=portable_path(data.folder, workspace.path),
            known_bytes=data.known_bytes,
            unknown_size=data.unknown_size,
            origin=data.origin,
            licences=data.licences,
            missing=data.missing,
        ),
        models=tuple(
            PlannedModel(
                name=without_folders(model.name),
                to_fetch=model.to_fetch,
                bytes=model.bytes,
                licence=model.licence,
                problem=outcome.portable(model.problem),
            )
            for model in plan.models
        ),
        models_left_out=dict(plan.models_left_out),
        conditions_left_out=dict(plan.conditions_left_out),
        judges=tuple(map(without_folders, plan.judges)),
        runs=tuple(
            PlannedSetupRun(
                model=without_folders(run.model),
                prompt_set=run.prompt_set,
                calls=dict(run.calls),
                at_most=run.at_most,
                answers=run.answers,
                seconds=run.seconds,
                note=outcome.portable(run.note),
            )
            for run in plan.runs
        ),
        counted=plan.counted,
        costs=tuple(map(outcome.portable, plan.costs)),
        not_ready=tuple(map(outcome.portable, plan.not_ready)),
        problems=tuple(map(outcome.portable, plan.problems)),
    )


def _confirm(plan: SetupPlan, command: str, options: ExecutionOptions) -> bool:
    """Return the answer to the question on the terminal. Raises SpecError if there is none."""
    if options.display in ("json", "none") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError(f"fetching needs confirmation; check the plan above, then run `{command} --yes`.")
    import click

    return click.confirm(clean(question(plan)), default=True)


@contextmanager
def _printing(display: str | None) -> Iterator[None]:
    """Send what is printed where :func:`~app.commands.running.run_execution.print_message` sends it."""
    if display == "json":
        with redirect_stdout(sys.stderr):
            yield
    elif display == "none":
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            yield
    else:
        yield


def _fetch(workspace: Workspace, plan: SetupPlan, command: str, *, force: bool) -> None:
    """Fetch data and models, after all of them are listed, so that what cannot be had is reported before the first download.

    Raises FetchError, and ModelError for a model that does not fit.
    """
    if not plan.to_fetch:
        return
    check_online()
    folder = workspace.source_folder(plan.data_benchmark)
    data = list_data(get_recipe(plan.data_benchmark), folder) if plan.data.to_fetch else None
    models = []
    for model in plan.models:
        if model.to_fetch:
            try:
                models.append(list_model(model.name))
            except FetchError as error:
                raise FetchError(f"{error} Or leave {model.name} out: name the other models with --model.") from error
            models[-1].check_memory(force=force)
    plans = [*([data.plan] if data else []), *(model.plan for model in models)]
    for fetch_plan in plans:
        for line in fetch_plan.lines():
            print(line)
    if problem := disk_problem({plan.folder: plan.bytes for plan in plans}, f"{PREFIX}{plan.name}"):
        raise FetchError(problem)
    if data:
        fetch_data(data, command)
        print_fetched(data)
    for listed in models:
        fetch_model(listed, command)
        print(clean(f"fetched {listed.repository.id}"))
