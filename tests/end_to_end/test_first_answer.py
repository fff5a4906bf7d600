"""The first answers of a run, which are the evidence of the batch-invariance check, and do not wait for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


@pytest.mark.slow
@pytest.mark.parametrize(("exact", "before"), [((), 6), (("--exact",), None)])
def test_the_answers_that_the_check_compares_are_committed_before_it(
    exact: tuple[str, ...], before: int | None, rashomon: Rashomon, tmp_path: Path
) -> None:
    rashomon = rashomon.ordered(mode="batched")
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    options = ("--benchmark", "cmc-bench", "--model", model, "--limit", "3", "--max-tokens", "2")
    rashomon.run("batch", *options, *exact, "--name", "run", "--display", "none")
    folder = rashomon.workspace / "runs" / "run"
    with RunStore.read(folder) as store:
        checked = [check["at"] for check in store.meta("canary", [])]
    with closing(sqlite3.connect(folder / "run.sqlite")) as database:
        finished = [at for (at,) in database.execute("SELECT finished_at FROM generation WHERE accepted")]
    assert len(finished) == 24
    assert [sum(at < check for at in finished) for check in checked] == ([] if before is None else [before])
