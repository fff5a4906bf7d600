"""The runs of a comparison, each as what is compared of it: no more of a run is kept in memory than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from app.report.imported import known_identity, known_spec
from app.report.judge_selection import judge_of, panel_of, present
from app.report.tables import one_benchmark, run_labels
from app.store.run import RunStore
from app.store.workspace import summary
from benchmarks.base import Benchmark, LabelMetrics, Record, digest, part_to_json
from benchmarks.errors import SpecError
from benchmarks.text.answer_text import visible_answer
from judges.panel import with_panel
from mlx_backends.policy import PREFIX

_BEGINNING = 200


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One instance of one run: what came of it.

    ``outcome`` is the label, or which of the ways of having none it is. ``prompt`` is a digest of what was shown, ``begins`` the
    beginning of the answer.
    """

    group: str
    condition: str
    outcome: str
    prompt: str
    begins: str
    alone: str = ""
    """The modality of the source that was shown alone, where it was: see :meth:`Benchmark.single_source`."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run's answers took: seconds and tokens of those that have them, the peak in bytes, and how many answers."""

    answers: int = 0
    timed: int = 0
    seconds: float = 0.0
    decode_s: float = 0.0
    decoded: int = 0
    peak_memory: int | None = None

    @property
    def seconds_per_answer(self) -> float | None:
        return self.seconds / self.timed if self.timed else None

    @property
    def tokens_per_second(self) -> float | None:
        return self.decoded / self.decode_s if self.decode_s else None


@dataclass(frozen=True, slots=True)
class RunView:
    """One run. ``said`` maps an instance's id to what came of it, ``identity`` is what the run is, ``engines`` who answered."""

    name: str
    label: str
    state: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    engines: tuple[Mapping[str, Any], ...]
    said: Mapping[str, LabelledAnswer]
    cost: RunCost
    judged: bool
    """Whether the judge has labelled any of its answers."""
    remarks: tuple[str, ...] = ()

    @property
    def is_policy(self) -> bool:
        """Return whether it is a policy, which looks at nothing, and so no model."""
        return str(self.spec.get("model")).startswith(PREFIX)

    @property
    def quantisation(self) -> str | None:
        """As the engine tells it; None for what has no weights here."""
        told = self.identity.get("quantisation")
        return None if told is None else str(told)

    @property
    def weights_bytes(self) -> int | None:
        """The size of the model's weight files, where an engine has told it."""
        return next((size for each in reversed(self.engines) if (size := each.get("weights_bytes"))), None)


@dataclass(frozen=True)
class RunViews:
    """The runs that are compared, of one benchmark, by the labels of one judge; the first one is the baseline."""

    benchmark: Benchmark
    judge: str
    sides: tuple[RunView, ...]
    seed: int

    @cached_property
    def figures(self) -> LabelMetrics:
        """The figures that are compared."""
        return figures_of(self.benchmark)


def load(folders: Sequence[Path], *, judge: str | None = None) -> RunViews:
    """The runs in ``folders``, by ``judge`` or the first run's first judge.

    Raises SpecError where they are of several benchmarks or the judge is unknown, StoreError where one is no run.
    """
    stores = [RunStore.read(folder) for folder in folders]
    try:
        benchmark = one_benchmark(stores, "compare runs of one")
        judge_id = judge_of(stores, judge)
        panel = panel_of(judge, ids := present(stores))
        if panel is not None and panel.counts_flags:
            raise SpecError(f"{judge} gives an answer several labels, and a comparison is of one; use majority or all.")
        made = []
        for store, label in zip(stores, run_labels(stores), strict=True):
            records = list(store.records())
            if panel is not None:
                records = with_panel(records, panel, ids, benchmark.labels)
            made.append(_side(store, label, records, judge_id, benchmark))
        return RunViews(benchmark, judge_id, tuple(made), int(stores[0].meta("spec")["seed"]))
    finally:
        for store in stores:
            store.close()


def refuse_twice(folders: Sequence[Path]) -> None:
    """Raise SpecError where one run is named twice: beside itself it shows nothing, and it would count as two."""
    twice = [folder.name for folder, count in Counter(folder.resolve() for folder in folders).items() if count > 1]
    if twice:
        raise SpecError(f"{twice[0]} is named twice; a run beside itself shows nothing, name another one.")


def figures_of(benchmark: Benchmark) -> LabelMetrics:
    """A benchmark's figures that are made of counts of labels; where it names none, the accuracy under each condition."""
    import numpy as np

    found = benchmark.figures()
    if found is not None:
        return found

    def of(place: int, right: Any) -> Any:
        def share(counts: Any) -> Any:
            whole = np.asarray(counts[..., place, :].sum(-1), float)
            hits = (counts[..., place, :] * right).sum(-1)
            return np.divide(hits, whole, out=np.full(whole.shape, np.nan), where=whole > 0)

        return share

    each = {
        f"Accuracy, {condition}": of(i, np.array([benchmark.correct(condition, label) for label in benchmark.labels]))
        for i, condition in enumerate(benchmark.conditions)
    }
    return LabelMetrics(benchmark.conditions, benchmark.labels, each)


def _side(store: RunStore, label: str, records: Sequence[Record], judge: str, benchmark: Benchmark) -> RunView:
    return RunView(
        name=store.folder.name,
        label=label,
        state=summary(store.folder).state,
        spec=known_spec(store.meta("spec")),
        identity=known_identity(store.meta("identity", {}), store.meta("spec")),
        engines=tuple(store.engines()),
        said={record.instance.id: _said(record, judge, benchmark) for record in records},
        cost=cost_of(records),
        judged=any(judge in record.verdicts for record in records),
        remarks=tuple(store.meta("remarks", [])),
    )


def _said(record: Record, judge: str, benchmark: Benchmark) -> LabelledAnswer:
    instance, outcome = record.instance, record.outcome(judge)
    begins = visible_answer(record.answer.text)[:_BEGINNING] if record.answer else ""
    return LabelledAnswer(
        instance.group,
        instance.condition,
        str(record.verdicts[judge].label) if outcome == "labelled" else outcome,
        digest([part_to_json(part) for part in instance.parts])[:16],
        " ".join(begins.split()),
        benchmark.single_source(instance),
    )


def cost_of(records: Iterable[Record]) -> RunCost:
    """What the answers of ``records`` took, those that are errors left out."""
    answers = timed = decoded = 0
    seconds = decode_s = 0.0
    peak: int | None = None
    for record in records:
        if record.answer is None or record.answer.finish_reason == "error":
            continue
        answers += 1
        steps = record.generations
        if any(step.decode_s is not None for step in steps):
            timed += 1
            seconds += sum((step.prefill_s or 0) + (step.decode_s or 0) for step in steps)
        for step in steps:
            if step.decode_s and step.completion_tokens:
                # The first token's time is the prompt's, where that is told.
                decode_s += step.decode_s
                decoded += step.completion_tokens - (step.prefill_s is not None)
            if step.peak_memory is not None:
                peak = max(peak or 0, step.peak_memory)
    return RunCost(answers, timed, seconds, decode_s, decoded, peak)


def not_labelled(side: RunView, labels: Sequence[str]) -> Counter[str]:
    """How many of a run's instances have no label, by why."""
    return Counter(said.outcome for said in side.said.values() if said.outcome not in labels)
