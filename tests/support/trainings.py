"""Trainings on disk that nothing trained: their logs follow a formula."""

from __future__ import annotations

import json
import math
from pathlib import Path

from app.engine.training.folder import Training, create_training
from app.engine.training.log import LogWriter
from app.engine.training.spec import training_spec
from app.store.workspace import Workspace
from mlx_backends.training import StepReport, ValidationReport

STEPS = 200


def staged_training(
    workspace: Workspace, name: str, *, state: str = "done", note: str = "", done: int = STEPS, created: float = 1.75e9
) -> Training:
    """Create a training in ``state`` after ``done`` updates; a validation every tenth of them."""
    spec = training_spec({"model": "mlx-community/Qwen3-VL-4B-Instruct-4bit", "data": "/data/train", "name": name})
    identity = spec.identity() | {"data digest": "d" * 64, "weights": "e" * 64}
    training = create_training(workspace, name, spec, identity, STEPS)
    values = json.loads((training.path / "training.json").read_text())
    (training.path / "training.json").write_text(json.dumps(values | {"created": created}))
    append_updates(training.path, 1, done)
    training.note(state, note)
    return Training.open(training.path)


def append_updates(folder: Path, first: int, last: int) -> None:
    """Log the updates from ``first`` to ``last``."""
    log = folder / "log.jsonl"
    writer = LogWriter(folder, log.stat().st_size if log.exists() else 0)
    for step in range(first, last + 1):
        loss = 0.4 + 3 * math.exp(-step / 40) + 0.15 * math.sin(step * 7.3)
        writer.write(StepReport(step, loss, 40, 2400, 2.0, 1e-4, 9 * 10**9))
        if step % 20 == 0:
            falling = step <= 120
            validation = 0.55 + 2.6 * math.exp(-step / 45) + (0 if falling else (step - 120) / 400)
            writer.write(ValidationReport(step, validation, falling, 4.0))
