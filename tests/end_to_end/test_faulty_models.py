"""Runs of model folders whose files cannot work together end with one sentence and the documented exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.tiny_qwen3 import build_tiny_vlm

TEXTS = ["How many apples were sold?", "According to the source, the value is 12."]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("faulty-models")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    settings = json.loads(file.read_text("utf-8"))
    change(settings)
    file.write_text(json.dumps(settings), "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"patch_size": 14}, {"merge_size": 1}])
def test_pictures_that_cannot_be_processed_end_the_run_with_the_files_named(
    home: Path, tmp_path: Path, setting: dict[str, int]
) -> None:
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    edit(model / "preprocessor_config.json", lambda settings: settings.update(setting))
    rashomon, name = Rashomon(home), next(iter(setting))
    arguments = (
        "--batch",
        "--model",
        model,
        "--benchmark",
        "cmc-bench",
        "--max-tokens",
        "4",
        "--display",
        "none",
        "--limit",
        "2",
    )
    ended = rashomon.run(*arguments, "--name", name, code=3)
    assert "preprocessor_config.json" in ended.stderr
    assert "worker.log" not in ended.stderr
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        assert sum(condition.done for condition in store.progress()) == 0, (
            "the answers of a refused model are not stored"
        )
    assert "--force" not in rashomon.run("show", name).stdout.partition("sight check failed")[2]
    rashomon.run(*arguments, "--name", f"{name}-forced", "--force", code=1)
    assert "because of --force" in rashomon.run("show", f"{name}-forced").stdout
