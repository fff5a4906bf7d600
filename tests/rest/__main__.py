"""`python -m tests.rest`: the slow tests, whole or one part, with each that fails run again alone.

A test that passes alone is printed as flaky; one that fails again makes this fail.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.rest.parts import file_of, record_seconds

ROOT = Path(__file__).resolve().parents[2]
PART_SECONDS = 12 * 60.0
ALONE_SECONDS = 15 * 60.0
"""Seconds after which a test that is run again has failed."""
MOST_AGAIN = 10
"""The number of failures above which no test is run again: then something is broken."""
_PYTEST = [sys.executable, "-m", "pytest", "-o", "faulthandler_timeout=600"]


def main() -> int:
    """Run the tests; return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.rest", description=__doc__)
    parser.add_argument("turn", type=int, nargs="?", help="one part, counted round; every test if left out")
    parser.add_argument("--record", action="store_true", help="write the seconds that the files took to seconds.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return _run(options.turn, Path(folder) / "outcome.json", options.record)


def _run(turn: int | None, file: Path, record: bool) -> int:
    begin = time.time()
    command = [*_PYTEST, "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "tests.rest.plugin"]
    command += ["-m", "slow", "--durations", "10", "--outcome", str(file)]
    if turn is not None:
        command += ["--turn", str(turn), "--until", str(begin + PART_SECONDS)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code not in (0, 1) or not file.exists():
        print(f"the tests could not be run to their end: pytest's exit code is {code}")
        return 1
    outcome = json.loads(file.read_text("utf-8"))
    failed = outcome["failed"]
    again = failed if len(failed) > MOST_AGAIN else [test for test in failed if not _passes_alone(test)]
    if record:
        record_seconds(outcome["seconds"], _files_with_slow_tests())
    _print_tests("not reached; run them, then `make test-rest RECORD=--record` splits the part", outcome["not_reached"])
    _print_tests("flaky: failed, but passed alone; repair them next", sorted(set(failed) - set(again)))
    _print_tests("failed", again)
    print(f"{time.time() - begin:.0f} seconds")
    return 1 if again else 0


def _passes_alone(test: str) -> bool:
    print(f"\nagain, alone: {test}", flush=True)
    process = subprocess.Popen([*_PYTEST, test], cwd=ROOT, start_new_session=True)
    try:
        return process.wait(ALONE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def _files_with_slow_tests() -> set[str]:
    command = [*_PYTEST, "--collect-only", "-q", "-m", "slow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {file_of(line).partition(": ")[0] for line in done.stdout.splitlines() if line.startswith("tests/")}


def _print_tests(heading: str, tests: list[str]) -> None:
    if tests:
        print(f"\n{heading}:")
        for test in tests:
            print(f"  {test}")


if __name__ == "__main__":
    sys.exit(main())
