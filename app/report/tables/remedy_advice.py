"""What to try with a model that does worse where its sources disagree, cheapest first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.report.tables.single_source_accuracy import CountedAnswers, join_names
from benchmarks.base import Benchmark
from benchmarks.protocols.remedy_protocols import DIRECT, READ
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.models.adapter_folder import split_adapter
from mlx_backends.ocr_engine import PREFIX as READER
from mlx_backends.policy_engine import PREFIX as POLICY

_PROMPT_SET = "expect-conflict"


@dataclass(frozen=True, slots=True)
class Remedy:
    """An idea and the command that tries it, without ``rashomon``; an empty command where it takes another model."""

    idea: str
    command: str = ""

    def __str__(self) -> str:
        return f"rashomon {self.command}  # {self.idea}" if self.command else self.idea


def remedies(run: str, spec: Mapping[str, Any], benchmark: Benchmark, answers: CountedAnswers) -> list[Remedy]:
    """Return what to try with the model of the run named ``run``, from its counted answers.

    What the run has already is left out. Nothing is returned for a policy, a reader of printed numbers, a baseline or imported
    answers, and where conflicts are not shown to make the model worse: where the 95% intervals of its accuracy under conflict and
    without overlap.
    """
    model = str(spec["model"])
    if model.startswith((POLICY, READER, *WITHOUT_REQUESTS)):
        return []
    conflicts, counted, readings = benchmark.conflicts, benchmark.counted_conditions, answers.sources
    if unread := [source for source, reading in readings.items() if reading.fails]:
        larger = "larger images (--max-pixels), more bits, or " if "image" in unread else ""
        return [
            Remedy(f"{larger}another model: this one does not read the {join_names([f'{name}s' for name in unread])}")
        ]
    high = answers.share(lambda condition, _: condition in counted and condition in conflicts).share.high
    low = answers.share(lambda condition, _: condition in counted and condition not in conflicts).share.low
    if high is None or low is None or high >= low:
        return []
    return [
        *_baselines(run, len(readings)),
        *_same_examples(run, spec),
        *_training(benchmark, with_adapter=split_adapter(model)[1] is not None),
    ]


def _baselines(run: str, sources: int) -> list[Remedy]:
    idea = "what two calls, one for each source, would gain; asks no model"
    return [Remedy(idea, f"baselines {shlex.quote(run)}")] if sources > 1 else []


def _same_examples(run: str, spec: Mapping[str, Any]) -> list[Remedy]:
    """Return what the same model can be asked differently about the same examples."""
    file = shlex.quote(f"{run}.toml")
    steps = []
    if spec["prompt_set"] != _PROMPT_SET:
        name = shlex.quote(f"{run}-warned")
        steps.append(
            Remedy("a prompt that warns of conflicts", f"--batch {file} --prompt-set {_PROMPT_SET} --name {name}")
        )
    if spec.get("protocol", DIRECT) == DIRECT and spec.get("score", "generate") == "generate":
        name = shlex.quote(f"{run}-read")
        steps.append(
            Remedy("two calls: read each source, then answer", f"--batch {file} --protocol {READ} --name {name}")
        )
    same = Remedy("the same examples and options, for what follows", f"show {shlex.quote(run)} --spec > {file}")
    return [same, *steps] if steps else []


def _training(benchmark: Benchmark, *, with_adapter: bool) -> list[Remedy]:
    idea = "training data of other examples, for `rashomon train`"
    return [] if with_adapter else [Remedy(idea, f"training {benchmark.name} --data OTHER_BUILD --out train")]


def remedies_title(subject: str = "") -> str:
    """Return the title of a list of remedies, for a ``subject`` such as ``with model-4bit``."""
    return f"{f'What to try {subject}'.rstrip()}, cheapest first (docs/ignores-the-chart.md)"
