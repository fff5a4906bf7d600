"""Whole processes, from their start to their end: a plain loop, ``mlx_vlm server`` with eight clients, and ``rashomon --batch``.

Run it by hand, on a machine that does nothing else: ``python -m tests.performance.whole_process [ROUNDS] [PROMPTS ...]``, by
default 3 rounds of 24, 96 and 500 prompts of CMC-Bench and of CLASH, on real charts and photographs. The model is a random
Qwen3-VL of six million parameters that keeps a CPU busy computing; its caches hold as many prompts as those of a 4B model on a
Mac with 8 GB (``CACHED_PROMPTS``). All give 32 tokens an answer. A round is the first run of a model on a machine, and a second
run with another prompt set over the same images; in each, every contender comes first in turn. The loop is one around mlx-vlm's
``stream_generate``; the server starts, gets the same prompts with images in base64, and is timed up to its last reply.

Printed are medians and ranges of the rounds: seconds, their ratios, the share of equal answers, what was computed beside the
distinct tokens and images, and how much of the speed of perfect sharing (``perfect_sharing.py``) the whole process reached, and
the part of it after its first batch of answers, and the engine alone, without preparing, judging and committing beside it.
Perfect sharing is measured while the other is stopped, by turns of a second, because a machine's speed drifts.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.engine.request_order import order_by_prefix
from app.store.run_store import RunStore
from app.store.store_types import PendingInstance
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding, Request
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vision.feature_folder import LIMIT as FEATURES_LIMIT
from mlx_backends.mlx.vlm_backend import QUEUE_FACTOR, VLMBackend
from tests.performance.compute_bound import build
from tests.performance.measuring import process_output, rotated, spread, timed, whole_numbers
from tests.performance.peers import Server, plain_prompts
from tests.performance.perfect_sharing import PerfectSharing
from tests.performance.turns import by_turns, engine_by_turns
from tests.support.benchmark_requests import RequestFactory
from tests.support.command import Rashomon
from tests.support.data.clash import CLASH_DATA
from tests.support.data.small import REAL_DATA

CACHED_PROMPTS = 8
CLIENTS = WIDTH = 8
ANSWER = 32
BENCHMARKS = {
    "cmc-bench": ("chartqa", REAL_DATA / "chartqa", 8, ("paper", "conflict-aware")),
    "clash": ("sugar-crepe", CLASH_DATA / "sugar_crepe", 4, ("official", "paper")),
}
"""Source, folder, instances of an example, and the prompt sets of the first and the second run."""


@dataclass(frozen=True)
class Questions:
    """The prompts of a run: those instances of a build that ``limit`` examples have, under one prompt set."""

    benchmark: str
    built: Build
    prompt_set: str
    limit: int
    requests: Sequence[Request]

    @classmethod
    def of(cls, benchmark: str, built: Build, prompt_set: str, limit: int, rashomon: Rashomon) -> Questions:
        """Return the requests of a run in order; a run of a policy, which takes next to no time, tells which they are."""
        name = f"{prompt_set}-{limit}"
        command = batch(rashomon, "policy:uniform", benchmark, built, prompt_set, limit, name)
        process_output(command, rashomon.environment)
        ids = answered(rashomon, name)
        protocol = get_benchmark(benchmark).protocol(Decoding(max_tokens=ANSWER))
        instances = [item for item in get_benchmark(benchmark).instances(built, prompt_set) if item.id in ids]
        pending = [
            (PendingInstance(number, item, ()), request)
            for number, item in enumerate(instances)
            if (request := protocol.next(item, ())) is not None
        ]
        return cls(benchmark, built, prompt_set, limit, [request for _, request in order_by_prefix(pending)])


def batch(
    rashomon: Rashomon, model: str | Path, benchmark: str, built: Build, prompt_set: str, limit: int, name: str
) -> list[str]:
    """Return the command of a run."""
    return rashomon.command(
        *("--batch", "--benchmark", benchmark, "--model", model, "--data", built.path, "--prompt-set", prompt_set),
        *("--limit", str(limit), "--max-tokens", str(ANSWER), "--name", name, "--display", "none"),
    )


def answered(rashomon: Rashomon, name: str) -> dict[str, list[int]]:
    """Return the tokens of a run's answers by instance."""
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        return {record.instance.id: list(record.generations[0].tokens) for record in store.records()}


