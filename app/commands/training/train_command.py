"""``rashomon train`` and ``rashomon trainings``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.commands.terminal.spinner import spinner
from app.commands.training.training_estimate import plan_lines
from app.engine.training.training_answer_checks import check_line
from app.engine.training.training_data_record import write_data_record
from app.engine.training.training_folder import (
    ADAPTER,
    BEST,
    DIVERGED,
    Training,
    create_training,
    find_training,
    has_training,
    read_trainings,
)
from app.engine.training.training_log import Curve, read_curve
from app.engine.training.training_plan import plan_training
from app.engine.training.training_spec_and_recipes import RESUMED_WITH, TrainingSpec, training_spec
from app.engine.training.training_supervisor import TrainingSupervisor
from app.engine.training.training_verdict import chosen_rate, rate_sentence
from app.exit_codes import DONE, INTERRUPTED, EndedError
from app.json_output.json_envelope import print_json
from app.json_output.training_json import AnswerCheck, TrainingEntry, TriedRate
from app.report.progress.remaining_time import duration
from app.report.runs.portable_facts import portable_message, portable_path
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError, StoreError
from benchmarks.number_ranges import STORED
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.portable_model_names import without_folders
from mlx_backends.training_settings import CheckReport, DivergedError

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
    """Plan a training, or take up the one called ``resume``, and train; return 0 if its best adapter is better than the base.

    Raises EndedError for another end, and for another verdict.
    """
    spec = _spec(workspace, values, resume)
    workspace.make()
    with spinner("checking the data"):
        plan = plan_training(workspace, spec, force=force)
    for warning in plan.warnings:
        print(f"warning: {clean(warning)}.", file=sys.stderr)
    print(*map(clean, plan_lines(workspace, plan)), sep="\n")
    if dry_run:
        return 0
    training = create_training(
        workspace, plan.name, spec, plan.identity, plan.settings.steps, forced=force, accept_engine=accept_engine
    )
    state, note = training.state()
    if state == DIVERGED:
        raise DivergedError(note)
    if state == "done":
        return _print_end(training)
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
    return _print_end(training)


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
    if {"rates", "learning_rate"} <= values.keys():
        raise SpecError("--rates chooses the learning rate; leave out --learning-rate.")
    if "rate_updates" in values and "rates" not in values:
        raise SpecError("--rate-updates is the budget of a search; add --rates auto.")
    if "patience" in values and values.get("early_stopping") is False:
        raise SpecError("--patience says when a training ends early; leave it or --no-early-stopping out.")
    name = options.get("name")
    if name is not None and has_training(workspace, name):
        known = find_training(workspace, name).spec
        before = {"early_stopping": known.early_stopping, "check_rows": known.check_rows}  # of an earlier version: off
        options = before | options
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
        base = f"  base {row.base_loss:.4f}" if row.base_loss is not None else ""
        print(f"{clean(row.name)}  {row.state}  {row.step}/{row.steps}{loss}{best}{base}")
        rates = rate_sentence([(trial.learning_rate, trial.loss) for trial in row.rates], row.learning_rate)
        for text in filter(None, (row.verdict, row.note, rates)):
            print(f"    {clean(text)}")


def training_entry(workspace: Workspace, training: Training) -> TrainingEntry:
    """Return a training as ``rashomon trainings --json`` prints it."""
    state, note = training.state()
    curve = read_curve(training.path)
    best_step, best_loss = curve.best or (None, None)
    adapter, best = (_adapter(training.path / name) for name in (ADAPTER, BEST))
    model = training.identity.get("model")
    verdict = training.verdict()
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
        base_loss=curve.base,
        learning_rate=_learning_rate(training, curve),
        rates=tuple(TriedRate(learning_rate=rate, loss=loss) for rate, loss in curve.trials),
        checks=tuple(map(_check_entry, curve.checks)),
        verdict=None if verdict is None else verdict.sentence,
        exit_code=None if verdict is None else verdict.code,
        seconds=round(curve.seconds, 3),
        peak_memory=curve.peak_memory,
        adapter=None if adapter is None else portable_path(adapter, workspace.path),
        best=None if best is None else portable_path(best, workspace.path),
        created=training.created,
    )


def _check_entry(check: CheckReport) -> AnswerCheck:
    return AnswerCheck(
        step=check.step,
        names=check.names,
        conflicts=check.conflicts,
        named=check.named,
        agreeing=check.agreeing,
        kept=check.kept,
        outcomes={kind: dict(counts) for kind, counts in check.outcomes.items()},
        seconds=round(check.seconds, 3),
    )


def _learning_rate(training: Training, curve: Curve) -> float | None:
    """Return the given learning rate, or the one that the search chose; None before it has."""
    rates = training.spec.tried_rates
    return chosen_rate(curve, rates) if rates else training.spec.learning_rate


def _adapter(path: Path) -> Path | None:
    return path if (path / "adapters.safetensors").is_file() else None


def _print_end(training: Training) -> int:
    """Print the verdict and the adapters with their losses; return 0. Raises EndedError if the verdict is another."""
    verdict = training.verdict()
    curve = read_curve(training.path)
    if verdict is not None and verdict.code == DONE:
        print(verdict.sentence)
    last = curve.validations[-1] if curve.validations and curve.validations[-1][0] == curve.step else (curve.step, None)
    for name, (step, loss) in ((ADAPTER, last), (BEST, curve.best or (0, None))):
        if (folder := _adapter(training.path / name)) is not None:
            validation = "" if loss is None else f", validation loss {loss:.4g}"
            print(f"{name}: {clean(str(folder))} (update {step}{validation})")
    if verdict is not None and verdict.code != DONE:
        raise EndedError(verdict.code, f"{training.name}: {verdict.sentence}.")
    return DONE


class _Display:
    """Progress as a line that is rewritten ("full"), as a new line every few seconds ("plain"), or not at all."""

    def __init__(self, training: Training, kind: str) -> None:
        self._training, self._kind = training, kind
        self._shown = ""
        self._next = 0.0
        self._tried = 0
        self._checked = len(read_curve(training.path).checks)

    def show(self, state: str, note: str, curve: Curve) -> None:
        """Show the progress if it is time to."""
        rates = self._training.spec.tried_rates
        if len(curve.trials) != self._tried:
            self._tried = len(curve.trials)
            self.notice(rate_sentence(curve.trials, chosen_rate(curve, rates)))
        for check in curve.checks[self._checked :]:
            self.notice(f"update {check.step}: {check_line(check)}")
        self._checked = len(curve.checks)
        text = progress_line(state, note, curve, self._training.steps, len(rates))
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


def progress_line(state: str, note: str, curve: Curve, steps: int, rates: int = 0) -> str:
    """Return a training's progress in one line; ``rates`` is the number of learning rates to try."""
    if note and state in ("queued", "loading"):
        return f"{state}: {note}"
    if not curve.losses:
        if state == "training" and curve.trial is not None:
            rate, step = curve.trial
            return f"trying learning rate {rate:g}, {len(curve.trials) + 1} of {rates}: update {step}"
        base = f"base's validation loss {curve.base:.4f}" if state == "training" and curve.base is not None else ""
        return f"{state}: {base}" if base else state
    pieces = [f"{state} {curve.step}/{steps}", f"loss {curve.losses[-1][1]:.4f}"]
    if curve.validations:
        base = f" (base {curve.base:.4f})" if curve.base is not None else ""
        pieces.append(f"validation {curve.validations[-1][1]:.4f}{base}")
    if state == "training" and curve.tokens_per_second:
        pieces += [f"{curve.tokens_per_second:.0f} tokens/s", f"{duration(curve.seconds_left(steps))} left"]
    return "  ".join(pieces)
