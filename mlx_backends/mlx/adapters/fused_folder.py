"""The folder of a fused model apart from its weights: settings, tokenizer and processor, and the record of its adapter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.training.trained_on import TrainingRecord
from benchmarks.untrusted.finder_files import folder_entries
from mlx_backends.models.adapter_folder import FUSED, Adapter, training_records
from mlx_backends.models.model_discovery import ModelInfo

_COPIED = (".json", ".jinja", ".model", ".tiktoken", ".txt")
_WRITTEN = ("config.json", "model.safetensors.index.json", FUSED)


def write_settings(source: Path, config: Mapping[str, Any], target: Path) -> None:
    """Write ``config`` to the folder ``target``, and copy the other settings of the model in ``source``."""
    for file in folder_entries(source):
        if file.suffix in _COPIED and file.name not in _WRITTEN and file.is_file():
            shutil.copyfile(file, target / file.name)
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def write_record(model: ModelInfo, adapter: Adapter, record: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Write ``record`` and what ``adapter`` and ``model`` were trained on to the folder ``target``; return both."""
    trained_on = TrainingRecord.read(training_records(model.path, str(adapter.path)))
    written = {**record, **(trained_on.to_json() if trained_on else {})}
    (target / FUSED).write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    return written
