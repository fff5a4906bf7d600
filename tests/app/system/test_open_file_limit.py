"""Few open files allowed: raised where the system lets us, else one sentence before anything is done."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable

import pytest

from tests.support.command import Rashomon


def allowing(soft: int, hard: int) -> Callable[[], None]:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return lower


def run(rashomon: Rashomon, soft: int, hard: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        rashomon.command(*arguments),
        env=rashomon.environment,
        cwd=rashomon.home,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=allowing(soft, hard),
    )


BATCH = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--limit", "8", "--display", "none")


@pytest.mark.parametrize("allowed", [6, 9, 20, 100])
def test_a_limit_that_cannot_be_raised_is_one_sentence_and_nothing_is_begun(rashomon: Rashomon, allowed: int) -> None:
    for command in ((*BATCH, "--name", "few"), ("judge", "few", "--judge", "strict"), ("runs",)):
        done = run(rashomon, allowed, allowed, *command)
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (rashomon.workspace / "runs" / "few").exists()


@pytest.mark.slow
def test_a_low_limit_that_can_be_raised_is(rashomon: Rashomon) -> None:
    done = run(rashomon, 16, 256, *BATCH, "--name", "low")
    assert (done.returncode, done.stderr) == (0, "")
    (listed,) = rashomon.json("runs")
    assert listed["state"] == "done"
