"""Overview of each pair of a comparison: what a reader sees first of a baseline and a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.compare.comparison_tables import Comparison
from app.compare.differences.condition_differences import ConditionDifference, accuracy_by_condition
from app.compare.differences.instance_comparison import Change, flips, lost_and_gained
from app.compare.fine_tuning.fine_tuning_verdict import MARGIN, verdict
from app.compare.recommend.recommendation import Recommendation
from app.compare.runs.cost_tables import accuracy_difference
from app.compare.runs.run_pairs import RunPair
from benchmarks.vocabulary import Estimate

ALL_CONDITIONS = "all conditions"


@dataclass(frozen=True)
class PairOverview:
    """The content of the overview of one pair of a comparison.

    Attributes:
        number: The index of the pair.
        verdict: The recommended run, or for a fine-tuned model the category of its verdict with the first reason.
        tuning_verdict: That verdict with all reasons; empty unless the run is a fine-tuned model, and the baseline its base.
        difference: The difference of accuracy over all conditions.
        label_counts: The number of shared instances by their labels in the baseline and in the run.
        position: The position of the pair among the pairs; must be ours.
    """

    number: int
    pair: RunPair
    verdict: str
    tuning_verdict: str
    warnings: tuple[str, ...]
    difference: Estimate
    conditions: tuple[ConditionDifference, ...]
    flips: tuple[Change, ...]
    label_counts: Mapping[tuple[str, str], int]
    position: str
    effects: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    """The answers lost and those gained; empty where labels name no source."""

    @property
    def differences(self) -> tuple[ConditionDifference, ...]:
        """The difference over all conditions if there are several, then that under each condition."""
        every = (ConditionDifference(ALL_CONDITIONS, self.difference),) if len(self.conditions) > 1 else ()
        return (*every, *self.conditions)


def pair_overviews(
    comparison: Comparison, recommendation: Recommendation | str, margin: float = MARGIN
) -> tuple[PairOverview, ...]:
    """Return the overview of every pair; takes seconds for large runs. A ``str`` says why nothing can be recommended.

    ``margin`` is that of the verdict on fine-tuned models.
    """
    summary = recommendation if isinstance(recommendation, str) else recommendation.summary
    count = len(comparison.pairs)
    verdicts = [verdict(tuning, margin) for tuning in comparison.fine_tunings]
    tunings = {(x.tuning.base.name, x.tuning.tuned.name): (x.short, x.text) for x in verdicts}
    return tuple(
        PairOverview(
            number,
            pair,
            *tunings.get((pair.first.name, pair.second.name), (summary, "")),
            comparison.warnings,
            accuracy_difference(pair, comparison.views),
            accuracy_by_condition(pair, comparison.views),
            tuple(flips(pair)),
            pair.flips(),
            f"run {number + 1} of {count}, n shows the next" if count > 1 else "",
            lost_and_gained(pair, comparison.views.benchmark),
        )
        for number, pair in enumerate(comparison.pairs)
    )
