"""``rashomon train`` and ``rashomon trainings``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.commands.spinner import spinner
from app.engine.training.data_record import write_data_record
from app.engine.training.folder import (
    ADAPTER,
    BEST,
    DIVERGED,
    Training,
    create_training,
    find_training,
    read_trainings,
)
from app.engine.training.log import Curve, LogReader
from app.engine.training.plan import TrainingPlan, plan_training
from app.engine.training.spec import RESUMED_WITH, TrainingSpec, training_spec
from app.engine.training.supervise import TrainingSupervisor
from app.exit_codes import DONE, INTERRUPTED, EndedError
from app.json_output.envelope import print_json
from app.json_output.training import TrainingEntry
from app.report.portable import portable_message, portable_path
from app.report.throughput import duration
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import SpecError, StoreError
from benchmarks.number_ranges import STORED
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.shared_names import without_folders
from mlx_backends.training import DivergedError

_LINE_SECONDS = 10.0
"""The seconds between two lines of progress where the output is no terminal."""

_WIDTH = 79


def train(
    workspace: Workspace,
    values: Mapping[str, Any],
    *,
    resume: str | None,
    display: str | None,
    force: bool,
    dry_run: bool,
    accept_engine: bool = False,
    wait: float | None = None,
) -> int:
    """Plan a training, or take up the one called ``resume``, and train; return 0. Raises EndedError for another end."""
    spec = _spec(workspace, values, resume)
    workspace.make()
    with spinner("checking the data"):
        plan = plan_training(workspace, spec, force=force)
    for warning in plan.warnings:
        print(f"warning: {clean(warning)}.", file=sys.stderr)
    _print_plan(plan)
    if dry_run:
        return 0
    training = create_training(
        workspace, plan.name, spec, plan.identity, plan.settings.steps, forced=force, accept_engine=accept_engine
    )
    state, note = training.state()
    if state == DIVERGED:
        raise DivergedError(note)
    if state == "done":
        _print_end(training)
        return 0
    write_data_record(training.path, plan.data)
    progress = _Display(training, display or ("full" if sys.stderr.isatty() else "plain"))
    try:
        TrainingSupervisor(training, progress.show, progress.notice, wait).run()
    except EndedError as end:
        if end.exit_code != INTERRUPTED:
            raise
        resume = f"`{workspace.command()} train --resume {training.name}` resumes"
        raise EndedError(INTERRUPTED, f"interrupted; {resume} from the last checkpoint.") from end
    finally:
        progress.close()
    _print_end(training)
    return DONE


def _spec(workspace: Workspace, values: Mapping[str, Any], resume: str | None) -> TrainingSpec:
    """Return the spec of the command line's values, or of the training to resume with what may change. Raises SpecError."""
    options = dict(values)
    if resume is not None:
        if fixed := [f"--{key.replace('_', '-')}" for key in options if key not in RESUMED_WITH]:
            raise SpecError(
                f"--resume takes up a training as it was begun; leave out {', '.join(fixed)}, or start another training."
            )
        training = find_training(workspace, resume)
        options = training.spec.model_dump() | {"name": training.name} | options
    for key in ("model", "data"):
        if key not in options:
            raise SpecError(f"--{key} is missing; `rashomon train --help` shows an example.")
    if path_exists(options["model"]):
        options["model"] = str(typed_path(options["model"]))
    options["data"] = str(typed_path(options["data"]).absolute())
    return training_spec(options, context=None if resume is None else STORED)


def trainings(workspace: Workspace, *, as_json: bool) -> None:
    """List the trainings of a workspace."""
    rows = list[TrainingEntry]()
    for training in read_trainings(workspace):
        if isinstance(training, StoreError):
            print(f"warning: {clean(str(training))}", file=sys.stderr)
        else:
            rows.append(training_entry(workspace, training))
    if as_json:
        print_json("trainings", rows)
        return
    if not rows:
        print(f"no trainings in {workspace.path} yet; `rashomon train` starts one.")
    for row in rows:
        best = f"  best {row.best_loss:.4f} at step {row.best_step}" if row.best_loss is not None else ""
        loss = f"  loss {row.loss:.4f}" if row.loss is not None else ""
        print(f"{clean(row.name)}  {row.state}  {row.step}/{row.steps}{loss}{best}")
        if row.note:
            print(f"    {clean(row.note)}")


