"""Checkpoints that were changed by hand: refused, before anything of them is used."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import mlx.core as mx
import pytest

from app.engine.training.training_log import LogWriter
from benchmarks.errors import StoreError
from mlx_backends.mlx.training.training_checkpoint import CHECKPOINT, Progress, load_checkpoint, save_adapter
from mlx_backends.mlx.training.training_divergence import LossTrend


class Empty:
    """A model and an optimiser without a parameter."""

    _vlm_adapter_config: ClassVar[dict[str, int]] = {"rank": 4}
    state: Any = None

    def trainable_parameters(self) -> dict[str, Any]:
        return {}

    def load_weights(self, weights: list[Any], strict: bool) -> None:
        assert weights == []


def save(folder: Path, progress: object) -> None:
    mx.save_safetensors(str(folder / CHECKPOINT), {"optimiser.step": mx.array(1)}, {"progress": json.dumps(progress)})


def test_progress_is_restored(tmp_path: Path) -> None:
    for progress in (
        Progress(3, 0.5, 7, True, LossTrend(1.0, 0.5, 3, 0.5, 2.0, 0.25)),
        Progress(3, None, 7, base=2.0, base_answers=1.0, reference=1.5, stale=2, trials=(0.5, None)),
    ):
        save(tmp_path, asdict(progress))
        assert load_checkpoint(tmp_path, Empty(), Empty()) == progress


def test_progress_of_an_earlier_version_is_restored(tmp_path: Path) -> None:
    save(tmp_path, {"step": 3, "best": 0.5, "log_bytes": 7})
    assert load_checkpoint(tmp_path, Empty(), Empty()) == Progress(3, 0.5, 7)


@pytest.mark.parametrize(
    "progress",
    [
        {"step": "3"},
        {"step": -1},
        {"step": True},
        {"log_bytes": 1.5},
        {"log_bytes": -1},
        {"best": "low"},
        {"best": float("nan")},
        {"more": 1},
        {"stale": -1},
        {"stale": True},
        {"base": "low"},
        {"reference": float("inf")},
        {"trials": 1},
        {"trials": ["low"]},
        {"trials": [float("nan")]},
        {"trend": 1},
        {"trend": {"level": "low"}},
        {"trend": {"level": float("nan")}},
        {"trend": {"level": 1.0, "count": -1}},
        [],
        None,
    ],
)
def test_progress_of_no_training_is_refused(tmp_path: Path, progress: object) -> None:
    save(tmp_path, progress)
    with pytest.raises(StoreError):
        load_checkpoint(tmp_path, Empty(), Empty())


def test_log_is_never_made_longer(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"{}\n{}\n")
    LogWriter(tmp_path, 1 << 40)
    assert (tmp_path / "log.jsonl").read_bytes() == b"{}\n{}\n"
    LogWriter(tmp_path, 3)
    assert (tmp_path / "log.jsonl").read_bytes() == b"{}\n"


def test_adapter_is_not_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "adapter_config.json").write_text("mine")
    training = tmp_path / "training"
    training.mkdir()
    (training / "adapter").symlink_to(outside)
    with pytest.raises(StoreError):
        save_adapter(training / "adapter", Empty(), {}, 1)
    assert [file.read_text() for file in outside.iterdir()] == ["mine"]
    (training / "adapter").unlink()
    save_adapter(training / "adapter", Empty(), {}, 1)
    assert (training / "adapter" / "adapters.safetensors").is_file()
