"""A model's first run on a machine beside a plain loop over mlx-vlm, as whole processes of few prompts.

Run it by hand, on a machine that does nothing else: ``python -m tests.performance.first_run [ROUNDS] [PROMPTS ...]``, by default
five rounds of 8, 24, 48 and 96 prompts of CMC-Bench and of CLASH. Model, images, caches and answers are those of
``whole_process.py``. In each round the machine has run another model, and knows nothing of this one: neither a check nor a digest
nor features of images. The loop and the run come first in turn. Printed are medians and ranges of seconds from a process's start
to its end, of processor seconds, and of their ratios.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.build import Build
from mlx_backends.core.transformers_names import FILE as NAMES
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vision.feature_folder import LIMIT as FEATURES_LIMIT
from mlx_backends.mlx.vlm_backend import QUEUE_FACTOR, VLMBackend
from tests.performance.measuring import process_output, rotated, spread, timed, whole_numbers
from tests.performance.peers import plain_prompts
from tests.performance.whole_process import BENCHMARKS, CACHED_PROMPTS, WIDTH, Questions, answered, batch, build_model
from tests.support.command import Rashomon

LOOP, RUN = "plain loop", "Rashomon"


class FirstRuns:
    """The prompts of a run, answered by the loop and by the first run of a model on a machine."""

    def __init__(self, model: Path, backend: VLMBackend, questions: Questions, names: Path) -> None:
        self._model, self._questions, self._names = model, questions, names
        self._prompts = json.dumps(plain_prompts(backend, questions.requests, questions.built.media_path))
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._processor: dict[str, list[float]] = defaultdict(list)

    def round(self, number: int, home: Path) -> None:
        """Let both answer in an empty ``home``, and compare their answers."""
        state = home / "state"
        private = state / self._names.parent.name
        private.mkdir(mode=0o700, parents=True)
        (private / NAMES).write_bytes(self._names.read_bytes())
        rashomon = Rashomon(home, {"cached_prompts": CACHED_PROMPTS}, variables={"XDG_STATE_HOME": str(state)})
        tokens: dict[str, list[list[int]]] = {}
        contenders: dict[str, Callable[[], list[list[int]]]] = {
            LOOP: lambda: self._loop(rashomon),
            RUN: lambda: self._run(rashomon),
        }
        for name in rotated(list(contenders), number):
            before = _processor_seconds()
            tokens[name], seconds = timed(contenders[name])
            self._seconds[name].append(seconds)
            self._processor[name].append(_processor_seconds() - before)
        assert tokens[LOOP] == tokens[RUN]

    def _loop(self, rashomon: Rashomon) -> list[list[int]]:
        file = rashomon.home / "prompts.json"
        file.write_text(self._prompts)
        command = [sys.executable, "-m", "app.doctor.plain_loop", str(self._model), str(file)]
        tokens: list[list[int]] = json.loads(process_output(command, rashomon.environment).splitlines()[-1])["tokens"]
        return tokens

    def _run(self, rashomon: Rashomon) -> list[list[int]]:
        asked = self._questions
        command = batch(rashomon, self._model, asked.benchmark, asked.built, asked.prompt_set, asked.limit, "first")
        process_output(command, rashomon.environment)
        tokens = answered(rashomon, "first")
        return [tokens[request.instance_id] for request in asked.requests]

    def report(self) -> None:
        """Print the figures."""
        print(f"{self._questions.benchmark}, {len(self._questions.requests)} prompts:")
        for title, unit, seconds in (("", " s", self._seconds), ("processor time, ", " s", self._processor)):
            ratios = [loop / run for loop, run in zip(seconds[LOOP], seconds[RUN], strict=True)]
            print(f"    {title}{LOOP}: {spread(seconds[LOOP], unit)}; {RUN}: {spread(seconds[RUN], unit)}", end="; ")
            print(f"times as fast: {spread(ratios)}", flush=True)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(rounds: int, counts: list[int]) -> None:
    """Print the figures."""
    os.environ[FEATURES_LIMIT] = "0"  # this process reads no features from disk; the runs do
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        model = build_model(home)
        for benchmark, (source, folder, siblings, prompt_sets) in BENCHMARKS.items():
            data = home / benchmark
            rashomon = replace(Rashomon(home), variables={"XDG_STATE_HOME": str(home / "state")})
            rashomon.process("build", benchmark, "--source", f"{source}={folder}", "--out", data)
            built = Build.open(data)
            process_output(batch(rashomon, model, benchmark, built, prompt_sets[0], 1, benchmark), rashomon.environment)
            (names,) = (home / "state").rglob(NAMES)
            backend = load_backend(str(model), built.media_path, max_in_flight=QUEUE_FACTOR * WIDTH)
            assert isinstance(backend, VLMBackend)
            for count in counts:
                questions = Questions.of(benchmark, built, prompt_sets[0], -(-count // siblings), rashomon)
                runs = FirstRuns(model, backend, questions, names)
                for number in range(rounds):
                    runs.round(number, home / f"{benchmark}-{count}-{number}")
                runs.report()
            backend.close()


if __name__ == "__main__":
    first, *sizes = whole_numbers([5])
    main(first, sizes or [8, 24, 48, 96])
