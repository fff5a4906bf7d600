"""Actions on the spec of a form: saving it as a file, and starting its runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from app.new_run.preflight import Preflight, RunPreflight
from app.new_run.spec_form import prepare_job, save_spec
from app.run_spec import BatchSpec
from app.tui.screen_services import BackgroundScreen, Services
from app.tui.tui_confirmations import confirm_addresses
from app.tui.tui_processes import allow_address_options
from app.tui.widgets.dialogs import Confirm, TextDialog
from benchmarks.errors import RashomonError
from benchmarks.untrusted.typed_paths import path_exists, typed_path

_MAX_NAMED = 6
"""The number of runs that a confirmation names."""


def ask_to_save(screen: BackgroundScreen, spec: BatchSpec, name: str, saved: Callable[[], None]) -> None:
    """Ask for a path, ``name`` in this folder by default, save the spec there, and call ``saved``."""
    app = screen.rashomon

    def on_answer(typed: str | None) -> None:
        if typed is not None and typed.strip():
            _save(app, spec, typed.strip(), saved)

    path = str(Path.cwd() / f"{name}.toml")
    app.push_screen(TextDialog("Save as a spec file", "`rashomon --batch FILE` runs it.", value=path), on_answer)


def _save(app: Services, spec: BatchSpec, typed: str, saved: Callable[[], None], *, replace: bool = False) -> None:
    try:
        path = typed_path(typed)
        if path_exists(path) and not replace:

            def on_answer(yes: bool | None) -> None:
                if yes:
                    _save(app, spec, typed, saved, replace=True)

            app.push_screen(Confirm("Replace the file?", f"{path} exists."), on_answer)
            return
        save_spec(spec, path, replace=replace)
    except RashomonError as error:
        app.show_error(error)
        return
    saved()
    app.toast(f"saved {path}")


def ask_to_start(
    screen: BackgroundScreen, spec: BatchSpec, preflight: Preflight | None, started: Callable[[], None]
) -> None:
    """Start the runs of a spec after a confirmation, call ``started``, and show the first run."""
    app = screen.rashomon

    def start(addresses: list[str], created: tuple[Path, list[Path]]) -> None:
        file, folders = created
        try:
            names = [folder.name for folder in folders]
            app.processes.start(["batch", str(file), *allow_address_options(addresses)], runs=names)
        except RashomonError as error:
            app.show_error(error)
            return
        started()
        app.open_screen("live", folders[:1])

    def create_runs(addresses: list[str]) -> None:
        screen.attempt(partial(prepare_job, app.workspace, spec), partial(start, addresses), group="start")

    def on_answer(yes: bool | None) -> None:
        if yes:
            confirm_addresses(app, (*spec.model, *spec.judge), create_runs)

    app.push_screen(Confirm("Start?", _start_question(spec, preflight), yes="Start"), on_answer)


def _start_question(spec: BatchSpec, preflight: Preflight | None) -> str:
    """Return the runs about to be started, with their warnings and costs."""
    if preflight is None or not preflight.runs:
        return f"{spec.benchmark}: {', '.join(spec.model)}"
    runs = preflight.runs
    lines = [f"{run.name}: {_work(run)}" for run in runs[:_MAX_NAMED]]
    lines += [f"and {len(runs) - _MAX_NAMED} more runs"] * (len(runs) > _MAX_NAMED)
    return "\n".join([*lines, *preflight.warnings, *preflight.costs])


def _work(run: RunPreflight) -> str:
    """Return what is left to do in a run."""
    if run.finished:
        return "finished already, nothing is run"
    if not run.exists:
        return f"{run.estimate.answers:,} instances"
    return f"{run.estimate.left:,} of {run.estimate.answers:,} instances are left"
