"""Views of runs: the part of each run that a comparison needs, so that whole runs need not stay in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.packed_answers import LabelledAnswer, PackedAnswers
from app.compare.runs.run_cost import RunCost
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import NOT_TRAINED, TrainedExamples
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.stats.clusters import number_groups
from benchmarks.stats.intervals import ratio
from benchmarks.tables.blind_rule_tables import Gain
from benchmarks.text.answer_text import visible_answer
from benchmarks.vocabulary import LabelMetrics, Record
from mlx_backends.baseline_engine import is_model, is_oracle, is_policy

_EXCERPT = 200


@dataclass(frozen=True)
class RunView:
    """One run: its answers by instance id, its identity, and the engines that answered, the latest last."""

    name: str
    label: str
    state: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    engines: tuple[Mapping[str, Any], ...]
    answers: Mapping[str, LabelledAnswer]
    cost: RunCost
    judged: bool
    """True if the judge has labelled any of its answers."""
    remarks: tuple[str, ...] = ()
    cut_clause: str = ""
    """The answers that were cut while reasoning, as a clause; see :attr:`AnswerQuality.cut_clause`."""
    read: Callable[[Sequence[int]], Iterator[Record]] = lambda positions: iter(())
    """Reads the records at these positions among the answers."""
    trained: TrainedExamples = NOT_TRAINED
    """The count of its examples that the model was trained on."""
    reused: ReusedAnswers | None = None
    """The counts of answers that were reused from other runs; None if they are unknown."""
    cell_note: str = ""
    """The cell that is compared, a sentence; empty for a run on a build that is not varied."""
    own_rows_only: bool = False
    """True if every example comes from the user's own table."""
    used_protocol: str = ""
    """The name of its protocol as it is true of its answers; empty: the stored one."""
    gain: Gain | None = None
    """Its gain over the best rule that looks at no source; None without a closed question that counts."""

    @cached_property
    def coded(self) -> PackedAnswers:
        """The answers as numbers."""
        return self.answers if isinstance(self.answers, PackedAnswers) else PackedAnswers.of(self.answers)

    @cached_property
    def examples(self) -> int:
        """The number of examples."""
        return number_groups(self.coded.example)[0]

    def records(self, instances: Sequence[str]) -> Iterator[tuple[str, Record]]:
        """Yield these instances with the records of the answers to them, as :meth:`PackedAnswers.places` finds them.

        A view that cannot read its run yields none.
        """
        names: dict[int, list[str]] = {}
        for name, place in zip(instances, self.coded.places(instances).tolist(), strict=True):
            names.setdefault(place, []).append(name)
        wanted = sorted(names)
        for place, record in zip(wanted, self.read(wanted), strict=False):
            yield from ((name, record) for name in names[place])

    def excerpts(self, instances: Collection[str]) -> dict[str, str]:
        """Return the beginnings of the answers to these instances, read from the run."""
        return {name: _excerpt(record) for name, record in self.records([*instances])}

    def answer_texts(self, places: NDArray[np.int64]) -> list[str]:
        """Return the answers at these places as a judge sees them, read from the run, in the order of ``places``."""
        wanted = np.unique(places).tolist()
        records = zip(wanted, self.read(wanted), strict=True)
        texts = {place: visible_answer(record.answer.text) if record.answer else "" for place, record in records}
        return [texts[place] for place in places.tolist()]

    @property
    def protocol(self) -> str:
        """The name of its protocol, as it is true of its answers."""
        return self.used_protocol or str(self.identity.get("protocol") or "")

    @property
    def is_policy(self) -> bool:
        """True for a policy, which reads no input, and for a baseline made of its answers."""
        return is_policy(str(self.spec.get("model")))

    @property
    def not_shown(self) -> str:
        """A sentence that it is not shown to use its sources, or only in some tasks; empty if it is, or if it is no model."""
        return self.gain.doubt(self.label) if self.is_model and self.gain is not None else ""

    @property
    def is_model(self) -> bool:
        """False for a policy and an oracle."""
        return is_model(str(self.spec.get("model")))

    @property
    def is_oracle(self) -> bool:
        """True for a baseline that knows which source is right, which nobody can use."""
        return is_oracle(str(self.spec.get("model")))

    @property
    def quantisation(self) -> str | None:
        """The quantisation that the engine reports; None for models without local weights."""
        quantisation = self.identity.get("quantisation")
        return None if quantisation is None else str(quantisation)

    @property
    def weights_bytes(self) -> int | None:
        """The size of the model's weight files, where an engine has reported it."""
        return next((size for engine in reversed(self.engines) if (size := engine.get("weights_bytes"))), None)


@dataclass(frozen=True)
class RunViews:
    """The runs of a comparison, of one benchmark and labelled by one judge; the first one is the baseline."""

    benchmark: Benchmark
    judge: str
    runs: tuple[RunView, ...]
    seed: int

    @property
    def own_rows_only(self) -> bool:
        """True if every example comes from the user's own table, so that no paper's rows are comparable."""
        return all(run.own_rows_only for run in self.runs)

    @cached_property
    def label_metrics(self) -> LabelMetrics:
        """The metrics to compare."""
        return label_metrics_of(self.benchmark)


def reject_duplicates(folders: Sequence[Path]) -> None:
    """Raise SpecError where a run is named twice: it would be compared with itself, and count as two."""
    duplicates = [folder.name for folder, count in Counter(folder.resolve() for folder in folders).items() if count > 1]
    if duplicates:
        raise SpecError(f"{duplicates[0]} is named twice; compare it with another run.")


def label_metrics_of(benchmark: Benchmark) -> LabelMetrics:
    """Return a benchmark's metrics of label counts; where it defines none, the accuracy under each condition."""
    if (metrics := benchmark.answer_metrics()) is not None:
        return metrics

    def accuracy_of(place: int, correct: Any) -> Any:
        def share(counts: Any) -> Any:
            return ratio((counts[..., place, :] * correct).sum(-1), counts[..., place, :].sum(-1))

        return share

    accuracies = {
        f"Accuracy, {condition}": accuracy_of(
            i, np.array([benchmark.correct(condition, label) for label in benchmark.labels])
        )
        for i, condition in enumerate(benchmark.full_conditions)
    }
    return LabelMetrics(benchmark.full_conditions, benchmark.labels, accuracies, benchmark.unparsed_label)


def _excerpt(record: Record) -> str:
    text = visible_answer(record.answer.text)[:_EXCERPT] if record.answer else ""
    return " ".join(text.split())


def unlabelled_outcomes(run: RunView, labels: Sequence[str]) -> Counter[str]:
    """Return the number of a run's instances without a label, by outcome."""
    counts = np.bincount(run.coded.outcome, minlength=len(run.coded.outcomes)).tolist()
    return Counter(
        {name: count for name, count in zip(run.coded.outcomes, counts, strict=True) if count and name not in labels}
    )


def split_policies(views: RunViews) -> tuple[tuple[RunView, ...], tuple[RunView, ...]]:
    """Split the runs into models, which can be recommended, and policies, which are floors; oracles are neither."""
    return (
        tuple(run for run in views.runs if run.is_model),
        tuple(run for run in views.runs if run.is_policy and not run.is_oracle),
    )
