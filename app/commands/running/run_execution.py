"""Execution of planned runs by workers, and what is printed of them."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from app.engine.batch_progress import Display
from app.engine.model_judging import models_needed
from app.engine.run_control import clear_stale_pause
from app.engine.run_plan import PlannedRun, open_build
from app.engine.workers.cluster.cluster_address import NONE
from app.engine.workers.cluster.model_placement import Placement
from app.engine.workers.worker_job import Job
from app.engine.workers.worker_supervisor import Supervisor
from app.exit_codes import DONE, FAILURES, INTERRUPTED, STOPPED, EndedError
from app.json_output.json_events import outcome
from app.json_output.json_only_output import discard_output
from app.new_run.mac_warnings import mac_warnings
from app.store.file_locks import FileLock, busy_message
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import worker_deaths
from app.store.run_store import RunStore
from app.store.run_summary import RunSummary, read_summary
from app.store.sqlite_errors import DamagedError
from app.store.workspace import Workspace
from app.text.plural import count_of
from benchmarks.errors import BusyError, SpecError
from judges.judge_registry import judge_names
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.engine_registry import describe, refusal
from mlx_backends.person_engine import PERSON

if TYPE_CHECKING:
    from app.report.tables.table_inputs import TableInputs


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Options of how runs are executed and judged; none of them is part of a run's spec."""

    display: str | None = None
    force: bool = False
    accept_engine: bool = False
    allowed: Sequence[str] = ()
    """Addresses the user allows."""
    until_width: float | None = None
    """The width of every condition's accuracy interval at which a run stops."""
    restarts: int | None = None
    """The number of restarts of a worker that runs out of memory; None: as the spec says."""
    workers: str | None = None
    """The cluster whose nodes answer; None for this machine."""
    allow_open_cluster: bool = False
    """Flag to use a cluster without token authentication."""
    wait: float | None = None
    """The seconds to wait for the device at most, for each model; None: until it is free."""

    @property
    def on_cluster(self) -> bool:
        """True if the nodes of a cluster answer."""
        return self.workers not in (None, NONE)


def models_on_nodes(model: str, judges: Sequence[str]) -> tuple[str, ...]:
    """Return those of a model and its judges that the nodes of a cluster need memory for."""
    return (model, *(name for name in judges if name not in judge_names() and describe(name).needs_device))


def execute_runs(
    workspace: Workspace,
    planned: Sequence[PlannedRun],
    display: Display,
    options: ExecutionOptions,
    *,
    conditions: Sequence[str] = (),
    placement: Placement | None = None,
    demo: Callable[[TableInputs], None] | None = None,
    tables: bool = True,
) -> int:
    """Execute the planned runs with one worker per model, print their main table with ``tables``, and return 0.

    Raises EndedError if answers or judgements failed, the runs could not continue, or they were interrupted.

    With a ``placement``, models that fit on different nodes of the cluster answer at the same time.

    ``demo`` prints the results of the demo, whose data ship with the project and count as the paper's.
    """
    _check_executable(planned)
    outcome.about(run.folder for run in planned)
    _refuse_in_use(planned)
    unfinished_runs = [run for run in planned if _announce(run, conditions, options.display)]
    for run in planned:
        clear_stale_pause(run.folder)
    jobs = [
        _job(workspace, list(group), conditions, options)
        for _, group in groupby(unfinished_runs, key=lambda run: (run.spec.model, run.spec.data, run.spec.kv_bits))
    ]
    if not demo:
        for warning in mac_warnings((run.spec.model, run.spec.decoding.max_pixels) for run in unfinished_runs):
            display.notice(warning)
    supervisor = Supervisor(display, placement)
    code = _supervise(supervisor, jobs)
    summaries = [read_summary(run.folder) for run in planned]
    if code != INTERRUPTED:
        is_displayed = options.display not in ("json", "none")
        inputs = _verify(planned, read=is_displayed and tables and any(run.done for run in summaries))
        if is_displayed:
            _print_results(planned, summaries, inputs, demo)
    _check_end(workspace, summaries, code, supervisor.reasons)
    return DONE


