"""What a run does not ask because its model cannot take it: found when it is planned, counted, and never an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from app.store.run import RunStore
from benchmarks.base import Benchmark, Instance, Media, Modality
from benchmarks.errors import SpecError
from mlx_backends.models.modalities import ALL, NAMES

META = "excluded"
"""Where a run's store keeps it."""


@dataclass(frozen=True, slots=True)
class ExcludedInstances:
    """How many of ``of`` chosen instances are not asked.

    ``by`` counts them by each modality that the model does not take; one that shows two such counts twice. ``conditions``
    counts them by condition.
    """

    total: int = 0
    of: int = 0
    by: Mapping[str, int] = field(default_factory=dict)
    conditions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def kept(cls, store: RunStore) -> Self:
        """What a run's store says; nothing for a run that was planned before this was counted."""
        return cls(**store.meta(META, {}))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sentence(self) -> str:
        """What is not asked, and why; "" where everything is."""
        if not self.total:
            return ""
        return f"{self.total:,} of {self.of:,} not asked: the model takes {lacking(self.by)}"


NONE_EXCLUDED = ExcludedInstances()
"""Every chosen instance is asked."""


def lacking(by: Mapping[str, int]) -> str:
    """``no audio (900), no 3D (700)``."""
    return ", ".join(f"no {NAMES[modality]} ({by[modality]:,})" for modality in ALL if by.get(modality))


def split(chosen: Iterable[Instance], takes: Sequence[Modality]) -> tuple[list[Instance], ExcludedInstances]:
    """The instances that a model which takes ``takes`` can be asked, in their order, and a count of the others."""
    asked: list[Instance] = []
    by: Counter[str] = Counter()
    conditions: Counter[str] = Counter()
    for instance in chosen:
        shown = {part.modality for part in instance.parts if isinstance(part, Media)}
        if lacks := shown.difference(takes):
            by.update(lacks)
            conditions[instance.condition] += 1
        else:
            asked.append(instance)
    total = conditions.total()
    return asked, ExcludedInstances(total, total + len(asked), dict(by), dict(conditions))


def refuse_nothing_left(
    model: str, takes: Sequence[Modality], asked: Sequence[Instance], excluded: ExcludedInstances, benchmark: Benchmark
) -> None:
    """Raise SpecError, with the ways out, where the model takes none of what it would be asked."""
    if not asked and excluded.total:
        kind = "" if takes else "is a text-only model and "
        raise SpecError(
            f"{model} {kind}takes {lacking(excluded.by)}, and each of the {excluded.of:,} instances shows some; "
            f"{benchmark.without_media or 'name a model that does.'}"
        )
