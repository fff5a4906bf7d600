"""The model's figures on the held-out sets: built as benchmarks, answered through mlx-vlm, labelled by their own judges."""

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
from judges.registry import get_judge
from mlx_backends.base import Backend
from mlx_backends.registry import load_backend

HELD_OUT = Path(__file__).parent.parent / "held_out"
BENCHMARKS = {"cmc-bench": "paper", "clash": "official", "mmkc-bench": "official"}
"""The benchmarks that there is a held-out set of, and the prompt sets that the model knows."""
_SOURCES = {"cmc-bench": "rows", "clash": "rows", "mmkc-bench": "published"}


def build(benchmark: str, folder: Path) -> Build:
    """The benchmark from its held-out set, in ``folder``."""
    source = (_SOURCES[benchmark], str(HELD_OUT / benchmark))
    return get_benchmark(benchmark).build([source], folder, BuildOptions())


def answer(backend: Backend, instance: Instance) -> Generation:
    """The backend's greedy answer."""
    backend.submit(Request(instance.id, 0, (Message("user", instance.parts),), Decoding(max_tokens=16)))
    while not (done := backend.step()):
        pass
    return done[0]


def pair(benchmark: str, instance: Instance) -> str:
    """Whether the training shows the pair of name and value, or of colour and shape, that is asked for: "seen" or "unseen"."""
    if benchmark == "cmc-bench":
        return instance.strata["subject"].split(", ")[1].removesuffix(" pair")
    if benchmark == "clash":
        asked = instance.question.removesuffix("?").split()[-1]
        thing = {asked, instance.references["image"][0].lower()}
        return "unseen" if any(thing == set(each) for each in held_out_things()) else "seen"
    return "seen"


def evaluate(model: Path, benchmark: str, work: Path) -> dict[str, object]:
    """Labels by condition and by whether the pair was seen, and seconds an answer."""
    built = build(benchmark, work / benchmark)
    made = get_benchmark(benchmark)
    backend = load_backend(str(model), built.media_path)
    judge = get_judge(made.judges[0])
    instances = [each for each in made.instances(built, BENCHMARKS[benchmark]) if _known(each)]
    started = time.perf_counter()
    said = {(each.group, each.condition, each.id): answer(backend, each) for each in instances}
    seconds = (time.perf_counter() - started) / len(instances)
    backend.close()
    answers = {(group, condition): generation for (group, condition, _), generation in said.items()}
    labels: dict[str, Counter[str]] = {}
    for each in instances:
        basis = made.basis(each.condition)
        own = None if basis is None else answers[each.group, basis]
        verdict = judge.judge(Record(each, (said[each.group, each.condition, each.id],), basis=own))
        for key in _keys(benchmark, each):
            labels.setdefault(key, Counter())[verdict.label or verdict.status] += 1
    shares = {
        key: {label: round(count / sum(found.values()), 3) for label, count in sorted(found.items())}
        for key, found in sorted(labels.items())
    }
    about: dict[str, object] = {"model": model.name, "benchmark": benchmark, "judge": judge.name}
    return about | {"instances": len(instances), "seconds_each": round(seconds, 4), "labels": shares}


def _known(instance: Instance) -> bool:
    """Whether the training has rows of its kind: MMKC-Bench's detection of conflicts has none."""
    return not instance.condition.startswith(("coarse", "fine"))


def _keys(benchmark: str, instance: Instance) -> Iterator[str]:
    """What an instance counts under."""
    condition = instance.condition
    if condition == "image-only":
        condition = instance.id.split("/", 1)[1]
    if benchmark != "cmc-bench":
        condition += f", {instance.strata['change' if benchmark == 'clash' else 'type']}"
    yield condition
    if benchmark != "mmkc-bench":
        yield f"{condition}, {pair(benchmark, instance)} pairs"


def main() -> None:
    """Print the figures of each model folder as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    for model in parser.parse_args().models:
        for benchmark in BENCHMARKS:
            with tempfile.TemporaryDirectory() as work:
                print(json.dumps(evaluate(model, benchmark, Path(work)), indent=1), flush=True)


if __name__ == "__main__":
    main()
