"""The evidence for a recommendation: the decision, the floors, and what the models read and follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.compare.decision.against_policies import Floor
from app.compare.decision.target_shares import ALPHA
from app.compare.recommend.recommended_runs import Decision
from app.compare.runs.decision_scores import MissingAnswers
from app.report.tables.single_source_accuracy import SourceAccuracy, unread_sources
from benchmarks.vocabulary import Estimate


class RuleLead(NamedTuple):
    """The shares of conflicts in which models follow a rule, the greatest first, and whether that one is shown to lead."""

    shares: tuple[tuple[str, Estimate], ...]
    is_shown: bool


@dataclass(frozen=True)
class Evidence:
    """The evidence for a recommendation: the decision, each model's floor, and its accuracy on each source alone."""

    decision: Decision
    floors: Sequence[Floor]
    readings: Mapping[str, Mapping[str, SourceAccuracy]]
    models: bool
    beyond: tuple[str, ...] = ()
    """A sentence on each model that exceeds a limit."""
    missing: Mapping[str, MissingAnswers] = field(default_factory=dict)
    """The missing answers of each model."""
    ceilings: Mapping[str, Estimate] = field(default_factory=dict)
    """Each model's share of conflicts in which it could follow the rule, by what it reads alone; empty without a rule."""
    ends: tuple[Estimate, Estimate] | None = None
    """The best model's share if none of the user's questions had a conflict, and if all had; None where that is known."""
    follows: Mapping[str, float] = field(default_factory=dict)
    """Each model's share of conflicts in which it follows the rule; empty without a rule."""
    by_rule: Mapping[str, RuleLead] = field(default_factory=dict)
    """The leaders by rule, over own documents for which the user has not said what should win."""
    by_rows: str = ""
    """A sentence on the rows that say what should win where others do not."""

    def floor(self, index: int) -> Floor | None:
        label = self.decision.basis.views.runs[index].label
        return next((floor for floor in self.floors if floor.model.label == label), None)

    @property
    def unread(self) -> dict[str, list[str]]:
        """The sources that some models do not read, with these models."""
        return unread_sources(self.readings)

    @property
    def hopeless(self) -> bool:
        """True if there is a source that no model reads, so that more examples would not help."""
        return any(len(failing) == len(self.readings) for failing in self.unread.values())

    @property
    def is_qualified(self) -> bool:
        """True if no run can be recommended whatever is within the margin: by what it depends on, or by what no model does."""
        return bool(self.by_rule) or self.is_unbeaten or self.hopeless

    @property
    def is_unbeaten(self) -> bool:
        """True if no model beats its floor."""
        return bool(self.floors) and not any(floor.beats for floor in self.floors)

    @property
    def missing_matter(self) -> bool:
        """True if the missing answers, were they right or wrong, could change which runs are within the margin."""
        shares, margin = self.decision.basis, self.decision.margin
        runs = shares.views.runs
        numbers = [self.missing.get(run.label, MissingAnswers({}, 0)) for run in runs]
        absent = [missing.total / max(1, missing.of) for missing in numbers]
        if len(runs) == 1:
            return absent[0] > 0
        pairs = ((i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j and absent[i] + absent[j])
        bounds = ((shares.least(i, j).lower(1 - ALPHA) + margin, absent[i] + absent[j]) for i, j in pairs)
        return any(abs(distance) <= moved for distance, moved in bounds)

    def is_worse(self, run: int) -> bool:
        """Return True if a run is shown to be worse than the best by more than the margin."""
        high = self.decision.basis.interval(run, self.decision.basis.best, 1 - 2 * ALPHA)[1]
        return high < -self.decision.margin
