"""``rashomon --batch`` and ``rashomon resume``: plan runs, execute them and report the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.commands.running.run_execution import ExecutionOptions, execute_runs, models_on_nodes, print_message
from app.commands.terminal.confirm_addresses import confirm_addresses
from app.commands.terminal.progress_display import make_display
from app.engine import stop_at_interval_width
from app.engine.model_judging import models_needed, work_left
from app.engine.run_control import is_paused, unpause, worker_pid
from app.engine.run_plan import CheckedSpec, PlannedRun, check_spec, plan_resume, plan_run
from app.engine.runs_to_resume import command_runs
from app.engine.workers.cluster.cluster_address import check_workers
from app.engine.workers.cluster.cluster_connection import survey
from app.engine.workers.cluster.model_placement import Placement, check_fits
from app.exit_codes import DONE, EndedError
from app.json_output.json_events import outcome
from app.new_run.run_estimate import calls_by_condition, judge_costs, measured_speed, remote_usage
from app.new_run.setup_plan import state_of
from app.new_run.setup_spec import setup_spec
from app.papers.paper_setups import find_setup, setup_file
from app.report.progress.remaining_time import duration
from app.run_spec import BatchSpec, RunSpec, load_spec
from app.store.file_locks import FileLock, busy_message
from app.store.run_references import changeable_run
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.errors import BusyError, ModelError, RashomonError, SpecError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import WITHOUT_SOURCES
from mlx_backends.baseline_engine import BASELINE
from mlx_backends.engine_registry import required_memory
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.remote import check_all_ready, is_remote, readiness_problem

_DEVICE = "device"
_STAND_IN = "policy:random"
_COUNTED = 100_000
"""The most instances whose calls are counted, which takes a second or two."""


def batch(
    workspace: Workspace,
    spec: Path | None,
    overrides: Mapping[str, Any],
    options: ExecutionOptions,
    *,
    dry_run: bool = False,
    tables: bool = True,
) -> int:
    """Run a spec file with ``overrides`` from the command line, resuming runs that exist; return 0.

    Raises as :func:`execute_runs`. Without ``tables``, the main table of the runs is not printed.
    """
    display = make_display(options.display)
    # All specs are checked before the first run is created.
    batch_spec, checked, faults = check_batch(workspace, spec, overrides, options, stop=not dry_run)
    options = _with_workers(batch_spec, options, typed="workers" in overrides)
    outcome.about(run.folder for run in checked if run.existing)
    _print_notes(checked, options)
    remote_models = [_remote_models(run) for run in checked]
    requirements = [
        (names, run.spec.api.remote_options(workspace.replies))
        for run, names in zip(checked, remote_models, strict=True)
    ]
    if dry_run:
        confirm_addresses((), options.allowed)
        _print_dry_run(workspace, checked, options)
        for run_spec in batch_spec.runs():
            if not any(run.spec.unnamed == run_spec.unnamed for run in checked):
                _print_calls(workspace, run_spec, options)
        problems = (readiness_problem(names, remote_options) for names, remote_options in requirements)
        for problem in filter(None, dict.fromkeys(problems)):
            display.notice(f"not ready to run: {problem}")
        if faults:
            raise EndedError(faults[-1].exit_code, " ".join(dict.fromkeys(map(str, faults))))
        outcome.message = "the specs are valid; nothing was run"
        return DONE
    confirm_addresses([name for names in remote_models for name in names], options.allowed)
    for names, remote_options in requirements:
        check_all_ready(names, remote_options)
    if warning := workspace.warning():
        display.notice(warning)
    placement = _place(checked, options)
    planned = [plan_run(workspace, run) for run in checked]
    return execute_runs(workspace, planned, display, options, placement=placement, tables=tables)


def _print_notes(checked: Sequence[CheckedSpec], options: ExecutionOptions) -> None:
    """Print the usage of remote models, then what is left out of the runs, was learnt before or has no effect."""
    for run in checked:
        if run.identity[_DEVICE] == "remote" and not run.existing:
            print_message(f"{run.folder.name}: {remote_usage(run.spec, run.instances, run.build)}", options.display)
    for run in checked:
        for sentence in filter(None, (run.excluded.sentence, run.trained.sentence, run.lost_effect)):
            print_message(f"{run.folder.name}: {sentence}", options.display)


def _place(checked: Sequence[CheckedSpec], options: ExecutionOptions) -> Placement | None:
    """Return where the models of a batch fit on its cluster; None if they need no placement.

    Raises ModelError if one of them fits on no node.
    """
    if not options.on_cluster:
        return None
    unfinished = [run for run in checked if not _is_finished(run)]
    if len({(run.spec.model, run.spec.kv_bits, run.build.path) for run in unfinished}) < 2:  # whose worker reports it
        return None
    models = dict.fromkeys(model for run in unfinished for model in models_on_nodes(run.spec.model, run.spec.judge))
    needs = {model: required_memory(model) for model in models}
    print_message(f"asking the nodes of {options.workers} for their memory", options.display)
    assert options.workers is not None
    nodes = survey(options.workers, needs, allow_open=options.allow_open_cluster)
    if not options.force:
        check_fits(nodes, needs)
    placement = Placement(nodes, needs)
    for model, need in needs.items():
        names = ", ".join(placement.fitting(model)) or "no node that has answered"
        print_message(f"{model} needs {need / 1e9:.1f} GB, and fits on: {names}", options.display)
    return placement


def _is_finished(run: CheckedSpec) -> bool:
    if not run.existing:
        return False
    with RunStore.read(run.folder) as store:
        return not models_needed(store, run.spec)


def _with_workers(batch_spec: BatchSpec, options: ExecutionOptions, *, typed: bool) -> ExecutionOptions:
    """Return the options with the spec's cluster, which the user may have to have allowed."""
    if batch_spec.workers is None:
        return options
    check_workers(batch_spec.workers, [run.model for run in batch_spec.runs()], options.allowed, typed=typed)
    return replace(options, workers=batch_spec.workers)


