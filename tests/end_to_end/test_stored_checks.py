"""Runs that rest on a stored check: answers as with a fresh one and with ``--exact``; it can be seen and forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.fp32 import in_fp32
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.slow
@pytest.mark.usefixtures("own_state")
def test_runs_with_and_without_a_stored_check_give_equal_answers(rashomon: Rashomon, tmp_path: Path) -> None:
    rashomon = rashomon.ordered(mode="batched")
    model = in_fp32(build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False))
    data = ("--benchmark", "cmc-bench", "--limit", "3", "--max-pixels", "10000")
    options = ("--batch", "--model", str(model), *data, "--max-tokens", "4", "--temperature", "0", "--display", "none")
    samples = {}
    for name, more in (("fresh", ()), ("stored", ("--fresh",)), ("exact", ("--exact", "--fresh"))):
        rashomon.run(*options, *more, "--name", name)
        rashomon.run("export", name, "--canonical", "--format", "json", "--out", tmp_path / name)
        samples[name] = (tmp_path / name / "samples.jsonl").read_text("utf-8")
    assert samples["fresh"] == samples["stored"] == samples["exact"]

    fresh, stored = (batch_check(rashomon, name) for name in ("fresh", "stored"))
    assert (fresh["confirmed"], stored["confirmed"] > 0) == (0, True)
    evidence = ("way", "key", "checked_at", "noise", "cases", "tokens", "failed")
    assert [fresh[name] for name in evidence] == [stored[name] for name in evidence]
    key = fresh["key"][:12]
    assert f"stored check {key} of " in rashomon.run("show", "stored").stdout
    assert f"stored check {key} of " in rashomon.run("show", "stored", "--spec").stdout
    assert "family 'qwen3_vl': proven" in rashomon.run("show", "stored").stdout
    assert "confirmed by this run" not in rashomon.run("show", "fresh").stdout

    (listed,) = (check for check in rashomon.json("doctor") if check["check"] == "checks")
    assert listed["ok"]
    assert model.name in listed["message"]
    assert "forgot 2 stored checks" in rashomon.run("doctor", "--forget-checks").stderr
    rashomon.run(*options, "--fresh", "--name", "again")
    again = batch_check(rashomon, "again")
    assert (again["confirmed"], again["checked_at"] > fresh["checked_at"]) == (0, True)


def batch_check(rashomon: Rashomon, run: str) -> dict[str, Any]:
    with RunStore.read(rashomon.workspace / "runs" / run) as store:
        (check,) = store.meta("canary")
    return dict(check)


@pytest.mark.parametrize("value", ['"today"', "-1", "1e300", "[]"])
def test_received_run_with_a_time_that_is_none_is_damaged(value: str, rashomon: Rashomon) -> None:
    from app.store.integrity.stored_meta import meta_value

    with pytest.raises(ValueError, match=r"time|checked_at"):
        meta_value("canary", f'[{{"way": "in batches", "key": "k", "checked_at": {value}}}]')
