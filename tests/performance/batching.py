"""Gain of answering in batches with shared prefixes computed once over what a user of mlx-vlm has without it.

Run it by hand, on a machine that does nothing else: ``python -m tests.performance.batching [EXAMPLES] [ROUNDS]``. It builds a
random Qwen3-VL of seven million parameters, which keeps a CPU busy computing, and asks it EXAMPLES of CMC-Bench, and twice as
many of CLASH, four ways, in each round, with 300 tokens an image and more and 32 tokens an answer; real charts and photographs
where they lie beside the project. It prints the seconds of the loop around ``mlx_vlm.generate``, of ``mlx_vlm server`` with
eight clients, and ours, and beside them those of perfect sharing, which computes each image, distinct token and decoding step
once, by turns of a second with ours. It asserts nothing, and the ratios are this machine's: a CPU gains little by
computing rows together, Metal more.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.engine.request_order import order_by_prefix
from app.store.store_types import PendingInstance
from benchmarks.vocabulary import Decoding, Instance, Request
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vision.feature_folder import LIMIT as FEATURES_LIMIT
from mlx_backends.mlx.vlm_backend import QUEUE_FACTOR, VLMBackend
from tests.performance.compute_bound import build
from tests.performance.measuring import spread, timed
from tests.performance.peers import Place, Server, loop
from tests.performance.perfect_sharing import PerfectSharing
from tests.performance.turns import engine_by_turns
from tests.support.benchmark_requests import RequestFactory, answers
from tests.support.data.clash import CLASH_DATA
from tests.support.data.small import REAL_DATA
from tests.support.distinct_tokens import count_distinct_tokens

WIDTH = 8
ANSWER = Decoding(max_tokens=32)
FIRST = 32
"""The number of a run's requests from which the batch invariance check chooses."""


@dataclass(frozen=True)
class Round:
    """Seconds: of the plain loop, of the server, ours, and of perfect sharing."""

    plain: float
    server: float
    ours: float
    bound: float


def measured(backend: VLMBackend, model: Path, server: Server, requests: Sequence[Request], media: Place) -> Round:
    """One round: all three, and the bound, on the same requests. Ours and the bound by turns, since a machine's speed drifts."""
    inputs = [backend._preprocessor.inputs(request) for request in requests]
    bodies = [Server.body(model, request, media) for request in requests]
    backend._start_batched(WIDTH, share=True)  # with an empty cache
    sharing = PerfectSharing(backend, inputs, WIDTH, ANSWER.max_tokens)
    turns = engine_by_turns(backend, requests, sharing)
    ours, perfect = turns.seconds, turns.perfect
    plain = timed(lambda: loop(backend, requests, media))[1]
    replies, served = timed(lambda: server.ask(bodies, WIDTH))
    assert all(len(item.tokens) == ANSWER.max_tokens for item in turns.generations)
    assert all(item["usage"]["completion_tokens"] == ANSWER.max_tokens for item in replies)
    total, count = sum(len(item.content) for item in inputs), count_distinct_tokens([item.content for item in inputs])
    assert total == sum(item["usage"]["prompt_tokens"] for item in replies), "the server is asked the same"
    reuse = backend.reuse
    assert reuse is not None
    print(f"    {len(requests)} answers, {total} prompt tokens; {sharing.summary()}")
    print(
        f"    plain loop {plain:.1f} s, server {served:.1f} s, ours {ours:.1f} s, perfect sharing {perfect:.1f} s; "
        f"{reuse.computed_tokens / count:.3f} of the distinct tokens read",
        flush=True,
    )
    return Round(plain, served, ours, perfect)


def compare(
    name: str, backend: VLMBackend, model: Path, server: Server, pool: Sequence[Request], media: Place, rounds: int
) -> None:
    """Measure the requests in ``rounds`` parts, with the last example for warming up, and print the ratios."""
    examples = list(dict.fromkeys(item.id.partition("/")[0] for item in pool))
    warm = [replace(item, decoding=ANSWER) for item in pool if item.id.startswith(f"{examples[-1]}/")][:2]
    pool = [item for item in pool if not item.id.startswith(f"{examples[-1]}/")]
    pending = [(PendingInstance(n, Instance(item.id, "", "", "", ()), ()), item) for n, item in enumerate(pool)]
    requests = [replace(item, decoding=ANSWER) for _, item in order_by_prefix(pending)]
    print(f"{name}: {len(requests)} answers in {rounds} rounds", flush=True)
    backend.use_sequential_mode()
    # What is compiled and opened at the first use is no part of what is compared, and no question of the comparison's is known.
    loop(backend, warm, media)
    server.ask([Server.body(model, item, media) for item in warm * 4], WIDTH)
    alone = timed(lambda: answers(backend, warm))[1] / len(warm)
    proof, canary = timed(lambda: backend.choose_mode(requests[:FIRST]))
    assert proof is not None
    answers(backend, warm)
    size = -(-len(requests) // rounds)
    rounds_measured = [
        measured(backend, model, server, requests[start : start + size], media)
        for start in range(0, len(requests), size)
    ]
    print(f"    answered {proof.way}, up to {WIDTH} at once; the canary took as long as {canary / alone:.1f} answers")
    total = [sum(getattr(item, part) for item in rounds_measured) for part in ("plain", "server", "ours", "bound")]
    print("    in all: plain loop {:.1f} s, server {:.1f} s, ours {:.1f} s, perfect sharing {:.1f} s".format(*total))
    ratios: dict[str, Callable[[Round], float]] = {
        "ours against the plain loop": lambda item: item.plain / item.ours,
        "perfect sharing against the plain loop": lambda item: item.plain / item.bound,
        "ours against the server": lambda item: item.server / item.ours,
        "the server against the plain loop": lambda item: item.plain / item.server,
        "reached, of perfect sharing": lambda item: item.bound / item.ours,
    }
    for what, ratio in ratios.items():
        print(f"    {what}: {spread([ratio(item) for item in rounds_measured])}", flush=True)


def main() -> None:
    """Print the ratios."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ[FEATURES_LIMIT] = "0"  # every time encodes its images, and none reads those of an earlier one from disk
    with tempfile.TemporaryDirectory() as scratch:
        factory = RequestFactory(Path(scratch))
        charts, photographs = REAL_DATA / "chartqa", CLASH_DATA / "sugar_crepe"
        sets = {
            "CMC-Bench": factory.cmc_bench(examples * rounds + 1, charts if charts.is_dir() else None),
            "CLASH four ways": factory.clash(2 * examples * rounds + 1, photographs if photographs.is_dir() else None),
        }
        model = build(Path(scratch) / "model", factory.texts())
        backend = load_backend(str(model), factory.path, max_in_flight=QUEUE_FACTOR * WIDTH)
        assert isinstance(backend, VLMBackend)
        with Server.serving(model, Path(scratch) / "server.log") as server:
            for name, requests in sets.items():
                if name.startswith(only):
                    compare(name, backend, model, server, requests, factory.path, rounds)
        backend.close()


if __name__ == "__main__":
    main()
