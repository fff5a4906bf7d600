"""Folders of trainings.

::

    training.json           the spec, and what a training must have to be resumed: digests of data and weights, the engine
    data.json               what it is trained on and was compared with
    state.json              what it does, or how it ended
    rows.json               the tokens of each row, and which rows cannot be used
    log.jsonl               each update and each validation
    checkpoint.safetensors  the last checkpoint, with the optimiser's state
    adapter/                the adapter after the last update
    best/                   the adapter with the lowest validation loss
    worker.log              what its worker and its libraries print
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.engine.run_identity import is_engine_fact, refused_differences
from app.engine.training.training_log import LOG
from app.engine.training.training_spec_and_recipes import TrainingSpec
from app.engine.training.training_verdict import TrainingVerdict
from app.exit_codes import VERDICTS
from app.run_spec import parse_stored
from app.store.file_locks import KILLED, FileLock
from app.store.workspace import Workspace
from benchmarks.errors import BusyError, SpecError, StoreError, did_you_mean
from benchmarks.untrusted.safe_files import replace_file, write_error
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from mlx_backends.mlx.training.training_checkpoint import CHECKPOINT, WEIGHTS
from mlx_backends.training_settings import KEPT

ADAPTER, BEST = "adapter", "best"

_TRAINING, _STATE, _LOCK = "training.json", "state.json", "lock"
WORKER_LOG = "worker.log"
DIVERGED = "diverged"
"""The state of a training that failed, and would fail again: everything that it is made of is the same."""

_BUSY = ("queued", "loading", "training")
_OTHER_NAME = "choose another --name"
_ENDED = ("done", "stopped", "failed", DIVERGED)
_PID = re.compile(r"process (\d+)")


@dataclass(frozen=True)
class Training:
    """A training's folder, with its spec and the digests that identify it."""

    path: Path
    spec: TrainingSpec
    identity: Mapping[str, Any]
    steps: int
    """The number of updates to the end."""
    created: float
    forced: bool = False
    """Flag for a training that was begun although it seemed not to fit in memory."""
    engines: tuple[Mapping[str, Any], ...] = ()
    """The devices and versions that it was trained with, the last one last."""

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def open(cls, path: Path) -> Training:
        """Open a training. Raises StoreError if the folder holds none, or a damaged one."""
        try:
            values = read_json_file(path / _TRAINING)
            _upgrade(values)
            spec = parse_stored(TrainingSpec, values["spec"], str(path))
            engines = tuple(dict(engine) for engine in values["engines"])
            identity, steps, created = dict(values["identity"]), int(values["steps"]), float(values["created"])
            return cls(path, spec, identity, steps, created, values["forced"] is True, engines)
        except FileNotFoundError as error:
            raise StoreError(f"{path} is not a training; `rashomon trainings` lists them.") from error
        except (OSError, OutsideJSONError, SpecError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path}/{_TRAINING} is damaged; start the training again with another --name.") from error

    def save(self) -> None:
        """Write what :meth:`open` reads. Raises StoreError."""
        values = {
            "format": 3,
            "spec": self.spec.model_dump(mode="json"),
            "identity": dict(self.identity),
            "steps": self.steps,
            "created": self.created,
            "forced": self.forced,
            "engines": [dict(engine) for engine in self.engines],
        }
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, _TRAINING, (json.dumps(values, indent=2, sort_keys=True) + "\n").encode())
        except OSError as error:
            raise write_error(self.path, error, "free some space or name another --workspace") from error

    def has_learnt(self) -> bool:
        """Return whether it has made an update."""
        log = self.path / LOG
        return (self.path / CHECKPOINT).exists() or (log.exists() and log.stat().st_size > 0)

    def lock(self) -> FileLock:
        """Return the lock that a training's worker holds."""
        return FileLock(self.path / _LOCK)

    def worker(self) -> int | None:
        """Return the process id of its worker; None if it has none."""
        match = _PID.fullmatch(self.lock().holder() or "")
        return int(match[1]) if match else None

    def note(self, state: str, note: str = "", verdict: TrainingVerdict | None = None) -> None:
        """Record what the training does, or how it ended. Raises StoreError."""
        value = {"state": state, "note": note, "at": time.time()}
        if verdict is not None:
            value["verdict"] = asdict(verdict)
        try:
            replace_file(self.path, _STATE, json.dumps(value).encode())
        except OSError as error:
            raise write_error(self.path / _STATE, error, KEPT) from error

    def state(self) -> tuple[str, str]:
        """Return what it does, or how it ended, and a note on that."""
        for _ in range(2):  # its worker may have ended, or another begun, since its state was read
            state, note = self._recorded_state()
            if state not in _BUSY or self.worker() is not None:
                return state, note
        if state != "training":
            return "stopped", ""  # before it had done anything
        return "interrupted", f"{KILLED}; it resumes from the last checkpoint"

    def verdict(self) -> TrainingVerdict | None:
        """Return the verdict on its adapters; None before the end, or where an earlier version trained it."""
        try:
            value = read_json_file(self.path / _STATE)
            verdict = TrainingVerdict(value["verdict"]["code"], str(value["verdict"]["sentence"]))
        except (OSError, OutsideJSONError, KeyError, TypeError):
            return None
        return verdict if value.get("state") in ("done", DIVERGED) and verdict.code in VERDICTS else None

    def advised_adapter(self) -> Path:
        """Return the folder of the adapter to use: that of the lowest validation loss, or the last one if none was validated."""
        best = self.path / BEST
        return best if (best / WEIGHTS).is_file() else self.path / ADAPTER

    def _recorded_state(self) -> tuple[str, str]:
        try:
            value = read_json_file(self.path / _STATE)
            state, note = str(value["state"]), str(value["note"])
        except (OSError, OutsideJSONError, KeyError, TypeError):
            return "planned", ""
        return (state, note) if state in (*_BUSY, *_ENDED) else ("planned", "")  # written by something else


