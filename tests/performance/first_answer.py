"""Time from the start of a command to the first committed answer of the demo model, beside a plain process of mlx-vlm.

Run it by hand, at normal priority, on a machine that does nothing else: ``python -m tests.performance.first_answer [ROUNDS]
[MODEL]``, with ``model-4bit`` or ``model-bf16``. Each round starts ``rashomon --batch`` for 64 answers four times: on a machine
that has run nothing yet; on one that knows nothing of the model, neither a check nor a digest nor features of images; again, with
all of these stored; and with the stored check after the libraries' files were dropped from the page cache, as far as the system
does so. Between them, a process loads the model with mlx-vlm alone and answers the first of the prompts. It prints medians and
ranges, and their ratios to that process, and asserts nothing. A command is killed after its first answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from assets.demo.recipe import evaluate_demo_model
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding
from mlx_backends.core.transformers_names import FILE as NAMES
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.performance.measuring import count_answers, spread
from tests.performance.peers import plain_prompts
from tests.support.command import ROOT, Rashomon, kill_all
from tests.support.demo import DEMO

POLL_SECONDS = 0.005
LIMIT_SECONDS = 120
TOKENS = 24
NEW_MACHINE, FIRST_RUN, STORED, COLD, PLAIN = (
    "first run of all",
    "first run of the model",
    "stored check",
    "stored check, files not cached",
    "plain mlx-vlm",
)


class Machine:
    """A workspace with data for the demo model, and a user's private files and caches."""

    def __init__(self, home: Path, model: Path) -> None:
        self._state, self._model, self._runs = home / "state", model, 0
        self._rashomon = Rashomon(home, variables={"XDG_STATE_HOME": str(self._state)})
        self._environment = dict(self._rashomon.environment)
        del self._environment["MLX_DISABLE_COMPILE"]  # as for users
        build = evaluate_demo_model.build("cmc-bench", home / "build")
        shutil.copytree(build.path, self._rashomon.workspace / "benchmarks" / "cmc-bench")
        backend = load_backend(str(model), build.media_path)
        assert isinstance(backend, VLMBackend)
        benchmark = get_benchmark("cmc-bench")
        request = benchmark.protocol(Decoding(TOKENS)).next(next(iter(benchmark.instances(build, "paper"))), ())
        assert request is not None
        self._prompt = home / "prompt.json"
        self._prompt.write_text(json.dumps(plain_prompts(backend, [request], build.media_path)))
        backend.close()

    def forget(self, keep: str = "") -> None:
        """Forget every check, digest and feature, and all other private files but one named ``keep``."""
        shutil.rmtree(self._environment["XDG_CACHE_HOME"], ignore_errors=True)
        for file in self._state.rglob("*"):
            if file.is_file() and file.name != keep:
                file.unlink()

    def plain(self) -> float:
        """Return the wall time from the start of a plain process to its first answer."""
        command = [sys.executable, "-m", "app.doctor.plain_loop", str(self._model), str(self._prompt)]
        return self._seconds(
            command,
            ROOT,
            lambda process: process.stdout is not None and b"[" in os.read(process.stdout.fileno(), 1 << 16),
        )

    def seconds(self) -> float:
        """Return the wall time from the start of a command to its first committed answer."""
        self._runs += 1
        name = f"run-{self._runs}"
        command = self._rashomon.command("--batch", "--benchmark", "cmc-bench", "--model", self._model, "--limit", "8")
        command += ["--name", name, "--display", "none", "--max-tokens", str(TOKENS)]
        database = self._rashomon.workspace / "runs" / name / "run.sqlite"
        return self._seconds(command, self._rashomon.home, lambda process: count_answers(database) > 0)

    def _seconds(
        self, command: Sequence[str], folder: Path, has_answered: Callable[[subprocess.Popen[str]], bool]
    ) -> float:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=self._environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            while not has_answered(process):
                if process.poll() is not None or time.perf_counter() - started > LIMIT_SECONDS:
                    raise RuntimeError(process.communicate()[1])
                time.sleep(POLL_SECONDS)
            return time.perf_counter() - started
        finally:
            kill_all(process)


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
    times: dict[str, list[float]] = {NEW_MACHINE: [], FIRST_RUN: [], STORED: [], COLD: [], PLAIN: []}
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), DEMO / model)
        machine.seconds()  # warms up
        for _ in range(rounds):
            machine.forget()
            times[NEW_MACHINE].append(machine.seconds())
            machine.forget(keep=NAMES)
            times[FIRST_RUN].append(machine.seconds())
            times[PLAIN].append(machine.plain())
            times[STORED].append(machine.seconds())
            if hasattr(os, "posix_fadvise"):
                drop_cached_files(Path(sysconfig.get_path("purelib")))
                times[COLD].append(machine.seconds())
    for name, seconds in times.items():
        if seconds:
            ratios = [ours / plain for ours, plain in zip(seconds, times[PLAIN], strict=True)]
            ratio = "" if name == PLAIN else f", {spread(ratios)} times the plain process"
            print(f"{model}, {name}: {spread(seconds, ' s')}{ratio}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "model-4bit")
