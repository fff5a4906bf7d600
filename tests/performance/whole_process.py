"""Whole processes, from their start to their end: a loop around mlx-vlm's ``stream_generate``, and ``rashomon --batch``.

Run it by hand, on a machine that does nothing else: ``python -m tests.performance.whole_process [PROMPTS...]``, by default 24,
96 and 500 prompts of CMC-Bench and of CLASH, on real charts and photographs. The model is a random Qwen3-VL of six million
parameters that keeps a CPU busy computing; its caches hold as many prompts as those of a 4B model on a Mac with 8 GB
(``CACHED_PROMPTS``). Both give 32 tokens an answer. A second run asks another prompt set over the same images. Printed are the
seconds, their ratio, the share of equal answers, and how much was computed beside the distinct tokens and images.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from app.store.run import RunStore
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding
from mlx_backends.mlx.vlm import VLMBackend
from mlx_backends.registry import load_backend
from tests.performance.compute_bound import build
from tests.support.benchmark_requests import RequestFactory
from tests.support.command import ROOT, Rashomon
from tests.support.data.clash import CLASH_DATA
from tests.support.data.small import REAL_DATA

CACHED_PROMPTS = 8
ANSWER = 32
BENCHMARKS = {
    "cmc-bench": ("chartqa", REAL_DATA / "chartqa", 8, ("paper", "conflict-aware")),
    "clash": ("sugar-crepe", CLASH_DATA / "sugar_crepe", 4, ("official", "paper")),
}
"""Source, folder, instances of an example, and the prompt sets of the first and the second run."""


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """Return the seconds of a process and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    assert done.returncode == 0, done.stderr[-2000:]
    return took, done.stdout


def batch(rashomon: Rashomon, model: Path, data: Path, benchmark: str, prompt_set: str, limit: int) -> dict[str, Any]:
    """Run a batch; return its ``seconds``, its ``answers`` by instance, and its ``work``."""
    name = f"{benchmark}-{prompt_set}-{limit}"
    command = rashomon.command(
        *("--batch", "--benchmark", benchmark, "--model", model, "--data", data, "--prompt-set", prompt_set),
        *("--limit", str(limit), "--max-tokens", str(ANSWER), "--name", name, "--display", "none"),
    )
    seconds, _ = timed(command, rashomon.environment)
    with RunStore.read(rashomon.workspace / "runs" / name) as store:
        answers = {record.instance.id: list(record.generations[0].tokens) for record in store.records()}
    _, speed = timed(rashomon.command("show", name, "--speed", "--json"), rashomon.environment)
    return {"seconds": seconds, "answers": answers, "work": json.loads(speed)[0]["work"]}


def plain_prompts(
    backend: VLMBackend, built: Build, benchmark: str, prompt_set: str, ids: set[str]
) -> list[dict[str, Any]]:
    """Return the prompts of the instances with these ids, as the plain loop takes them."""
    protocol = get_benchmark(benchmark).protocol(Decoding(max_tokens=ANSWER))
    prompts = []
    for instance in get_benchmark(benchmark).instances(built, prompt_set):
        if instance.id in ids and (request := protocol.next(instance, ())) is not None:
            prompt = backend._preprocessor._prompter.prompt(request.messages)
            images = [str(built.media_path(image)) for image in prompt.images]
            prompts.append({"id": instance.id, "text": prompt.text, "images": images, "max_tokens": ANSWER})
    return prompts


def main(counts: list[int]) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        factory = RequestFactory(home / "texts")
        factory.cmc_bench(20, REAL_DATA / "chartqa")
        factory.clash(20, CLASH_DATA / "sugar_crepe")
        model = build(home / "model", factory.texts(), layers=2, pixels=320 * 320)
        backend = load_backend(str(model), factory.path)
        assert isinstance(backend, VLMBackend)
        for benchmark, (source, folder, siblings, prompt_sets) in BENCHMARKS.items():
            data = home / benchmark
            Rashomon(home).process("build", benchmark, "--source", f"{source}={folder}", "--out", data)
            built = Build.open(data)
            ratios = []
            for count in counts:
                rashomon = Rashomon(home / f"{benchmark}-{count}", {"cached_prompts": CACHED_PROMPTS})
                rashomon.home.mkdir()
                first, second = (
                    batch(rashomon, model, data, benchmark, prompt_set, -(-count // siblings))
                    for prompt_set in prompt_sets
                )
                prompts = plain_prompts(backend, built, benchmark, prompt_sets[0], set(first["answers"]))
                file = home / "prompts.json"
                file.write_text(json.dumps(prompts))
                plain, texts = timed(
                    [sys.executable, "-m", "tests.performance.plain_loop", str(model), str(file)], rashomon.environment
                )
                pairs = zip(prompts, json.loads(texts[texts.index("[") :]), strict=True)
                same = statistics.fmean(first["answers"][prompt["id"]] == tokens for prompt, tokens in pairs)
                ratios.append(plain / first["seconds"])
                print(
                    f"{benchmark}, {len(prompts)} prompts: plain loop {plain:.1f} s, ours {first['seconds']:.1f} s, "
                    f"{ratios[-1]:.2f} times as fast; {same:.1%} of the answers equal",
                    flush=True,
                )
                for name, run in zip(prompt_sets, (first, second), strict=True):
                    work = run["work"]
                    print(
                        f"    {name}: {run['seconds']:.1f} s, {work['computed_tokens'] / work['distinct_tokens']:.3f} times "
                        f"the {work['distinct_tokens']} distinct tokens of {work['prompt_tokens']}; {work['encoded']} images "
                        f"encoded and {work['from_disk']} read from disk, of {work['distinct_images']} distinct",
                        flush=True,
                    )
        backend.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [24, 96, 500])
