"""The report on a machine: what it holds, and that it names nobody."""

from __future__ import annotations

import platform
import socket
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from app.doctor import CheckResult, machine_report
from app.doctor.measuring_process import child_json
from app.doctor.report_digests import TITLE
from app.store.run_summary import RunSummary
from app.store.store_types import ConditionProgress
from app.store.workspace import Workspace
from app.system.mac_state import Panic
from benchmarks.errors import SpecError, StoreError
from tests.support.command import Rashomon

USER, HOST, RUN, KEY = "quillon", "quillons-macbook", "secret-study", "sk-hush-7f3a"
MEASURED: dict[str, Any] = {
    "device": "Device(gpu, 0)",
    "facts": {"device_name": "Apple M4", "max_recommended_working_set_size": 12713115648},
    "fp32": 5e-4,
    "load_s": 0.2,
    "speed": [{"prompt_tokens": 66, "prefill": 4000.0, "decode": None, "peak_memory": 2**24}],
    "images": "it failed",
    "sight": {"requests": 2, "images": 3, "repeated": 0.0, "changed": 6.2, "problem": ""},
    "batches": {"way": "in batches", "noise": 1e-3, "tokens": 13, "failed": {"a way": "a reason"}},
}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace of somebody whose names and keys are known, on a Mac."""
    home = tmp_path / USER
    workspace = Workspace(home / "Study of Patients")
    (workspace.runs_folder / RUN).mkdir(parents=True)
    monkeypatch.setattr(Workspace, "run_names", lambda self: [RUN])
    progress = (ConditionProgress("agree", 20, 20, 1, 0, 200, 30.0, 3 * 2**30, {}),)
    models = (f"/Users/{USER}/my-model", "mlx-community/Qwen3-VL-4B-Instruct-4bit")
    runs = [RunSummary(RUN, "complete", {"model": model}, progress) for model in models]
    monkeypatch.setattr(Workspace, "summaries", lambda self: runs)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", USER)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.local")
    monkeypatch.setattr(machine_report, "recent_panics", lambda: [Panic(f"Kernel_{HOST}.panic", date(2026, 11, 2))])
    monkeypatch.setattr(machine_report, "load_state", lambda: (["1.2 GB of memory is swapped to disk."], ""))
    return workspace


def test_it_holds_what_a_reader_needs(hostile: Workspace) -> None:
    text = machine_report.report(
        hostile, [CheckResult("machine", True, "macOS 26.1 arm64"), CheckResult("data", False, "x")], MEASURED
    )
    assert text.startswith(TITLE)
    for part in ("mlx: ", "machine: ok, macOS 26.1 arm64", "data: FAIL\n", "2026-11-02 (1)", "1.2 GB", "12713115648"):
        assert part in text
    for part in ("as in TF32", "prefill 4000 tokens/s, decode unknown", "image preparation: it failed", "a reason"):
        assert part in text


def test_runs_of_published_models_are_reported_without_their_names(hostile: Workspace) -> None:
    text = machine_report.report(hostile, [], "none")
    assert "Qwen3-VL-4B-Instruct-4bit: 20 answers, 1 error, 1.50 s and 10 tokens an answer, peak 3.22 GB" in text
    assert "my-model" not in text


def test_it_names_nobody(hostile: Workspace) -> None:
    personal = (
        f"{hostile.path}/x.db of {USER}@{HOST}.local ({HOST.upper()}): {RUN}, {KEY}, /Users/{USER}/Desktop/x /home/x"
    )
    results = [CheckResult(check, True, personal, personal) for check in ("machine", "packages", "workspace", "keys")]
    for measured in (
        personal,
        {**MEASURED, "images": personal, "sight": personal, "device": personal, "facts": {"x": personal}},
    ):
        text = machine_report.report(hostile, results, measured)
        for secret in (USER, HOST, RUN, KEY, "Study of Patients", str(hostile.path.parent), "Desktop", "/home/x"):
            assert secret.casefold() not in text.casefold(), secret
        assert "\x1b" not in text


def test_control_characters_do_not_reach_a_terminal(hostile: Workspace) -> None:
    assert "\x1b" not in machine_report.report(hostile, [CheckResult("machine", True, "\x1b[2J")], "none: \x1b]0;x\x07")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import time; time.sleep(60)", "none: not done in 1 s"),
        ("import os, sys; sys.stderr.write('Insufficient Memory'); os.abort()", "ended with -6: Insufficient Memory"),
        ("print('[]')", "ended with 0: no message"),
    ],
)
def test_a_machine_that_cannot_be_measured_has_a_report_all_the_same(
    script: str, reason: str, hostile: Workspace
) -> None:
    measured = child_json(["-c", script], 1 if "sleep" in script else 60)
    assert isinstance(measured, str)
    assert reason in measured
    assert reason.removeprefix("none: ") in machine_report.report(hostile, [], measured)


def test_only_a_report_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    workspace = Workspace(tmp_path / "workspace")
    machine_report.write_report(file, machine_report.report(workspace, [], "none"))
    machine_report.write_report(file, machine_report.report(workspace, [CheckResult("demo", True, "")], "none"))
    assert "demo: ok" in file.read_text()
    assert not workspace.path.exists()
    file.write_text("a thesis")
    with pytest.raises(SpecError):
        machine_report.write_report(file, "none")
    assert file.read_text() == "a thesis"
    with pytest.raises(StoreError):
        machine_report.write_report(tmp_path / "missing" / "r.txt", "none")


def test_a_report_is_on_the_machine_and_not_on_a_run(tmp_path: Path) -> None:
    assert "report" in Rashomon(tmp_path).run("doctor", "run", "--report", tmp_path / "r.txt", code=2).stderr


@pytest.mark.slow
def test_the_demos_model_is_measured(tmp_path: Path) -> None:
    from app.doctor.measure_machine import measure

    measured = measure(tmp_path)
    assert measured["fp32"] < 1e-5
    assert [row["prompt_tokens"] for row in measured["speed"]] == sorted(
        row["prompt_tokens"] for row in measured["speed"]
    )
    assert len(measured["images"]) == 3
    assert measured["sight"]["problem"] == ""
    assert measured["batches"]["failed"] == {}


def test_a_stranger_can_read_it_and_learns_no_provider(hostile: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "release", lambda: "6.8.0-1015-aws-quillon")
    text = machine_report.report(
        hostile, [CheckResult("models", True, "x", "y"), CheckResult("data", True, "x")], MEASURED
    )
    assert "system: Linux 6.8.0, " in text
    assert "aws" not in text
    assert "models: ok, with advice\ndata: ok\n" in text
    assert "MiB" not in text
    assert "another image changes a logprob by 6.2 nats or more, a repetition by 0 or less" in text
    assert " GB" in text.partition("prefill 4000")[2].splitlines()[0]
