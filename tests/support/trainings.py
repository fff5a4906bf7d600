"""Trainings on disk that nothing trained, whose logs follow a formula; training sets; trainings without a worker process."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any
from unittest.mock import patch

from PIL import Image

from app.engine.training import training_worker
from app.engine.training.training_folder import Training, create_training
from app.engine.training.training_log import Curve, LogWriter, read_curve
from app.engine.training.training_spec_and_recipes import training_spec
from app.engine.training.training_supervisor import TrainingSupervisor
from app.engine.training.training_verdict import verdict_of
from app.engine.workers.worker_process import Outcome
from app.store.workspace import Workspace
from mlx_backends.mlx.training import row_sizes
from mlx_backends.mlx.training.training_objective import Losses
from mlx_backends.training_settings import CheckReport, StepReport, ValidationReport

STEPS = 200


def staged_training(
    workspace: Workspace, name: str, *, state: str = "done", note: str = "", done: int = STEPS, created: float = 1.75e9
) -> Training:
    """Create a training in ``state`` after ``done`` updates; a validation of the base, and one every tenth of the updates."""
    spec = training_spec({"model": "mlx-community/Qwen3-VL-4B-Instruct-4bit", "data": "/data/train", "name": name})
    identity = spec.identity() | {"data digest": "d" * 64, "weights": "e" * 64}
    training = create_training(workspace, name, spec, identity, STEPS)
    values = json.loads((training.path / "training.json").read_text())
    (training.path / "training.json").write_text(json.dumps(values | {"created": created}))
    append_updates(training.path, 1, done)
    verdict = verdict_of(read_curve(training.path)) if state == "done" else None
    training.note(state, note, verdict)
    return Training.open(training.path)


def append_updates(folder: Path, first: int, last: int) -> None:
    """Log the updates from ``first`` to ``last``."""
    log = folder / "log.jsonl"
    writer = LogWriter(folder, log.stat().st_size if log.exists() else 0)
    if first == 1:
        writer.write(ValidationReport(0, 2.9, False, 4.0, (2.9,) * 12))
    for step in range(first, last + 1):
        loss = 0.4 + 3 * math.exp(-step / 40) + 0.15 * math.sin(step * 7.3)
        writer.write(StepReport(step, loss, 40, 2400, 2.0, 1e-4, 9 * 10**9, loss))
        if step % 20 == 0:
            falling = step <= 120
            validation = 0.55 + 2.6 * math.exp(-step / 45) + (0 if falling else (step - 120) / 400)
            writer.write(ValidationReport(step, validation, falling, 4.0, (validation,) * 12 if falling else None))


def measured_losses(loss: float, rows: int) -> Losses:
    """Return the losses of a validation of so many rows with one loss."""
    losses = Losses()
    for _ in range(rows):
        losses.add((loss, loss), 1)
    return losses


def ended_curve(
    base: float | None, best: tuple[int, float] | None, checks: Sequence[CheckReport] = (), examples: int = 12
) -> Curve:
    """Return the curve of a training in which all validation examples have one loss."""
    losses = {} if base is None or best is None else {"base_examples": (base,), "best_examples": (best[1],)}
    by_example: dict[str, Any] = {key: value * examples for key, value in losses.items()}
    return Curve(base=base, best=best, checks=list(checks), **by_example)


def write_training_set(folder: Path, rows: int = 4, validation: int = 1) -> Path:
    """Write a training set about coloured squares, each with its own number."""
    (folder / "images").mkdir(parents=True)
    for name, numbers in (("train", range(rows)), ("validation", range(rows, rows + validation))):
        lines = [json.dumps(_row(folder, number)) + "\n" for number in numbers]
        if lines:
            (folder / f"{name}.jsonl").write_text("".join(lines))
    return folder


def _row(folder: Path, number: int) -> dict[str, Any]:
    image = f"images/{number}.png"
    Image.new("RGB", (96, 96), (200, 37 * number % 256, 90)).save(folder / image)
    question = [{"type": "image"}, {"type": "text", "text": "What is the value of kale?"}]
    answer = f"kale: {10 + number}"
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"images": [image], "messages": turns, "rejected": "kale: 99", "kind": f"kind {number % 2}"}


@contextmanager
def trained_here() -> Iterator[None]:
    """Let trainings and their plans run in this process instead of in others, whose start takes seconds."""

    def run_worker(supervisor: TrainingSupervisor) -> tuple[int, Outcome]:
        training = supervisor._training
        with open(training.path / "worker.log", "a") as log, redirect_stderr(log):
            outcome = training_worker.train(training.path, training_worker._Flags())
        supervisor._show_progress()
        return outcome.code, outcome

    with (
        patch.object(TrainingSupervisor, "_run_worker", run_worker),
        patch.object(row_sizes, "_answer_apart", row_sizes._answer),
    ):
        yield
