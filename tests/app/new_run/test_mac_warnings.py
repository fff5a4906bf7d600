"""Warnings before a run on a Mac."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.new_run import mac_warnings
from mlx_backends.models.metal_working_set import GIB
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny model on a Mac where it fits, and whose image encoder is as wide as if it were no tiny one."""
    monkeypatch.setattr(mac_warnings, "load_warnings", lambda: ["low power mode is on."])
    monkeypatch.setattr("mlx_backends.models.memory_and_cache_sizes._available", lambda device: (5 * GIB // 4, "Metal"))
    folder = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"]["hidden_size"] = 2048
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("sys.platform", "darwin")
    return str(folder)


def test_a_run_on_a_small_mac_is_warned_of_large_images(model: str) -> None:
    load, images = mac_warnings.mac_warnings([(model, None), (model, None)])
    assert load == "low power mode is on."
    limit = int(images.rpartition("--max-pixels ")[2].rstrip("."))
    assert 10**5 <= limit < 4 * 10**6
    assert mac_warnings.mac_warnings([(model, limit)]) == [load]
    assert len(mac_warnings.mac_warnings([(model, limit + 1)])) == 2


def test_a_run_of_no_model_of_this_machine_is_not_warned(model: str) -> None:
    assert mac_warnings.mac_warnings([("policy:random", None), ("openai:gpt", None)]) == []
    assert mac_warnings.mac_warnings([("no/such-model", None)]) == ["low power mode is on."], "it is refused elsewhere"


def test_elsewhere_nobody_is_warned(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert mac_warnings.mac_warnings([(model, None)]) == []