class Contest:
    """One set of prompts, answered by each contender in each round, and what was measured."""

    def __init__(self, model: Path, backend: VLMBackend, questions: Questions, scratch: Path) -> None:
        self._model, self._backend, self._scratch = model, backend, scratch
        self.questions = questions
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._tokens: dict[str, dict[str, list[int]]] = {}
        self._works: list[dict[str, int]] = []
        self._equal: list[float] = []
        self._failed = 0
        self._sharing = ""

    def round(self, number: int, rashomon: Rashomon) -> None:
        """Let every contender answer, each first in turn, and measure perfect sharing."""
        contenders: dict[str, Callable[[], float]] = {
            "plain loop": self._loop,
            "server": self._server,
            "ours": lambda: self._ours(rashomon),
        }
        for name in rotated(list(contenders), number):
            self.seconds[name].append(contenders[name]())
        self._engine()
        self._read_speed(rashomon)
        plain, ours = self._tokens["plain loop"], self._tokens["ours"]
        self._equal.append(statistics.fmean(ours[name] == tokens for name, tokens in plain.items()))

    def _loop(self) -> float:
        asked, file = self.questions, self._scratch / "prompts.json"
        file.write_text(json.dumps(plain_prompts(self._backend, asked.requests, asked.built.media_path)))
        command = [sys.executable, "-m", "app.doctor.plain_loop", str(self._model), str(file)]
        printed, seconds = timed(lambda: process_output(command, Rashomon(self._scratch).environment))
        answers = json.loads(printed.splitlines()[-1])["tokens"]
        names = [request.instance_id for request in asked.requests]
        self._tokens["plain loop"] = dict(zip(names, answers, strict=True))
        return seconds

    def _server(self) -> float:
        bodies = [
            Server.body(self._model, request, self.questions.built.media_path) for request in self.questions.requests
        ]
        began = time.perf_counter()
        with Server.serving(self._model, self._scratch / "server.log") as server:
            replies = server.ask(bodies, CLIENTS)
            seconds = time.perf_counter() - began
        self._failed = sum("error" in reply for reply in replies)
        assert all(reply["usage"]["completion_tokens"] == ANSWER for reply in replies if "error" not in reply)
        return seconds

    def _ours(self, rashomon: Rashomon) -> float:
        asked, name = self.questions, self.questions.prompt_set
        sharing = self._perfect_sharing()
        command = batch(rashomon, self._model, asked.benchmark, asked.built, asked.prompt_set, asked.limit, name)
        turns = by_turns(command, rashomon.environment, rashomon.workspace / "runs" / name / "run.sqlite", sharing)
        self._tokens["ours"] = answered(rashomon, name)
        self.seconds["after its first batch"].append(turns.later)
        self.seconds["perfect sharing"].append(turns.perfect)
        self.seconds["perfect sharing after its first batch"].append(turns.perfect_later)
        self._sharing = sharing.summary()
        return turns.seconds

    def _engine(self) -> None:
        """Let the engine answer alone, in this process, with empty caches."""
        sharing = self._perfect_sharing()
        self._backend.use_sequential_mode()
        self._backend._start_batched(WIDTH, share=True)
        turns = engine_by_turns(self._backend, self.questions.requests, sharing)
        self.seconds["engine"].append(turns.seconds)
        self.seconds["perfect sharing beside the engine"].append(turns.perfect)

    def _perfect_sharing(self) -> PerfectSharing:
        inputs = [self._backend._preprocessor.inputs(request) for request in self.questions.requests]
        return PerfectSharing(self._backend, inputs, WIDTH, ANSWER)

    def _read_speed(self, rashomon: Rashomon) -> None:
        command = rashomon.command("show", self.questions.prompt_set, "--speed", "--json")
        (speed,) = json.loads(process_output(command, rashomon.environment))["result"]["speeds"]
        self._works.append(speed["work"])

    def report(self) -> None:
        """Print the figures."""
        asked, seconds = self.questions, self.seconds
        print(f"{asked.benchmark}, {len(asked.requests)} prompts of {asked.prompt_set}, {len(self._equal)} rounds:")
        for name in ("plain loop", "server", "ours"):
            print(f"    {name}: {spread(seconds[name], ' s')}")
        if self._failed:
            print(f"    the server answered {self._failed} of them with an error, so its time is too short")
        for name, slower, faster in (
            ("ours against the plain loop, times as fast", "plain loop", "ours"),
            ("ours against the server, times as fast", "server", "ours"),
            ("reached of perfect sharing, by the whole process", "perfect sharing", "ours"),
            (
                "the same after its first batch of answers",
                "perfect sharing after its first batch",
                "after its first batch",
            ),
            ("the same by the engine alone", "perfect sharing beside the engine", "engine"),
        ):
            ratios = [slow / fast for slow, fast in zip(seconds[slower], seconds[faster], strict=True)]
            print(f"    {name}: {spread(ratios)}")
        print(f"    perfect sharing: {spread(seconds['perfect sharing'], ' s')}; {self._sharing}")
        print(f"    answers equal to the plain loop's: {min(self._equal):.1%}")
        computed = [work.get("computed_tokens", 0) / max(1, work.get("distinct_tokens", 0)) for work in self._works]
        work = self._works[-1]
        if not work:
            print("    nothing was shared: too few prompts", flush=True)
            return
        print(
            f"    computed tokens: {spread(computed)} times the {work['distinct_tokens']:,} distinct of "
            f"{work['prompt_tokens']:,}; {work['encoded']} images encoded and {work['from_disk']} read from disk, of "
            f"{work['distinct_images']} distinct",
            flush=True,
        )


