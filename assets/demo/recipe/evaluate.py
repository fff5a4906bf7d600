"""The model's figures on the held-out set: built as CMC-Bench, answered through mlx-vlm, labelled by ``match``."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.base import Decoding, Generation, Instance, Message, Record, Request, get_benchmark
from benchmarks.build import Build, BuildOptions
from judges.match import Match
from mlx_backends.base import Backend
from mlx_backends.registry import load_backend

HELD_OUT = Path(__file__).parent.parent / "held_out"


def build(folder: Path, rows: Path = HELD_OUT) -> Build:
    """CMC-Bench from the held-out rows, in ``folder``."""
    return get_benchmark("cmc-bench").build([("rows", str(rows))], folder, BuildOptions())


def answer(backend: Backend, instance: Instance) -> Generation:
    """The backend's greedy answer."""
    backend.submit(Request(instance.id, 0, (Message("user", instance.parts),), Decoding(max_tokens=16)))
    while not (done := backend.step()):
        pass
    return done[0]


def pair(instance: Instance) -> str:
    """Whether the training shows the pairs of name and value of the instance's example: "seen" or "unseen"."""
    return instance.strata["subject"].split(", ")[1].removesuffix(" pair")


def evaluate(model: Path, work: Path) -> dict[str, object]:
    """Labels by condition and by whether the pair was seen, the share that is right, and seconds an answer."""
    built = build(work / "build")
    backend = load_backend(str(model), built.media_path)
    judge = Match()
    labels: dict[str, Counter[str]] = {}
    instances = list(get_benchmark("cmc-bench").instances(built, "paper"))
    started = time.perf_counter()
    for instance in instances:
        said = answer(backend, instance)
        verdict = judge.judge(Record(instance, (said,)))
        condition = instance.condition
        if condition == "image-only":
            condition = instance.id.split("/", 1)[1]
        for key in (condition, f"{condition}, {pair(instance)} pairs"):
            labels.setdefault(key, Counter())[verdict.label or verdict.status] += 1
    seconds = (time.perf_counter() - started) / len(instances)
    backend.close()
    shares = {
        key: {label: round(count / sum(found.values()), 3) for label, count in sorted(found.items())}
        for key, found in sorted(labels.items())
    }
    return {"model": model.name, "instances": len(instances), "seconds_each": round(seconds, 4), "labels": shares}


def main() -> None:
    """Print the figures of each model folder as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    for model in parser.parse_args().models:
        with tempfile.TemporaryDirectory() as work:
            print(json.dumps(evaluate(model, Path(work)), indent=1))


if __name__ == "__main__":
    main()