def check_batch(
    workspace: Workspace,
    spec: Path | None,
    overrides: Mapping[str, Any],
    options: ExecutionOptions,
    *,
    stop: bool = True,
) -> tuple[BatchSpec, list[CheckedSpec], list[RashomonError]]:
    """Return the spec of a batch, its valid runs, and the errors of the others; raise the first error to ``stop`` there."""
    batch_spec = _read_spec(workspace, spec, overrides, options)
    workers = options.workers if batch_spec.workers is None else batch_spec.workers
    options = replace(options, workers=workers)
    specs = command_runs(workspace, batch_spec, accept_engine=options.accept_engine or options.on_cluster)
    checked, faults = _check_specs(workspace, specs, options, stop=stop)
    for run in checked:
        _check_until_width(options.until_width, run.spec, run.folder if run.existing else None)
    return batch_spec, checked, faults


def _check_specs(
    workspace: Workspace, specs: Sequence[RunSpec], options: ExecutionOptions, *, stop: bool
) -> tuple[list[CheckedSpec], list[RashomonError]]:
    """Return the valid specs, and the errors of the others; raise the first error to ``stop`` there."""
    checked, faults = [], list[RashomonError]()
    for spec in specs:
        try:
            checked.append(
                check_spec(workspace, spec, accept_engine=options.accept_engine, elsewhere=options.on_cluster)
            )
        except (ModelError, SpecError) as error:
            if stop:
                raise
            faults.append(error)
    return checked, faults


def _print_dry_run(workspace: Workspace, checked: Sequence[CheckedSpec], options: ExecutionOptions) -> None:
    for run in checked:
        count, state = len(run.instances), f"the spec is valid, {len(run.instances)} instances; nothing was run"
        if run.existing:
            with RunStore.read(run.folder) as store:
                left, total = work_left(store, run.spec), sum(p.total for p in store.progress())
            count, state = left.answers, state_of(left, total)
        print_message(f"{run.folder.name}: {state}.", options.display)
        for sentence in _cost_sentences(workspace, run, count) if count else ():
            print_message(f"{run.folder.name}: {sentence}", options.display)


def _print_calls(workspace: Workspace, spec: RunSpec, options: ExecutionOptions) -> None:
    """Print the calls of a run whose model is not on this machine, as another model would make them.

    Nothing is printed for a name without a slash, which no model has that could be brought here.
    """
    if "/" not in spec.model:
        return
    with suppress(RashomonError):  # there may be none that answers this benchmark
        run = check_spec(workspace, spec.model_copy(update={"model": _STAND_IN, "name": None}))
        if not run.existing:
            calls = calls_by_condition(run.spec, run.instances).total()
            print_message(f"{spec.model}: {len(run.instances)} instances, {calls} calls.", options.display)


def _read_spec(
    workspace: Workspace, spec: Path | None, overrides: Mapping[str, Any], options: ExecutionOptions
) -> BatchSpec:
    """Return the spec of a file or of a paper's setup, with ``overrides``; print what a setup leaves out, and its judge."""
    if setup_file(spec) is None:
        return load_spec(spec, overrides)
    setup = setup_spec(workspace, find_setup(str(spec)), overrides, force=options.force)
    for sentence in setup.sentences:
        print_message(sentence, options.display)
    return setup.spec