def training_entry(workspace: Workspace, training: Training) -> TrainingEntry:
    """Return a training as ``rashomon trainings --json`` prints it."""
    reader = LogReader(training.path)
    reader.poll()
    state, note = training.state()
    curve = reader.curve
    best_step, best_loss = curve.best or (None, None)
    adapter, best = (_adapter(training.path / name) for name in (ADAPTER, BEST))
    model = training.identity.get("model")
    return TrainingEntry(
        name=training.name,
        state=state,
        note=portable_message(note, workspace.path),
        model=None if model is None else without_folders(str(model)),
        data=Path(training.spec.data).name,
        recipe=training.spec.recipe,
        step=curve.step,
        steps=training.steps,
        loss=curve.losses[-1][1] if curve.losses else None,
        validation_loss=curve.validations[-1][1] if curve.validations else None,
        best_step=best_step,
        best_loss=best_loss,
        seconds=round(curve.seconds, 3),
        peak_memory=curve.peak_memory,
        adapter=None if adapter is None else portable_path(adapter, workspace.path),
        best=None if best is None else portable_path(best, workspace.path),
        created=training.created,
    )


def _adapter(path: Path) -> Path | None:
    return path if (path / "adapters.safetensors").is_file() else None


def _print_plan(plan: TrainingPlan) -> None:
    settings, spec = plan.settings, plan.spec
    counts = ", ".join(f"{len(rows)} rows for {part}" for part, rows in plan.rows.items())
    print(f"{clean(plan.name)}: {counts}, {settings.steps} updates of {settings.batch_size} rows")
    preference = f", orpo with beta {spec.beta:g}" if spec.objective == "orpo" else ""
    print(
        f"  rank {spec.rank}, alpha {spec.alpha:g}, dropout {spec.dropout:g}, rate {spec.learning_rate:g} ({spec.schedule})"
        f"{preference}"
    )
    print(f"  memory: about {plan.memory.sentence()}")
    print(f"  disk: at most {plan.memory.disk / 1e9:.1f} GB")


def _print_end(training: Training) -> None:
    for name in (ADAPTER, BEST):
        if (folder := _adapter(training.path / name)) is not None:
            print(f"{name}: {clean(str(folder))}")


class _Display:
    """Progress as a line that is rewritten ("full"), as a new line every few seconds ("plain"), or not at all."""

    def __init__(self, training: Training, kind: str) -> None:
        self._training, self._kind = training, kind
        self._shown = ""
        self._next = 0.0

    def show(self, state: str, note: str, curve: Curve) -> None:
        """Show the progress if it is time to."""
        text = progress_line(state, note, curve, self._training.steps)
        now = time.monotonic()
        if self._kind == "none" or text == self._shown:
            return
        if self._kind != "full" and now < self._next and state == "training":
            return
        self._shown, self._next = text, now + _LINE_SECONDS
        if self._kind == "full":
            print(f"\r{clean(text)[:_WIDTH]:<{_WIDTH}}", end="", file=sys.stderr, flush=True)
        else:
            print(clean(text), file=sys.stderr, flush=True)

    def notice(self, message: str) -> None:
        """Show a sentence in a line of its own."""
        self.close()
        self._shown = ""
        if self._kind != "none":
            print(clean(message), file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._kind == "full" and self._shown:
            print(file=sys.stderr)


def progress_line(state: str, note: str, curve: Curve, steps: int) -> str:
    """Return a training's progress in one line."""
    if note and state in ("queued", "loading"):
        return f"{state}: {note}"
    if not curve.losses:
        return state
    pieces = [f"{state} {curve.step}/{steps}", f"loss {curve.losses[-1][1]:.4f}"]
    if curve.validations:
        pieces.append(f"validation {curve.validations[-1][1]:.4f}")
    if state == "training" and curve.tokens_per_second:
        pieces += [f"{curve.tokens_per_second:.0f} tokens/s", f"{duration(curve.seconds_left(steps))} left"]
    return "  ".join(pieces)
