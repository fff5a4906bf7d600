"""Stored checks: results of batch-invariance and sight checks, in a private file of the user's on this machine.

A check holds as long as nothing changes that its result depends on. This is its key: the model's weights, the engine with its
libraries and this package's own code, the machine and device, the environment variables of the libraries, and the conditions
that the check names itself, such as the width of its batches and the kinds of its requests. A run confirms a stored check on a
request or two, so the file is a shortcut and no authority: what is missing, damaged or of another machine is checked again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.errors import StoreError
from benchmarks.untrusted import private_state
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.vocabulary import canonical_json, digest
from mlx_backends.models.host_machine import host_info

CHECKS_FILE = "checks.json"

_FORMAT = 1
_MAX_CHECKS = 200
_IDENTITY = ("engine", "weights", "adapter", "quantisation", "device", "versions")
_VARIABLES = ("MLX_", "PYTORCH_", "TORCH_", "CUDA_", "CUBLAS_", "NVIDIA_")
"""Prefixes of the environment variables that can change what the libraries compute."""

_log = logging.getLogger("rashomon.checks")


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """The result of a check.

    Attributes:
        check: The kind of check: "batches" or "sight".
        model: The model's name, for display.
        depends_on: All that the result depends on; its digest is the check's key.
        at: The time of the check, in seconds since 1970.
        result: The check's own result and evidence.
    """

    check: str
    model: str
    depends_on: Mapping[str, Any]
    at: float
    result: Mapping[str, Any]

    @property
    def key(self) -> str:
        return digest([self.check, self.depends_on])

    @property
    def is_of_this_machine(self) -> bool:
        return self.depends_on.get("machine") == asdict(host_info())


class StoredChecks:
    """The stored checks of one model under one engine, from :class:`EngineInfo` as a mapping.

    Nothing is found or saved for an engine without a digest of its weights. A file that cannot be read or written costs a
    repeated check: a warning is logged, and the run continues.
    """

    def __init__(self, info: Mapping[str, Any]) -> None:
        self._model = str(info["model"])
        self._has_weights = info["weights"] is not None
        self._engine = {name: info[name] for name in _IDENTITY if info.get(name) is not None}

    def has(self, check: str) -> bool:
        """Return whether there is a check of a kind of this model and engine, under whatever conditions."""
        engine = json.loads(canonical_json(self._engine)).items()
        return any(stored.check == check and engine <= stored.depends_on.items() for stored in read_checks())

    def find(self, check: str, conditions: Mapping[str, Any]) -> StoredCheck | None:
        """Return the newest check of a kind under exactly these conditions; None if there is none."""
        if not self._has_weights:
            return None
        key = self._new(check, conditions, {}).key
        return next((stored for stored in read_checks() if stored.key == key), None)

    def save(self, check: str, conditions: Mapping[str, Any], result: Mapping[str, Any]) -> StoredCheck | None:
        """Store a result in place of an earlier one under the same conditions; return it, or None if it cannot be stored."""
        if not self._has_weights:
            return None
        new = self._new(check, conditions, result)
        try:
            with private_state.lock():
                others = [stored for stored in read_checks() if stored.key != new.key]
                checks = [asdict(stored) for stored in (new, *others)][:_MAX_CHECKS]
                private_state.write(CHECKS_FILE, json.dumps({"format": _FORMAT, "checks": checks}))
        except StoreError as error:
            _log.warning("the check cannot be stored, so the next run repeats it: %s", error)
            return None
        return new

    def _new(self, check: str, conditions: Mapping[str, Any], result: Mapping[str, Any]) -> StoredCheck:
        depends_on = {
            **self._engine,
            **circumstances(),
            **conditions,
        }
        plain: dict[str, Any] = json.loads(canonical_json(depends_on))
        return StoredCheck(check, self._model, plain, time.time(), result)


def checks_path() -> Path:
    """Return the file of the stored checks, whether it exists or not."""
    return private_state.state_folder() / CHECKS_FILE


def read_checks() -> list[StoredCheck]:
    """Return all stored checks, the newest first, without damaged ones."""
    try:
        text = private_state.read(CHECKS_FILE)
        content = None if text is None else parse_json(text)
    except (StoreError, OutsideJSONError) as error:
        _log.warning("the stored checks are ignored: %s", error)
        return []
    match content:
        case {"format": int(version), "checks": [*rows]} if version == _FORMAT:
            checks = [stored for row in rows if (stored := _parse(row)) is not None]
            return sorted(checks, key=lambda stored: -stored.at)
    return []


def forget_checks() -> int:
    """Forget all stored checks; return how many there were. Raises StoreError."""
    with private_state.lock():
        count = len(read_checks())
        private_state.remove(CHECKS_FILE)
    return count


def report_unconfirmed(stored: StoredCheck) -> None:
    """Log that a stored check is damaged or does not hold any more."""
    day = time.strftime("%Y-%m-%d", time.localtime(stored.at))
    _log.warning("the stored check %s of %s could not be confirmed and is repeated", stored.key[:12], day)


def is_measure(value: Any) -> bool:
    """Return whether a value of a result is a finite number that is not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _parse(row: Any) -> StoredCheck | None:
    match row:
        case {
            "check": str(check),
            "model": str(model),
            "depends_on": dict(depends_on),
            "at": at,
            "result": dict(result),
        }:
            try:
                stored = StoredCheck(check, model, depends_on, at, result)
                return stored if is_measure(at) and at <= time.time() and stored.key else None
            except (ValueError, RecursionError):
                return None
    return None


def circumstances() -> dict[str, Any]:
    """Return what answers depend on besides their model and request: this package's code, the machine and the environment."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    return {"code": code_digest(), "machine": asdict(host_info()), "environment": variables}


@cache
def code_digest(package: Path = Path(__file__).parent) -> str:
    """Return the sha256 over a package's source files, by default this one's: its batches, caches and patches decide answers."""
    combined = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        combined.update(f"{path.relative_to(package)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return combined.hexdigest()
