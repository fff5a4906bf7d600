"""Record of a training's data in its folder, which goes with its adapters: what it was trained on and compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import NoAccessError, StoreError
from benchmarks.training.trained_on import TrainingRecord
from benchmarks.training.training_set import TrainingSet
from benchmarks.untrusted.safe_files import replace_file
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file

_FILE = "data.json"


def data_record(training_set: TrainingSet, tests: list[str]) -> dict[str, Any]:
    """Return the record of a training set that was compared with the builds with these digests. Raises SourceError."""
    return {**TrainingRecord.of(training_set).to_json(), "compared with": tests}


def write_data_record(training: Path, record: Mapping[str, Any]) -> None:
    """Write the record to a training's folder. Raises StoreError."""
    try:
        replace_file(training, _FILE, json.dumps(record).encode("utf-8"))
    except OSError as error:
        raise NoAccessError(f"cannot write {training / _FILE}: {error.strerror}; free some space.") from error


def read_data_record(training: Path) -> dict[str, Any]:
    """Return the record in a training's folder; empty where none was written. Raises StoreError if it is damaged."""
    try:
        record = read_json_file(training / _FILE)
    except FileNotFoundError:
        return {}
    except (OSError, OutsideJSONError) as error:
        raise StoreError(f"{training / _FILE} is damaged; start the training again with another --name.") from error
    return record if isinstance(record, dict) else {}