def _check_end(workspace: Workspace, summaries: Sequence[RunSummary], code: int, reasons: Sequence[str]) -> None:
    """Raise EndedError unless the runs are done without failures."""
    if code != DONE:
        unfinished = [run for run in summaries if run.state != "done"]
        raise EndedError(code, " ".join([*reasons, *_saved(workspace, unfinished, code)]))
    if failed := [run for run in summaries if _failures(run)]:
        raise EndedError(FAILURES, _failures_text(workspace, failed))


def _check_executable(planned: Sequence[PlannedRun]) -> None:
    """Raise SpecError for a run of a person, and StoreError for one of another machine."""
    for run in planned:
        if run.spec.model.startswith(PERSON):
            raise SpecError(refusal(run.spec.model))
        RunStore.require_own(run.folder)


def _supervise(supervisor: Supervisor, jobs: Sequence[Job]) -> int:
    """Return the code with which the jobs have ended."""
    try:
        return supervisor.run(jobs)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        # The reader of the output is gone, as with `| head`, or the terminal: stop the run as Ctrl-C would.
        discard_output()
        return INTERRUPTED


def _saved(workspace: Workspace, unfinished: Sequence[RunSummary], code: int) -> Iterator[str]:
    """Yield a sentence on how to resume the unfinished runs of a batch that ended with ``code``."""
    command = (
        f"`{workspace.command()} resume {unfinished[0].name}`" if len(unfinished) == 1 else "the same command again"
    )
    if code == INTERRUPTED:
        yield f"interrupted; every answer and verdict reported as done is saved; run {command} to resume."
    elif code == STOPPED and unfinished:
        yield f"Every answer and verdict reported as done is saved; run {command} to resume."


def _failures_text(workspace: Workspace, failed: Sequence[RunSummary]) -> str:
    """Return how many answers and judgements of runs failed, and the commands that repeat them."""
    errors, judgements = sum(run.errors for run in failed), sum(run.failed_judgements for run in failed)
    names = failed[0].name if len(failed) == 1 else f"{len(failed)} runs, such as {failed[0].name}"
    facts = (count_of(errors, "answer"), count_of(judgements, "judgement"))
    text = " and ".join(fact for fact, count in zip(facts, (errors, judgements), strict=True) if count)
    with_errors = next((run.name for run in failed if run.errors), "")
    resume = f"`{workspace.command()} resume {with_errors} --retry-errors` repeats the answers" if errors else ""
    with_failures = next((run.name for run in failed if run.failed_judgements), "")
    judge = (
        f"`{workspace.command()} judge {with_failures} --judge NAME --retry-failed` repeats the judgements"
        if judgements
        else ""
    )
    return f"{text} failed in {names}; {', '.join(filter(None, (resume, judge)))}."


def _announce(run: PlannedRun, conditions: Sequence[str], display: str | None) -> bool:
    """Print how far a run is that existed before; return whether anything is left to answer, judge or record in it."""
    with RunStore.read(run.folder) as store:
        models = models_needed(store, run.spec, conditions)
        try:
            progress = store.progress() if run.existing else []
        except DamagedError:  # the worker reports it
            progress = []
    done, total = sum(p.done for p in progress), sum(p.total for p in progress)
    if progress and done == total:
        judging = "; judging resumes" if models else ""
        print_message(f"{run.name}: all {total} instances are answered already{judging}.", display)
    elif done:
        print_message(f"{run.name}: resuming after {done} of {total}.", display)
    return bool(models) or (done == total and read_summary(run.folder).state != "done")


