"""Actions on a run: resume, pause, stop, kill and delete it, and make its baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.engine.run_control import batch_pid
from app.store.run_store import RunStore
from app.store.run_trash import Trash
from app.tui.screen_services import BackgroundScreen, Services
from app.tui.tui_confirmations import confirm_addresses
from app.tui.widgets.dialogs import Confirm, StopDialog
from app.tui.workspace_watcher import WatchedRun
from benchmarks.errors import RashomonError, StoreError

_MAX_NAMED = 8
"""The number of runs that a confirmation names."""


def resume_run(app: Services, run: WatchedRun) -> None:
    """Resume a paused run at once, an unfinished one after a confirmation."""
    if run.summary.state == "paused":
        _try(app, lambda: app.processes.resume(run.folder), f"{run.name} resumes")
    elif run.resumable and app.processes.will_start(run.folder, run.summary.state):
        app.toast(f"{run.name} is about to start")
    elif run.resumable:
        try:
            RunStore.require_own(run.folder)
        except RashomonError as error:
            app.show_error(error)
            return
        missing = run.summary.total - run.summary.done
        text = (
            f"{run.name}\n\n{missing:,} of {run.summary.total:,} answers are missing; "
            f"{run.summary.spec['model']} answers them."
        )

        def on_answer(yes: bool | None) -> None:
            if yes:
                _resume(app, run)

        app.push_screen(Confirm("Resume?", text, yes="Resume"), on_answer)
    else:
        app.toast(f"{run.name} is {run.summary.state}; nothing to resume")


def pause_or_resume(app: Services, run: WatchedRun) -> None:
    """Pause an active run; resume a paused one."""
    if run.summary.state == "paused":
        _resume(app, run)
    elif run.active:
        _try(app, lambda: app.processes.pause(run.folder), f"{run.name} pauses once the answers in progress are stored")
    else:
        app.toast(f"{run.name} is {run.summary.state}; nothing to pause")


def _resume(app: Services, run: WatchedRun) -> None:
    spec = run.summary.spec
    models = (spec.get("model"), *spec.get("judge", ()))

    def start(addresses: list[str]) -> None:
        _try(app, lambda: app.processes.resume(run.folder, addresses), f"{run.name} resumes")

    confirm_addresses(app, models, start)


def stop_run(app: Services, run: WatchedRun) -> None:
    """Stop a run at its next answer; if it belongs to a batch, ask whether to stop the run or the batch.

    If the batch was told to stop already, ask whether to kill the worker that it waits for.
    """
    if not run.active:
        app.toast(f"{run.name} is {run.summary.state}; nothing to stop")
        return
    if app.processes.is_stopping(run.folder):
        _kill(app, run)
        return
    text = f"{run.name}\n\nIt stops after the next answer. All answers are kept; R resumes it."

    def on_answer(choice: str | bool | None) -> None:
        if choice == "batch":
            _try(
                app,
                lambda: app.processes.stop_batch(run.folder),
                f"{run.name} and its batch stop after the next answer",
            )
        elif choice:
            _try(app, lambda: app.processes.stop(run.folder), f"{run.name} stops after the next answer")

    if batch_pid(run.folder) is None:
        app.push_screen(Confirm("Stop?", text, yes="Stop"), on_answer)
    else:
        text += "\n\nIt is part of a batch, which then starts its next run unless you stop the whole batch."
        app.push_screen(StopDialog(text), on_answer)


def _kill(app: Services, run: WatchedRun) -> None:
    text = (
        f"{run.name}\n\nIts worker was told to stop, and may take a minute for each 8 GB of memory. All answers are kept "
        "if you kill it, but a Mac may not free its memory until it restarts."
    )

    def on_answer(yes: bool | None) -> None:
        if yes:
            _try(app, lambda: app.processes.kill(run.folder), f"the worker of {run.name} is killed")

    app.push_screen(Confirm("Kill the worker?", text, yes="Kill"), on_answer)


def make_baselines(app: Services, run: WatchedRun) -> None:
    """Make the baselines of a run after a confirmation; they appear in the list."""
    try:
        app.workspace.require_writable()
    except StoreError as error:
        app.show_error(error)
        return

    def on_answer(yes: bool | None) -> None:
        if yes:
            message = f"making the baselines of {run.name}; they appear in this list"
            _try(app, lambda: app.processes.start(["baselines", run.name]), message)

    text = f"{run.name}\n\nThey are runs of their own, of its answers to each source alone. No model is asked."
    app.push_screen(Confirm("Make baselines?", text, yes="Make"), on_answer)


def delete_runs(screen: BackgroundScreen, runs: Sequence[WatchedRun], deleted: Callable[[Sequence[str]], None]) -> None:
    """Delete inactive runs after a confirmation, then call ``deleted`` with their names."""
    app = screen.rashomon
    if not runs or not app.may_write():
        return
    busy = [run.name for run in runs if run.active]
    if busy:
        app.show_error(f"{', '.join(busy)}: still active; stop with x first.")
        return
    names = [f"  {run.name}" for run in runs[:_MAX_NAMED]]
    names += [f"  and {len(runs) - _MAX_NAMED} more"] * (len(runs) > _MAX_NAMED)
    subject = f"the run {runs[0].name}" if len(runs) == 1 else "\n".join([f"{len(runs)} marked runs:", *names])
    answers = sum(run.summary.done for run in runs)
    text = (
        f"{subject}\n\nThis deletes {answers:,} answers and their labels; builds and exports stay. "
        "u restores until you quit."
    )
    trash = app.trash

    def report(result: tuple[list[str], list[str]]) -> None:
        names, problems = result
        deleted(names)
        if names:
            app.toast(f"deleted: {', '.join(names)}; u restores until you quit")
        if problems:
            app.show_error("\n".join(problems))

    def on_answer(yes: bool | None) -> None:
        if yes:
            screen.attempt(lambda: _delete(trash, [run.folder for run in runs]), report, group="delete")

    app.push_screen(Confirm("Delete?", text, yes="Delete", no="Keep"), on_answer)


def _delete(trash: Trash, folders: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Delete runs; return the names of the deleted ones, and the errors of the others."""
    names, problems = [], []
    for folder in folders:
        try:
            trash.delete(folder)
        except StoreError as error:
            problems.append(str(error))
        else:
            names.append(folder.name)
    return names, problems


def _try(app: Services, work: Callable[[], object], message: str) -> None:
    """Do ``work`` and show ``message``, or the error."""
    try:
        work()
    except RashomonError as error:
        app.show_error(error)
    else:
        app.toast(message)