def build_model(home: Path) -> Path:
    """Build the model in ``home``, its tokenizer trained on texts of both benchmarks."""
    factory = RequestFactory(home / "texts")
    factory.cmc_bench(20, REAL_DATA / "chartqa")
    factory.clash(20, CLASH_DATA / "sugar_crepe")
    return build(home / "model", factory.texts(), layers=2, pixels=320 * 320)


def main(rounds: int, counts: Sequence[int]) -> None:
    """Print the figures."""
    os.environ[FEATURES_LIMIT] = "0"  # this process reads no features from disk; the runs do
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        model = build_model(home)
        for benchmark, (source, folder, siblings, prompt_sets) in BENCHMARKS.items():
            data = home / benchmark
            Rashomon(home).process("build", benchmark, "--source", f"{source}={folder}", "--out", data)
            built = Build.open(data)
            backend = load_backend(str(model), built.media_path, max_in_flight=QUEUE_FACTOR * WIDTH)
            assert isinstance(backend, VLMBackend)
            for count in counts:
                limit = -(-count // siblings)
                contests = [
                    Contest(model, backend, Questions.of(benchmark, built, prompt_set, limit, Rashomon(home)), home)
                    for prompt_set in prompt_sets
                ]
                for number in range(rounds):
                    fresh = Rashomon(home / f"{benchmark}-{count}-{number}", {"cached_prompts": CACHED_PROMPTS})
                    fresh.home.mkdir()
                    for contest in contests:
                        contest.round(number, replace(fresh, variables={"XDG_STATE_HOME": str(fresh.home / "state")}))
                for contest in contests:
                    contest.report()
            backend.close()


if __name__ == "__main__":
    first, *sizes = whole_numbers([3])
    main(first, sizes or [24, 96, 500])
