"""Time from the start of a command to the first committed answer of the demo model.

Run it by hand: ``python -m tests.performance.first_answer [ROUNDS] [MODEL]``, with ``model-4bit`` or ``model-bf16``. Each round
starts ``rashomon --batch`` for 64 answers three times: on a machine that has not checked the model yet; again, with the
stored check; and with the stored check after the libraries' files were dropped from the page cache, as far as the system
does so. It prints medians and ranges, and asserts nothing. A command is killed after its first answer.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import closing
from pathlib import Path

from assets.demo.recipe import evaluate
from tests.support.command import Rashomon, kill_all
from tests.support.demo import DEMO

POLL_SECONDS = 0.005
LIMIT_SECONDS = 120


class Machine:
    """A workspace with data for the demo model, and a user's private files."""

    def __init__(self, home: Path, model: Path) -> None:
        self._state = home / "state"
        self._model = model
        self._runs = 0
        self._rashomon = Rashomon(home, variables={"XDG_STATE_HOME": str(self._state)})
        self._environment = dict(self._rashomon.environment)
        del self._environment["MLX_DISABLE_COMPILE"]  # as for users
        build = evaluate.build("cmc-bench", home / "build")
        shutil.copytree(build.path, self._rashomon.workspace / "benchmarks" / "cmc-bench")

    def forget(self) -> None:
        """Forget every check."""
        shutil.rmtree(self._state, ignore_errors=True)

    def seconds(self) -> float:
        """Return the wall time from the start of a command to its first committed answer."""
        self._runs += 1
        name = f"run-{self._runs}"
        command = self._rashomon.command("--batch", "--benchmark", "cmc-bench", "--model", self._model, "--limit", "8")
        command += ["--name", name, "--display", "none", "--max-tokens", "24"]
        database = self._rashomon.workspace / "runs" / name / "run.sqlite"
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=self._environment,
            cwd=self._rashomon.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            while not _answered(database):
                if process.poll() is not None or time.perf_counter() - started > LIMIT_SECONDS:
                    raise RuntimeError(process.communicate()[1])
                time.sleep(POLL_SECONDS)
            return time.perf_counter() - started
        finally:
            kill_all(process)


def _answered(database: Path) -> bool:
    if not database.exists():
        return False
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT count(*) FROM generation").fetchone()[0])
    except sqlite3.Error:
        return False


def drop_cached_files(folder: Path) -> None:
    """Have the system drop the files of ``folder`` from its page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def main(rounds: int, model: str) -> None:
    times: dict[str, list[float]] = {"no stored check": [], "stored check": [], "stored check, files not cached": []}
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), DEMO / model)
        machine.seconds()  # warms up
        for _ in range(rounds):
            machine.forget()
            times["no stored check"].append(machine.seconds())
            times["stored check"].append(machine.seconds())
            if hasattr(os, "posix_fadvise"):
                drop_cached_files(Path(sysconfig.get_path("purelib")))
                times["stored check, files not cached"].append(machine.seconds())
    for name, seconds in times.items():
        if seconds:
            print(f"{model}, {name}: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "model-4bit")