def resume(
    workspace: Workspace,
    name: str,
    options: ExecutionOptions,
    *,
    conditions: Sequence[str] = (),
    repeat: bool = False,
    retry_errors: bool = False,
    data: Path | None = None,
) -> int:
    """Resume the run called ``name``, or answer ``conditions`` of it again; return 0. Raises as :func:`execute_runs`."""
    display = make_display(options.display)
    folder = changeable_run(workspace, name)
    RunStore.require_own(folder)
    outcome.about([folder])
    if not (conditions or repeat or retry_errors) and is_paused(folder) and unpause(folder):
        print_message(f"{folder.name}: no longer paused; process {worker_pid(folder)} resumes it.", options.display)
        return 0
    plan = plan_resume(workspace, folder, data=data, accept_engine=options.accept_engine, elsewhere=options.on_cluster)
    if options.workers is not None:
        check_workers(options.workers, [plan.spec.model], options.allowed, typed=True)
    known = [p.condition for p in read_summary(folder).progress]
    if WITHOUT_SOURCES in conditions:
        partial = get_benchmark(plan.spec.benchmark).without_sources
        conditions = [*filter(WITHOUT_SOURCES.__ne__, conditions), *(name for name in known if name in partial)]
    for condition in conditions:
        if condition not in known:
            raise SpecError(f"{folder.name} has no condition {condition!r}; {did_you_mean(condition, known)}")
    _check_until_width(options.until_width, plan.spec, folder)
    repeats = repeat or retry_errors
    if repeats:
        names: tuple[str, ...] = (plan.spec.model, *plan.spec.judge)
    else:
        with RunStore.read(folder) as store:
            names = models_needed(store, plan.spec, conditions)
    confirm_addresses(names, options.allowed)
    check_all_ready(names, plan.spec.api.remote_options(workspace.replies))
    if repeats:
        count = _discard_answers(plan, conditions, errors_only=not repeat)
        print_message(f"{folder.name}: {count} instances will be answered again.", options.display)
    return execute_runs(workspace, [plan], display, options, conditions=conditions)


def _cost_sentences(workspace: Workspace, run: CheckedSpec, count: int) -> Iterator[str]:
    """Yield what a run will take: the time of its answers, and the usage of its remote judges."""
    speed = measured_speed(workspace, run.spec)
    if speed is None:
        estimate = "time unknown, because no run of this model on this benchmark was timed here"
    else:
        seconds = speed.seconds * speed.calls
        estimate = (
            f"about {duration(seconds * count)}, at {seconds:.3g} s per answer over {speed.answers} of {speed.run}"
        )
    is_counted = not run.existing and count <= _COUNTED
    calls = f"{calls_by_condition(run.spec, run.instances).total()} calls, " if is_counted else ""
    yield f"{run.spec.model}: {calls}{estimate}."
    if not run.existing:
        yield from judge_costs(run.spec, get_benchmark(run.spec.benchmark), run.instances)


def _discard_answers(run: PlannedRun, conditions: Sequence[str], *, errors_only: bool) -> int:
    """Set aside answers of a run so that they are generated again; return their number. Raises SpecError, StoreError."""
    if run.spec.model.startswith(BASELINE):
        raise SpecError(f"{run.name} is a baseline, so nothing can be generated again; make it of another run.")
    if run.spec.model.startswith(IMPORTED):
        raise SpecError(f"{run.name} was imported, so its answers cannot be generated again; import them as a new run.")
    with FileLock(run.folder / "lock") as lock:
        if not lock.acquire("rashomon resume"):
            raise BusyError(f"{busy_message(lock)}; wait for it to end.")
        with RunStore.open(run.folder) as store:
            return store.repeat(conditions, errors_only=errors_only)


def _check_until_width(width: float | None, spec: RunSpec, folder: Path | None) -> None:
    """Raise SpecError if a run of ``spec`` cannot stop at ``width``; ``folder`` is the run's if it exists."""
    if width is None:
        return
    stop_at_interval_width.check_width(width, spec.judge[0], get_benchmark(spec.benchmark))
    if folder is not None:
        with RunStore.read(folder) as store:
            stop_at_interval_width.check_order(store)


def _remote_models(run: CheckedSpec) -> list[str]:
    """Return the remote models and judges that a run still needs. The run's store is read only if there may be any."""
    names = [name for name in (run.spec.model, *run.spec.judge) if is_remote(name)]
    if not names or not run.existing:
        return names
    with RunStore.read(run.folder) as store:
        needed = models_needed(store, run.spec)
    return [name for name in names if name in needed]
