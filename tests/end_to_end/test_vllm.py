"""The demo model behind a real vLLM server, which is killed in between: the answers of the direct backend.

``RASHOMON_VLLM`` is the path of the command ``vllm``, if that is in an environment of its own.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.app.commands.running.test_batch_command import wait_until
from tests.end_to_end.test_cluster import OPTIONS, more_than, parity_report
from tests.support.command import ROOT, Rashomon
from tests.support.demo import BF16
from tests.support.fp32 import in_fp32
from tests.support.served import VLLM, kill_group, served_by_vllm, vllm_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        vllm_command() is None, reason=f"vLLM is not installed here, and {VLLM} does not name its command"
    ),
]

EXAMPLES = ("--limit", "6")
ANSWERS = 48


def test_vllm_answers_as_the_direct_backend_does_although_it_is_killed(tmp_path: Path) -> None:
    """Greedy, in fp32, four calls at a time; requests that the dead server fails are asked again."""
    rashomon = Rashomon(tmp_path)
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    build_folder = rashomon.workspace / "benchmarks" / "cmc-bench"
    get_benchmark("cmc-bench").build([("rows", source)], build_folder, BuildOptions())
    model = tmp_path / "fp32"
    shutil.copytree(BF16, model)
    in_fp32(model)
    rashomon.run("--batch", *OPTIONS, "--model", model, *EXAMPLES, "--name", "direct", "--exact")
    log = tmp_path / "server.log"
    with served_by_vllm(model, log) as (port, server):
        name = f"endpoint:{model}@http://127.0.0.1:{port}/v1"
        options = ("--model", name, *EXAMPLES, "--name", "served", "--concurrency", "4", "--attempts", "2")
        process = rashomon.held(pace=(0.01, 0.1)).start("--batch", *OPTIONS, *options)
        wait_until(partial(more_than, rashomon, "served", 3))
        kill_group(server)
        rashomon.go_on()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1, err
    (run,) = (run for run in rashomon.json("runs") if run["name"] == "served")
    print({key: run[key] for key in ("done", "total", "failures") if key in run})
    with served_by_vllm(model, log, port):
        rashomon.run("resume", "served", "--retry-errors", "--display", "none")
        report = parity_report(rashomon, "direct", "served", "--probe", "4")
    print(report["answers"])
    assert report["answers"]["shared"] == ANSWERS
    assert report["answers"]["texts"] == ANSWERS, report["answers"]["differing"]
    stages = {stage["stage"]: stage for stage in report["stages"]}
    assert stages["asked"]["status"] == stages["judge"]["status"] == "same"
    assert f"{ANSWERS} of {ANSWERS} prompt lengths are the same" in stages["tokens"]["summary"]
