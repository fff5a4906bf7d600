"""The demo model and its held-out sets: answers that can be right or wrong, for tests of what lies between question and table."""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from assets.demo.recipe import evaluate_demo_model
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Instance, Media, Part, Record
from judges.judge_registry import get_judge
from mlx_backends.base import Backend
from mlx_backends.engine_registry import load_backend

DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo"
BF16, FOUR_BIT = DEMO / "model-bf16", DEMO / "model-4bit"
ENOUGH = 24
"""Number of instances per condition; an eighth of unlucky ones among them is 0.125."""


def write_table(folder: Path, rows: int, name: str = "charts", edit: Mapping[str, str] | None = None) -> Path:
    """Write the demo's first rows as a table beside its pictures, the second one with other cells."""
    folder.mkdir(exist_ok=True)
    if not (folder / "held_out").exists():
        shutil.copytree(DEMO / "held_out", folder / "held_out")
    with (DEMO / "rows.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        chosen = [*islice(reader, rows)]
    chosen[1] |= edit or {}
    with (folder / f"{name}.csv").open("w", newline="") as table:
        writer = csv.DictWriter(table, reader.fieldnames or ())
        writer.writeheader()
        writer.writerows(chosen)
    return folder / f"{name}.csv"


class HeldOutSet:
    """A benchmark's held-out instances, and pictures beside its own."""

    def __init__(self, benchmark: str, folder: Path) -> None:
        self.benchmark = benchmark
        self.build = evaluate_demo_model.build(benchmark, folder / "build")
        self._pictures: dict[str, Path] = {}
        self.instances = list(get_benchmark(benchmark).instances(self.build, evaluate_demo_model.BENCHMARKS[benchmark]))

    def path(self, media: Media) -> Path:
        """Return the path of a medium's file."""
        return self._pictures.get(media.sha256) or self.build.media_path(media)

    def under(self, condition: str, count: int = ENOUGH) -> list[Instance]:
        """Return ``count`` instances of a condition with correct pictures, spread over the set."""
        instances = [i for i in self.instances if i.condition == condition and not i.id.endswith("/wrong")]
        return instances[:: max(1, len(instances) // count)][:count]

    def pair(self, instance: Instance) -> str:
        """Return "seen" or "unseen", for whether the training set contained the requested value."""
        return evaluate_demo_model.pair(self.benchmark, instance)

    def add(self, path: Path) -> Media:
        """Add a picture."""
        media = Media(hashlib.sha256(path.read_bytes()).hexdigest(), path.suffix)
        self._pictures[media.sha256] = path
        return media

    def load(self, model: Path) -> Backend:
        """The model, reading this set's pictures."""
        return load_backend(str(model), self.path)

    def labels(self, backend: Backend, instances: Sequence[Instance], judge: str | None = None) -> list[str | None]:
        """The label of each answer by the benchmark's first judge, or by ``judge``; None if undecided. No answer may fail."""
        about = get_benchmark(self.benchmark)
        chosen = get_judge(judge or about.judges[0])
        siblings = {(item.group, item.condition): item for item in self.instances}
        labels: list[str | None] = []
        for instance in instances:
            generation = evaluate_demo_model.answer(backend, instance)
            assert generation.error is None
            needed = about.basis(instance.condition)
            basis = None if needed is None else evaluate_demo_model.answer(backend, siblings[instance.group, needed])
            verdict = chosen.judge(Record(instance, (generation,), basis=basis))
            assert verdict.status in ("labelled", "undecided"), verdict
            labels.append(verdict.label)
        return labels

    def shares(self, model: Path, instances: Sequence[Instance], judge: str | None = None) -> dict[str, float]:
        """Return the share of each label among the answers."""
        backend = self.load(model)
        labels = self.labels(backend, instances, judge)
        backend.close()
        known = get_benchmark(self.benchmark).labels
        return {label: labels.count(label) / len(labels) for label in known}


def image(instance: Instance) -> Media:
    """The instance's one picture."""
    (medium,) = (part for part in instance.parts if isinstance(part, Media))
    return medium


def with_image(instance: Instance, media: Media) -> Instance:
    """The instance with another picture in the place of its own."""
    parts: tuple[Part, ...] = tuple(media if isinstance(part, Media) else part for part in instance.parts)
    return replace(instance, parts=parts)


def moved(instance: Instance, *, first: bool) -> Instance:
    """The instance with its picture before or behind all its text."""
    medium = image(instance)
    texts = tuple(part for part in instance.parts if part is not medium)
    return replace(instance, parts=(medium, *texts) if first else (*texts, medium))
