"""Effect of an adapter after fusing: which of the answers that it changed the fused model still gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

LEAST_KEPT = 90
"""The percentage of answers, of those that the adapter changed and of the others, on which the fused model must agree with it."""

CHECK = "check"
"""The key of the effect in a fused model's record."""


@dataclass(frozen=True, slots=True)
class FuseEffect:
    """Counts of held-out rows, answered by the base, with the adapter, and by the fused model.

    Attributes:
        rows: The rows that all three answered.
        changed: The rows with another answer with the adapter than by the base.
        kept: The changed rows on which the fused model answers as with the adapter.
        reverted: The changed rows on which it answers as the base.
        disturbed: The rows that the adapter did not change, and on which the fused model answers otherwise.
    """

    rows: int
    changed: int
    kept: int
    reverted: int
    disturbed: int

    @classmethod
    def between(cls, base: Mapping[str, str], adapted: Mapping[str, str], fused: Mapping[str, str]) -> Self:
        """Return the effect on the rows that all three models answered; answers by row. Space and case do not count."""
        answers = [
            tuple(" ".join(texts[row].casefold().split()) for texts in (base, adapted, fused))
            for row in base
            if row in adapted and row in fused
        ]
        changed = [(before, after, now) for before, after, now in answers if before != after]
        return cls(
            rows=len(answers),
            changed=len(changed),
            kept=sum(now == after for _, after, now in changed),
            reverted=sum(now == before for before, _, now in changed),
            disturbed=sum(before == after != now for before, after, now in answers),
        )

    @classmethod
    def read(cls, record: Any) -> Self | None:
        """Return the effect in a part of a fused model's record; None if it holds none that can be."""
        values = [record.get(field.name) for field in fields(cls)] if isinstance(record, Mapping) else [None]
        if not all(type(value) is int and value >= 0 for value in values):
            return None
        effect = cls(*values)
        unchanged = effect.rows - effect.changed
        possible = effect.kept + effect.reverted <= effect.changed <= effect.rows and effect.disturbed <= unchanged
        return effect if possible else None

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @property
    def differing(self) -> int:
        """The rows on which the fused model answers otherwise than the adapter."""
        return self.changed - self.kept + self.disturbed

    @property
    def is_lost(self) -> bool:
        """True if the fused model keeps too few of the changed answers, or changes too many others."""
        unchanged = self.rows - self.changed
        counts = ((self.kept, self.changed), (unchanged - self.disturbed, unchanged))
        return any(100 * same < LEAST_KEPT * count for same, count in counts)

    @property
    def kept_share(self) -> str:
        """The share of the changed answers that is kept, such as ``2 of 30 (7%)``."""
        share = f" ({self.kept / self.changed:.0%})" if self.changed else ""
        return f"{self.kept} of {self.changed}{share}"


def lost_effect_sentence(name: str, records: Iterable[Mapping[str, Any]]) -> str:
    """Return that fusing lost the effect of an adapter in the model ``name``; "" if nothing recorded says so.

    ``records`` are what :func:`mlx_backends.engine_registry.training_records` returns.
    """
    for record in records:
        effect = FuseEffect.read(record.get(CHECK))
        if effect is not None and effect.is_lost:
            others = f", and changes {effect.disturbed} others" if effect.disturbed else ""
            return (
                f"{name} lost its adapter's effect in fusing: on {effect.rows} held-out rows it keeps {effect.kept_share} of the "
                f"answers that the adapter changed{others}."
            )
    return ""