def trainings_folder(workspace: Workspace) -> Path:
    """Return the folder of a workspace's trainings."""
    return workspace.path / "trainings"


def training_names(workspace: Workspace) -> list[str]:
    """Return the sorted names of the trainings."""
    try:
        with os.scandir(trainings_folder(workspace)) as entries:
            return sorted(e.name for e in entries if not e.name.startswith(".") and Path(e.path, _TRAINING).is_file())
    except OSError:
        return []


def read_trainings(workspace: Workspace) -> Iterator[Training | StoreError]:
    """Yield the trainings, oldest first; an error for a damaged one."""
    trainings: list[Training] = []
    for name in training_names(workspace):
        try:
            trainings.append(Training.open(trainings_folder(workspace) / name))
        except StoreError as error:
            yield error
    yield from sorted(trainings, key=lambda training: (training.created, training.name))


def find_training(workspace: Workspace, name: str) -> Training:
    """Return the training called ``name``, or the only one that begins so. Raises StoreError."""
    names = training_names(workspace)
    matches = [name] if name in names else [known for known in names if name and known.startswith(name)]
    if len(matches) == 1:
        return Training.open(trainings_folder(workspace) / matches[0])
    if matches:
        raise StoreError(f"{name!r} matches {len(matches)} trainings: {', '.join(matches)}; type more of the name.")
    hint = did_you_mean(name, names) if names else "there are no trainings yet."
    raise StoreError(f"there is no training {name!r} in {trainings_folder(workspace)}; {hint}")


def has_training(workspace: Workspace, name: str) -> bool:
    """Return whether a training of this name was begun."""
    return (trainings_folder(workspace) / name / _TRAINING).exists()


def create_training(
    workspace: Workspace,
    name: str,
    spec: TrainingSpec,
    identity: Mapping[str, Any],
    steps: int,
    *,
    forced: bool = False,
    accept_engine: bool = False,
) -> Training:
    """Create the folder of a training, or open the one of the same name if it is the same training.

    That takes the data's place and other settings that decide nothing from ``spec``. A training that has not made an update yet
    is replaced. Raises SpecError, with the difference, if another training has the name, or the engine differs, unless
    ``accept_engine`` allows that; StoreError.
    """
    path = trainings_folder(workspace) / name
    engine = {key: value for key, value in identity.items() if is_engine_fact(key)}
    training = Training(path, spec, identity, steps, time.time(), forced, (engine,))
    if has_training(workspace, name):
        known = Training.open(path)
        changes, advice = _changes(known, identity, accept_engine=accept_engine)
        if changes and known.has_learnt():
            raise SpecError(f"the training {name} is another one: {'; '.join(changes)}; {advice or _OTHER_NAME}.")
        if not changes:
            engines = known.engines if engine in known.engines[-1:] else (*known.engines, engine)
            forced = forced or known.forced
            training = replace(known, spec=spec, identity={**known.identity, **engine}, forced=forced, engines=engines)
        if training == known:
            return known
        if (pid := known.worker()) is not None:
            raise BusyError(f"process {pid} is already working on {name}; `rashomon trainings` shows how far it is.")
    training.save()
    return training


def _changes(known: Training, identity: Mapping[str, Any], *, accept_engine: bool) -> tuple[list[str], str]:
    """Return the differences from a known training for which it is not resumed, and the advice if only the engine differs.

    A training of an earlier version recorded no engine.
    """
    comparable = {key: value for key, value in identity.items() if key in known.identity or not is_engine_fact(key)}
    return refused_differences(known.identity, comparable, accept_engine=accept_engine)


def _upgrade(values: dict[str, Any]) -> None:
    """Bring ``training.json`` of an earlier version into the present form.

    Before format 2 it validated on all rows, and recorded no engine; before format 3 no training ended early or was checked.
    """
    if values["format"] < 2:
        values |= {"forced": False, "engines": []}
        for part in (values["spec"], values["identity"]):
            part["validation_rows"] = None
        values["identity"].pop("max_length", None)
    if values["format"] < 3:
        values["spec"] |= {"early_stopping": False, "check_rows": 0}
