"""Start-up time of the command line, next to that of a bare interpreter.

Run it by hand: ``python -m tests.performance.start_up [RUNS]``. It prints the median of some starts, after one to warm up, of
``rashomon --help`` and of ``rashomon runs --json`` in a workspace with so many runs, and asserts nothing.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.store.run_store import RunStore
from tests.app.store.test_run_store import META
from tests.support.command import Rashomon
from tests.support.toy import toy_instances

STARTS = 15


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """The median wall time of a command."""
    times = []
    for _ in range(STARTS + 1):
        began = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        rashomon = Rashomon(Path(home))
        environment = {key: value for key, value in rashomon.environment.items() if not key.startswith("PYTHON")}
        for number in range(runs):
            folder = rashomon.workspace / "runs" / f"run-{number}"
            folder.mkdir(parents=True)
            RunStore.create(folder, META, toy_instances(20)).close()
        script = str(Path(sys.executable).with_name("rashomon"))
        bare = seconds([sys.executable, "-c", "pass"], environment)
        for arguments in (["--help"], ["runs", "--json"]):
            took = seconds([script, *arguments], environment)
            print(
                f"rashomon {' '.join(arguments)}: {took:.3f} s, {took / bare:.1f} times a bare interpreter ({bare:.3f} s)"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
