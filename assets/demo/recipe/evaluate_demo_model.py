"""The model's accuracy on the held-out sets: built as benchmarks, answered through mlx-vlm, labelled by their own judges."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from assets.demo.recipe.scenes import held_out_things
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding, Generation, Instance, Message, Record, Request
from judges.judge_registry import get_judge
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend

HELD_OUT = Path(__file__).parent.parent / "held_out"
BENCHMARKS = {"cmc-bench": "paper", "clash": "official", "mmkc-bench": "official"}
"""The benchmarks with a held-out set, and the prompt sets that the model knows."""
_SOURCES = {"cmc-bench": "rows", "clash": "rows", "mmkc-bench": "published"}


def build(benchmark: str, folder: Path) -> Build:
    """Build the benchmark from its held-out set in ``folder``."""
    source = (_SOURCES[benchmark], str(HELD_OUT / benchmark))
    return get_benchmark(benchmark).build([source], folder, BuildOptions())


def answer(backend: Backend, instance: Instance) -> Generation:
    """Return the backend's greedy answer."""
    backend.submit(Request(instance.id, 0, (Message("user", instance.parts),), Decoding(max_tokens=16)))
    while not (done := backend.step()):
        pass
    return done[0]


def pair(benchmark: str, instance: Instance) -> str:
    """Return "seen" if the training shows the requested pair of name and value, or of colour and shape, else "unseen"."""
    if benchmark == "cmc-bench":
        return instance.strata["subject"].split(", ")[1].removesuffix(" pair")
    if benchmark == "clash":
        name = instance.question.removesuffix("?").split()[-1]
        thing = {name, instance.references["image"][0].lower()}
        return "unseen" if any(thing == set(held_out) for held_out in held_out_things()) else "seen"
    return "seen"


def evaluate(model: Path, benchmark: str, work: Path) -> dict[str, object]:
    """Return the labels by condition and by seen and unseen pairs, and the seconds per answer."""
    built = build(benchmark, work / benchmark)
    definition = get_benchmark(benchmark)
    backend = load_backend(str(model), built.media_path)
    judge = get_judge(definition.judges[0])
    instances = [instance for instance in definition.instances(built, BENCHMARKS[benchmark]) if _known(instance)]
    started = time.perf_counter()
    generations = {
        (instance.group, instance.condition, instance.id): answer(backend, instance) for instance in instances
    }
    seconds = (time.perf_counter() - started) / len(instances)
    backend.close()
    answers = {(group, condition): generation for (group, condition, _), generation in generations.items()}
    labels: dict[str, Counter[str]] = {}
    for instance in instances:
        basis = definition.basis(instance.condition)
        own = None if basis is None else answers[instance.group, basis]
        verdict = judge.judge(
            Record(instance, (generations[instance.group, instance.condition, instance.id],), basis=own)
        )
        for key in _keys(benchmark, instance):
            labels.setdefault(key, Counter())[verdict.label or verdict.status] += 1
    shares = {
        key: {label: round(count / sum(counts.values()), 3) for label, count in sorted(counts.items())}
        for key, counts in sorted(labels.items())
    }
    description: dict[str, object] = {"model": model.name, "benchmark": benchmark, "judge": judge.name}
    return description | {"instances": len(instances), "seconds_each": round(seconds, 4), "labels": shares}


def _known(instance: Instance) -> bool:
    """Return whether the training has rows of this kind: MMKC-Bench's detection of conflicts has none."""
    return not instance.condition.startswith(("coarse", "fine"))


def _keys(benchmark: str, instance: Instance) -> Iterator[str]:
    """Yield the keys that an instance counts under."""
    condition = instance.condition
    if condition == "image-only":
        condition = instance.id.split("/", 1)[1]
    if benchmark != "cmc-bench":
        condition += f", {instance.strata['change' if benchmark == 'clash' else 'type']}"
    yield condition
    if benchmark != "mmkc-bench":
        yield f"{condition}, {pair(benchmark, instance)} pairs"


def main() -> None:
    """Print the results of each model folder as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    for model in parser.parse_args().models:
        for benchmark in BENCHMARKS:
            with tempfile.TemporaryDirectory() as work:
                print(json.dumps(evaluate(model, benchmark, Path(work)), indent=1), flush=True)


if __name__ == "__main__":
    main()
