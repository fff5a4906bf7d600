"""Instances that a run excludes because its model cannot take their media."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from app.store.run_facts import ExcludedInstances, missing_modalities
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Instance, Media, Modality


def supports(instance: Instance, takes: Sequence[Modality]) -> bool:
    """Return whether a model which takes ``takes`` can answer an instance."""
    return not lacking(instance, takes)


def lacking(instance: Instance, takes: Sequence[Modality]) -> set[Modality]:
    """Return the modalities of an instance that a model which takes ``takes`` lacks."""
    return {part.modality for part in instance.parts if isinstance(part, Media)}.difference(takes)


class ExclusionCounts:
    """Counts of instances that a model can answer, and of those that it cannot."""

    def __init__(self, takes: Sequence[Modality]) -> None:
        self.supported = 0
        self._takes = takes
        self._by: Counter[str] = Counter()
        self._conditions: Counter[str] = Counter()

    def add(self, instance: Instance) -> bool:
        """Count an instance and return whether the model can answer it."""
        if lacks := lacking(instance, self._takes):
            self._by.update(lacks)
            self._conditions[instance.condition] += 1
        else:
            self.supported += 1
        return not lacks

    def excluded(self) -> ExcludedInstances:
        """Return the counts of the excluded instances."""
        total = self._conditions.total()
        return ExcludedInstances(total, total + self.supported, dict(self._by), dict(self._conditions))


def require_instances(
    model: str,
    takes: Sequence[Modality],
    supported: int,
    excluded: ExcludedInstances,
    benchmark: Benchmark,
) -> None:
    """Raise SpecError, with the alternatives, if the number of ``supported`` instances among the selected ones is 0."""
    if not supported and excluded.total:
        kind = "" if takes else "is a text-only model and "
        raise SpecError(
            f"{model} {kind}takes {missing_modalities(excluded.by)}, which all {excluded.of:,} instances need; "
            f"{benchmark.without_media or 'choose a model that takes it.'}"
        )