def _job(workspace: Workspace, runs: Sequence[PlannedRun], conditions: Sequence[str], options: ExecutionOptions) -> Job:
    """Return the worker's job for ``runs``, which share a model, its key-value bits and a build."""
    spec = runs[0].spec
    workers = options.workers if options.on_cluster else None
    return Job(
        tuple(run.folder for run in runs),
        tuple(spec.judge),
        spec.undecided_by,
        None if spec.model.startswith(WITHOUT_REQUESTS) else open_build(workspace, spec).path,
        tuple(conditions),
        spec.api.remote_options(workspace.replies),
        options.force,
        options.accept_engine,
        restarts=spec.restarts if options.restarts is None else options.restarts,
        until_width=options.until_width,
        model=spec.model,
        workers=workers,
        allow_open_cluster=options.allow_open_cluster,
        wait=options.wait,
        models=() if workers is None else models_on_nodes(spec.model, spec.judge),
    )


def _refuse_in_use(planned: Sequence[PlannedRun]) -> None:
    """Raise StoreError if other processes work on all of the runs; a worker skips a single one among others."""
    holders = []
    for run in planned:
        with FileLock(run.folder / "lock") as lock:
            if lock.acquire("rashomon"):  # waits a moment for a process that is just ending
                return
            holders.append(busy_message(lock))
    if holders:
        raise BusyError(f"{holders[0]}; `rashomon runs` shows its progress.")


def _verify(planned: Sequence[PlannedRun], *, read: bool) -> TableInputs | None:
    """Read all answers and verdicts, for tables if they are to be ``read``. Raises DamagedError."""
    if read:
        from app.report.tables.table_inputs import read_inputs

        return read_inputs([run.folder for run in planned])
    for run in planned:
        with RunStore.read(run.folder) as store:
            store.verify()
    return None


def _print_results(
    planned: Sequence[PlannedRun],
    summaries: Sequence[RunSummary],
    inputs: TableInputs | None,
    demo: Callable[[TableInputs], None] | None,
) -> None:
    """Print the main table of the ``inputs``, or the demo's, and what is to know of each run."""
    from app.report.runs.run_error_messages import error_lines
    from app.report.tables.run_tables import tables_from
    from app.report.tables.table_rendering import print_table
    from app.text.text_escaping import clean

    if inputs is not None and demo is None:
        (main,) = tables_from(inputs, only="main")
        print_table(main)
    for run in summaries:
        failures = _failures(run)
        failed = f"; {failures} failed: `rashomon show {run.name} --table failures`" if failures else ""
        stopped = f"; stopped because {run.note}" if run.state == "stopped" else ""
        print(clean(f"{run.name}: {run.done} of {run.total} answered{stopped}{failed}"))
        for node in run.nodes:
            if node.state in ("refused", "failed"):
                print(clean(f"{node.name} was not used: {node.note}."))
    for planned_run in planned:
        with RunStore.read(planned_run.folder) as store:
            if reused := ReusedAnswers.load(store).sentence:
                print(clean(f"{planned_run.name}: {reused}"))
            if store.meta("identity", {}).get("device") == "remote":
                calls, prompt, completion = store.answer_usage()
                cached = f"; {store.cached_replies()} answers from cached replies" if store.cached_replies() else ""
                print(clean(f"{planned_run.name}: {calls} calls, {prompt} + {completion} tokens{cached}"))
            for line in error_lines(store):
                print(clean(f"{planned_run.name}: {line}"))
            for death in worker_deaths(store):
                print(clean(f"{planned_run.name}: {death.sentence()}"))
            limitations = [proof["lacks"] for proof in store.meta("canary", []) if proof.get("lacks")]
            for remark in dict.fromkeys([*store.meta("remarks", []), *limitations]):
                print(clean(remark))
    if inputs is not None and demo is not None:
        demo(replace(inputs, own_rows_only=False))


def _failures(run: RunSummary) -> int:
    """Return the number of answers that are errors, and of judgements that failed."""
    return run.errors + run.failed_judgements


def print_message(message: str, display: str | None) -> None:
    """Print a line for a person; on standard error if standard output is JSON, and nowhere if there is no display."""
    from app.text.text_escaping import clean

    if display != "none":
        print(clean(message), file=sys.stderr if display == "json" else sys.stdout, flush=True)
