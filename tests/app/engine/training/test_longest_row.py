"""Sizes of a training before it starts: which rows are measured, and the room on disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.engine.training import longest_row as module
from app.engine.training import training_plan
from app.engine.training.longest_row import longest_row
from app.engine.training.training_spec_and_recipes import training_spec
from app.store.workspace import Workspace
from benchmarks.errors import StoreFullError
from benchmarks.training.training_set import ChatRow, TrainingSet
from mlx_backends.models.training_memory import RowTokens, TrainingMemory
from tests.support.demo import FOUR_BIT


def write_rows(folder: Path, sizes: Sequence[tuple[int, int]], **options: Any) -> TrainingSet:
    lines = []
    for number, size in enumerate(sizes):
        Image.new("RGB", size, (number % 256, 9, 9)).save(folder / f"{number}.jpg", "JPEG", **options)
        turns = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": f"Number {number}."}]
        lines.append(json.dumps({"images": [f"{number}.jpg"], "messages": turns}))
    (folder / "train.jsonl").write_text("\n".join(lines))
    return TrainingSet.open(folder)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[ChatRow]:
    """The rows that are measured, in place of their model's processor."""
    seen: list[ChatRow] = []

    def sizes(model: Path, rows: Sequence[ChatRow], **_: Any) -> list[RowTokens]:
        seen.extend(rows)
        return [RowTokens(100 + len(row.target), 50, len(row.target)) for row in rows]

    monkeypatch.setattr(module, "row_sizes", sizes)
    return seen


def longest(rows: TrainingSet, **options: Any) -> RowTokens:
    values: dict[str, Any] = {"max_length": 4096, "max_pixels": None, "pairs": False, **options}
    return longest_row(Path("model"), list(rows.rows("train")), **values)


def test_the_largest_and_every_shape_are_measured(tmp_path: Path, measured: list[ChatRow]) -> None:
    sizes = [(60 + n, 60 + n) for n in range(40)]
    rows = write_rows(tmp_path, [(20, 5), (21, 21), (5, 20), *sizes, (40, 12)])
    assert longest(rows) == RowTokens(100 + len("Number 42."), 50, len("Number 42."))
    names = {row.images[0].stem for row in measured}
    assert {"0", "2", "42", "43"} <= names, "the widest, the tallest, the largest, and one between"
    assert "1" not in names, "smaller than others of its shape"
    assert len(measured) == len(names) < 40


def test_a_row_that_is_too_long_to_be_trained_on_does_not_count(tmp_path: Path, measured: list[ChatRow]) -> None:
    rows = write_rows(tmp_path, [(20, 20)] * 2)
    assert longest(rows, max_length=40) == RowTokens(40, 40, len("Number 1."))


def test_the_size_of_a_jpeg_is_read_behind_a_long_header(tmp_path: Path) -> None:
    write_rows(tmp_path, [(3000, 2000)], exif=b"Exif\0\0" + bytes(65_000), icc_profile=bytes(100_000))
    assert module.image_file_size(tmp_path / "0.jpg", None) == (3000, 2000)
    assert module.image_file_size(tmp_path / "0.jpg", 1_500_000) == (1500, 1000)
    (tmp_path / "0.jpg").write_bytes(b"no image")
    assert module.image_file_size(tmp_path / "0.jpg", None) == (1024, 1024)


def test_room_for_checkpoints_and_adapters_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 320 million numbers, as of a rank of 128 on a model of 7 billion
    memory = TrainingMemory(0, 320_000_000 * 4 * 6, 0, 0, 0)
    assert memory.disk == 320_000_000 * 4 * 8
    write_rows(tmp_path, [(96, 96)] * 3)
    workspace = Workspace(tmp_path / "home")
    spec = training_spec({"model": str(FOUR_BIT), "data": str(tmp_path), "name": "t"})
    monkeypatch.setattr(training_plan, "longest_row", lambda *_, **__: RowTokens(100, 50, 10))
    need = training_plan.plan_training(workspace, spec, force=False).memory.disk
    monkeypatch.setattr(training_plan, "free_space", lambda folder: need - 1)
    with pytest.raises(StoreFullError):
        training_plan.plan_training(workspace, spec, force=False)
    training_plan.plan_training(workspace, spec, force=True)
    (workspace.path / "trainings" / "t").mkdir(parents=True)
    (workspace.path / "trainings" / "t" / "checkpoint.safetensors").write_bytes(b"1")
    training_plan.plan_training(workspace, spec, force=False)
