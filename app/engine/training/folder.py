"""Folders of trainings.

::

    training.json           the spec, and the digests of data and weights that a training must have to be resumed
    data.json               what it is trained on and was compared with
    state.json              what it does, or how it ended
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine.training.spec import TrainingSpec
from app.run_spec import parse
from app.store.locks import FileLock
from app.store.sqlite_errors import StoreFullError
from app.store.workspace import Workspace
from benchmarks.errors import SpecError, StoreError, did_you_mean
from benchmarks.untrusted.safe_files import is_disk_full, replace_file
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file

ADAPTER, BEST = "adapter", "best"

_TRAINING, _STATE, _LOCK = "training.json", "state.json", "lock"
_BUSY = ("queued", "loading", "training")
_ENDED = ("done", "stopped", "failed")
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

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def open(cls, path: Path) -> Training:
        """Open a training. Raises StoreError if the folder holds none, or a damaged one."""
        try:
            values = read_json_file(path / _TRAINING)
            spec = parse(TrainingSpec, values["spec"], str(path))
            return cls(path, spec, dict(values["identity"]), int(values["steps"]), float(values["created"]))
        except FileNotFoundError as error:
            raise StoreError(f"{path} is not a training; `rashomon trainings` lists them.") from error
        except (OSError, OutsideJSONError, SpecError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path}/{_TRAINING} is damaged; start the training again with another --name.") from error

    def lock(self) -> FileLock:
        """Return the lock that a training's worker holds."""
        return FileLock(self.path / _LOCK)

    def worker(self) -> int | None:
        """Return the process id of its worker; None if it has none."""
        match = _PID.fullmatch(self.lock().holder() or "")
        return int(match[1]) if match else None

    def note(self, state: str, note: str = "") -> None:
        """Record what the training does."""
        value = {"state": state, "note": note, "at": time.time()}
        replace_file(self.path, _STATE, json.dumps(value).encode())

    def state(self) -> tuple[str, str]:
        """Return what it does, or how it ended, and a note on that."""
        try:
            value = read_json_file(self.path / _STATE)
            state, note = str(value["state"]), str(value["note"])
        except (OSError, OutsideJSONError, KeyError, TypeError):
            return "planned", ""
        if state not in (*_BUSY, *_ENDED):  # written by something else
            return "planned", ""
        if state in _BUSY and self.worker() is None:
            if state != "training":
                return "stopped", ""  # before it had done anything
            return "interrupted", "its worker ended without a message; it resumes from the last checkpoint"
        return state, note


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
    workspace: Workspace, name: str, spec: TrainingSpec, identity: Mapping[str, Any], steps: int
) -> Training:
    """Create the folder of a training, or open the one of the same name if it is the same training.

    Raises StoreError, with the difference, if another training has the name.
    """
    path = trainings_folder(workspace) / name
    if has_training(workspace, name):
        known = Training.open(path)
        differences = [key for key in {**known.identity, **identity} if known.identity.get(key) != identity.get(key)]
        if differences:
            key = differences[0]
            raise StoreError(
                f"the training {name} differs in {key} ({known.identity.get(key)!r}, now {identity.get(key)!r}); choose another "
                "--name."
            )
        return known
    values = {"format": 1, "spec": spec.model_dump(mode="json"), "identity": dict(identity), "steps": steps}
    values["created"] = time.time()
    try:
        path.mkdir(parents=True, exist_ok=True)
        replace_file(path, _TRAINING, (json.dumps(values, indent=2, sort_keys=True) + "\n").encode())
    except OSError as error:
        kind = StoreFullError if is_disk_full(error) else StoreError
        raise kind(f"cannot write {path}: {error.strerror}; free some space or name another --workspace.") from error
    return Training.open(path)
