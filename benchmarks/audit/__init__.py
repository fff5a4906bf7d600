"""Audit of closed questions: the share of right answers of rules that look at no source.

A benchmark whose answers can be had without its sources measures nothing. Every rule is fitted and tested on different clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.audit.question import BlindOption, BlindQuestion

__all__ = ["Audit", "BlindOption", "BlindQuestion", "RuleResult", "TaskAudit", "audit"]


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The share of a task's questions that a blind rule answers rightly on clusters that it was not fitted on.

    ``low`` and ``high`` are the ends of its 95% interval over clusters, None where a single cluster has none. It is ``flagged``
    if it beats chance by an interval that is corrected for the number of rules and tasks.
    """

    rule: str
    looks_at: str
    share: float
    low: float | None
    high: float | None
    flagged: bool


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """The rules' results on the questions of one task, the best first; ``chance`` is the exact share of guessing."""

    task: str
    questions: int
    clusters: int
    chance: float
    rules: tuple[RuleResult, ...]

    @property
    def flagged(self) -> tuple[RuleResult, ...]:
        """The rules that beat chance."""
        return tuple(rule for rule in self.rules if rule.flagged)


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a set of questions.

    ``blind`` is, by instance id, the score of the best blind rule, which is chosen and fitted on other clusters: 1 or 0, or a
    share for options between which it does not choose. ``chance`` is that of guessing.
    """

    tasks: tuple[TaskAudit, ...]
    blind: Mapping[str, float] = field(default_factory=dict)
    chance: Mapping[str, float] = field(default_factory=dict)


def audit(
    questions: Sequence[BlindQuestion],
    *,
    media: Callable[[str], int | None] | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Audit:
    """Audit closed questions by rules that look at no source.

    ``media`` returns the size in bytes of the medium with a sha256, None where it is unknown.
    """
    raise NotImplementedError
