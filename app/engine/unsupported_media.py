"""Instances that a run excludes because its model cannot take their media."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from app.store.run_facts import ExcludedInstances, missing_modalities
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Instance, Media, Modality


def split_by_modality(
    instances: Iterable[Instance], takes: Sequence[Modality]
) -> tuple[list[Instance], ExcludedInstances]:
    """Split instances into those that a model which takes ``takes`` can answer, in order, and a count of the others."""
    supported: list[Instance] = []
    by: Counter[str] = Counter()
    conditions: Counter[str] = Counter()
    for instance in instances:
        modalities = {part.modality for part in instance.parts if isinstance(part, Media)}
        if lacks := modalities.difference(takes):
            by.update(lacks)
            conditions[instance.condition] += 1
        else:
            supported.append(instance)
    total = conditions.total()
    return supported, ExcludedInstances(total, total + len(supported), dict(by), dict(conditions))


def require_instances(
    model: str,
    takes: Sequence[Modality],
    supported: Sequence[Instance],
    excluded: ExcludedInstances,
    benchmark: Benchmark,
) -> None:
    """Raise SpecError, with the alternatives, if the model can take none of the selected instances."""
    if not supported and excluded.total:
        kind = "" if takes else "is a text-only model and "
        raise SpecError(
            f"{model} {kind}takes {missing_modalities(excluded.by)}, which all {excluded.of:,} instances need; "
            f"{benchmark.without_media or 'choose a model that takes it.'}"
        )
