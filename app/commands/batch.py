"""``rashomon --batch`` and ``rashomon resume``: plan, supervise, and say how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from app.commands.confirm_addresses import agree
from app.commands.progress_display import Display, make_display
from app.engine import stopping_rule
from app.engine.plan import CheckedSpec, PlannedRun, check, open_build, plan, replan
from app.engine.workers.recovery import deaths
from app.engine.workers.run_control import forget_pause, is_paused, unpause, worker_of
from app.engine.workers.supervise import INTERRUPTED, Job, Supervisor
from app.new_run.run_estimate import remote_use
from app.run_spec import RunSpec, load_spec
from app.store.locks import FileLock, working
from app.store.run import RunStore
from app.store.workspace import RunSummary, Workspace, summary
from benchmarks.base import did_you_mean, get_benchmark
from benchmarks.errors import SpecError, StoreError
from judges.base import find_judge, newest
from mlx_backends.registry import IMPORTED
from mlx_backends.remote import all_ready, lack

_DEVICE = "device"


def batch(
    workspace: Workspace,
    spec: Path | None,
    overrides: Mapping[str, Any],
    *,
    display: str | None,
    force: bool,
    accept_engine: bool,
    dry_run: bool,
    until_width: float | None,
    allowed: Sequence[str] = (),
) -> int:
    """Run what a spec says, going on where an earlier run of the same spec stopped; the exit code.

    ``allowed`` are addresses that the user agrees to. With ``until_width`` each run stops when the interval of every
    condition's accuracy is that narrow.
    """
    shown = make_display(display)
    specs = load_spec(spec, overrides).runs()
    # All are checked before any is made.
    checked = [check(workspace, run, accept_engine=accept_engine) for run in specs]
    for run in checked:
        _check_until_width(until_width, run.spec, run.folder if run.found else None)
    for run in checked:
        if run.identity[_DEVICE] == "remote" and not run.found:
            say(f"{run.folder.name}: {remote_use(run.spec, run.instances, run.build)}", display)
    for run in checked:
        if run.excluded.total:
            say(f"{run.folder.name}: {run.excluded.sentence}", display)
    if dry_run:
        for run in checked:
            count = summary(run.folder).total if run.found else len(run.instances)
            say(f"{run.folder.name}: the spec is right, {count} instances; nothing was run.", display)
        for lacking in dict.fromkeys(lack(_to_ask(run), run.spec.api.terms(workspace.replies)) for run in checked):
            if lacking:
                shown.problem(f"it cannot be run yet: {lacking}")
        return 0
    agree([word for run in checked for word in _to_ask(run)], allowed)
    for run in checked:
        all_ready(_to_ask(run), run.spec.api.terms(workspace.replies))
    if warning := workspace.warning():
        shown.problem(warning)
    planned = [plan(workspace, run) for run in checked]
    return work(
        workspace,
        planned,
        shown,
        display=display,
        force=force,
        accept_engine=accept_engine,
        until_width=until_width,
    )


def resume(
    workspace: Workspace,
    name: str,
    *,
    conditions: Sequence[str],
    repeat: bool,
    retry_errors: bool,
    data: Path | None,
    display: str | None,
    restarts: int | None,
    force: bool,
    accept_engine: bool,
    until_width: float | None,
    allowed: Sequence[str] = (),
) -> int:
    """Go on with the run called ``name``; the exit code."""
    shown = make_display(display)
    folder = workspace.run_folder(name)
    RunStore.require_own(folder)
    if not (conditions or repeat or retry_errors) and is_paused(folder) and unpause(folder):
        say(f"{folder.name}: its pause is lifted; process {worker_of(folder)} goes on with it.", display)
        return 0
    planned = replan(workspace, folder, data=data, accept_engine=accept_engine)
    known = [p.condition for p in summary(folder).progress]
    for word in conditions:
        if word not in known:
            raise SpecError(f"{folder.name} has no condition {word!r}; {did_you_mean(word, known)}")
    _check_until_width(until_width, planned.spec, folder)
    again = repeat or retry_errors
    asked = (planned.spec.model, *planned.spec.judge) if again else _asked(folder, planned.spec, conditions)
    agree(asked, allowed)
    all_ready(asked, planned.spec.api.terms(workspace.replies))
    if again:
        if planned.spec.model.startswith(IMPORTED):
            raise SpecError(f"the answers of {folder.name} were imported; nobody here can be asked them again.")
        with FileLock(folder / "lock") as lock:
            if not lock.acquire("rashomon resume"):
                raise StoreError(f"{working(lock)}; wait for it to end.")
            with RunStore.open(folder) as store:
                count = store.repeat(conditions, errors_only=retry_errors and not repeat)
        say(f"{folder.name}: {count} instances are asked again.", display)
    return work(
        workspace,
        [planned],
        shown,
        display=display,
        conditions=conditions,
        restarts=restarts,
        force=force,
        accept_engine=accept_engine,
        until_width=until_width,
    )


def _check_until_width(width: float | None, spec: RunSpec, folder: Path | None) -> None:
    """Raise SpecError where the run of a spec, in ``folder`` if it was begun, cannot be stopped at ``width``."""
    if width is None:
        return
    stopping_rule.check_width(width, spec.judge[0], get_benchmark(spec.benchmark))
    if folder is not None:
        with RunStore.read(folder) as store:
            stopping_rule.check_order(store)


def work(
    workspace: Workspace,
    planned: Sequence[PlannedRun],
    shown: Display,
    *,
    display: str | None,
    conditions: Sequence[str] = (),
    restarts: int | None = None,
    force: bool = False,
    accept_engine: bool = False,
    until_width: float | None = None,
    demo: bool = False,
) -> int:
    """Do the planned runs, one worker a model, then show their main table; the exit code.

    A ``demo`` shows the paper's rows under a table of rows too, which it ships with.
    """
    for run in planned:
        RunStore.require_own(run.folder)
    _refuse_in_use(planned)
    for run in planned:
        before = summary(run.folder)
        if run.found and before.done == before.total:
            say(f"{run.name}: all {before.total} are answered already.", display)
        elif run.found and before.done:
            say(f"{run.name}: going on after {before.done} of {before.total}.", display)
        forget_pause(run.folder)
    waiting = [run for run in planned if _asked(run.folder, run.spec, conditions)]
    jobs = [
        Job(
            tuple(run.folder for run in runs),
            tuple(runs[0].spec.judge),
            None if runs[0].spec.model.startswith(IMPORTED) else open_build(workspace, runs[0].spec).path,
            tuple(conditions),
            runs[0].spec.api.terms(workspace.replies),
            force,
            accept_engine,
            restarts=runs[0].spec.restarts if restarts is None else restarts,
            until_width=until_width,
        )
        for runs in (list(group) for _, group in groupby(waiting, key=lambda run: (run.spec.model, run.spec.data)))
    ]
    try:
        code = Supervisor(shown).run(jobs)
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does: that stops the run as Ctrl-C would.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it stays for the rest of the process
        code = INTERRUPTED
    after = [summary(run.folder) for run in planned]
    unfinished = [run for run in after if run.done < run.total]
    if unfinished and code:
        how = (
            f"with `{workspace.command()} resume {unfinished[0].name}`"
            if len(unfinished) == 1
            else "with the same command"
        )
        began = "interrupted; " if code == INTERRUPTED else ""
        shown.problem(f"{began}every answer reported done is safe: go on {how}.")
    if code == INTERRUPTED:
        return INTERRUPTED
    if display != "json" and display != "none":
        _conclude(planned, after, demo=demo)
    return code or (1 if any(map(_failures, after)) else 0)


def _refuse_in_use(planned: Sequence[PlannedRun]) -> None:
    """Raise StoreError where other processes work on all of the runs; a worker passes over one among others."""
    told = []
    for run in planned:
        with FileLock(run.folder / "lock") as lock:
            if lock.acquire("rashomon"):  # which waits a moment for one that is just ending
                return
            told.append(working(lock))
    if told:
        raise StoreError(f"{told[0]}; `rashomon runs` shows how far it is.")


def _to_ask(run: CheckedSpec) -> tuple[str, ...]:
    """Who is asked, now or still, when a run is begun or gone on with."""
    return _asked(run.folder, run.spec) if run.found else (run.spec.model, *run.spec.judge)


def _asked(folder: Path, spec: RunSpec, conditions: Sequence[str] = ()) -> tuple[str, ...]:
    """What is still to be asked of a run: its model, if answers are missing, and its judges; nothing where all is there."""
    benchmark = get_benchmark(spec.benchmark)
    with RunStore.read(folder) as store:
        if next(store.pending(conditions), None) is not None:
            return (spec.model, *spec.judge)
        judges = [find_judge(name, benchmark) for name in spec.judge]
        some = any(next(store.unjudged(judge.id, judge.conditions), None) is not None for judge in judges)
        return spec.judge if some else ()


def _conclude(planned: Sequence[PlannedRun], after: Sequence[RunSummary], *, demo: bool) -> None:
    from app.report.headline import over_own_rows, without_paper
    from app.report.render import print_table
    from app.report.tables import tables_of
    from app.text.escape import clean

    if any(run.done for run in after):
        folders = [run.folder for run in planned]
        own = not demo and all(over_own_rows(folder) for folder in folders)
        (main,) = tables_of(folders, only="main", published=not own)
        print_table(without_paper(main) if own else main)
    for run in after:
        failures = _failures(run)
        told = f"; {failures} failed: `rashomon show {run.name} --table failures`" if failures else ""
        enough = f"; stopped, for {run.note}" if run.state == "stopped" else ""
        print(clean(f"{run.name}: {run.done} of {run.total} answered{enough}{told}"))
    for each in planned:
        with RunStore.read(each.folder) as store:
            if store.meta("identity", {}).get(_DEVICE) == "remote":
                calls, prompt, completion = store.answer_usage()
                kept = f"; {store.kept_replies()} answers from replies kept earlier" if store.kept_replies() else ""
                print(clean(f"{each.name}: {calls} calls, {prompt} + {completion} tokens{kept}"))
            for death in deaths(store):
                print(clean(f"{each.name}: {death.sentence()}"))
            lacks = [proof["lacks"] for proof in store.meta("canary", []) if proof.get("lacks")]
            for remark in dict.fromkeys([*store.meta("remarks", []), *lacks]):
                print(clean(remark))


def _failures(run: RunSummary) -> int:
    """The answers that are errors, and those that a judge of the run, in its newest version, failed on."""
    judges = {newest(name, p.judged) for p in run.progress for name in run.spec["judge"]}
    failed = sum(judged.failed for p in run.progress for judge, judged in p.judged.items() if judge in judges)
    return failed + sum(p.errors for p in run.progress)


def say(message: str, display: str | None) -> None:
    """A line for a person, kept out of machine-read output."""
    from app.text.escape import clean

    if display != "none":
        print(clean(message), file=sys.stderr if display == "json" else sys.stdout, flush=True)
