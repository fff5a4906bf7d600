"""Floors: the scores of policies, which read no input, as lower bounds for models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.compare.decision.target_metric import TargetMetric
from app.compare.decision.target_shares import TargetShares, target_shares
from app.compare.runs.run_view import RunView, RunViews
from app.report.tables.policy_sentences import policies_sentence
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from app.text.plural import count_of
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import span

_ALL = 1 - 1e-9
"""The share at which every answer of a policy counts; weighted sums miss 1 by their last bits."""


@dataclass(frozen=True)
class Floor:
    """One model against one policy, over the answers that count in both."""

    basis: TargetShares

    @property
    def model(self) -> RunView:
        return self.basis.views.runs[0]

    @property
    def policy(self) -> RunView:
        return self.basis.views.runs[1]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the model's lead over the policy, whatever the undecided answers turn out to be."""
        return self.basis.interval(0, 1)

    @property
    def beats(self) -> bool:
        """True if the model is significantly better."""
        return self.interval[0] > 0

    @property
    def loses(self) -> bool:
        """True if the model is significantly worse."""
        return self.interval[1] < 0

    @property
    def is_perfect(self) -> bool:
        """True if every answer of the policy counts."""
        return bool(self.basis.shares[1] >= _ALL) and not self.basis.metric.lower_is_better

    @property
    def verb(self) -> str:
        """The predicate of the model, before the policy."""
        return "beats" if self.beats else "does worse than" if self.loses else "is not shown to beat"

    def percentages(self, against: str = "") -> str:
        """Return both shares; ``against`` names the policy."""
        model, policy = self.basis.shares
        return f"{model:.1%} against {policy:.1%}{against}"

    def describe(self, against: str = "") -> str:
        """Return both shares and their difference in points with its interval and n; ``against`` names the policy."""
        low, high = self.interval
        lead = self.basis.difference(0, 1).value
        if self.basis.metric.lower_is_better:
            lead, low, high = -lead, -high, -low
        interval = f"{span(format_points(low, sign=True), format_points(high, sign=True))} at 95%"
        n = f"n = {count_of(len(self.basis.group), 'answer')} to {count_of(self.basis.examples, 'example')}"
        return f"{self.percentages(against)} ({format_points(lead, sign=True)} points; {interval}; {n})"


def hardest_floors(
    models: Sequence[RunView],
    policies: Sequence[RunView],
    views: RunViews,
    metric: TargetMetric,
) -> list[Floor]:
    """Return for each model the policy that it is furthest from beating; models that share no answer with one are left out.

    A policy whose every answer counts is no floor: it does what the metric asks for, such as always following the source that
    should win.
    """
    hardest = []
    for model in models:
        floors = []
        for policy in policies:
            floor = compare_with(model, policy, views, metric)
            if floor is not None and not floor.is_perfect:
                floors.append(floor)
        if floors:
            hardest.append(min(floors, key=lambda floor: floor.interval[0]))
    return hardest


def compare_with(model: RunView, policy: RunView, views: RunViews, metric: TargetMetric) -> Floor | None:
    """Return a model beside a policy; None where no answer counts in both."""
    try:
        return Floor(target_shares(replace(views, runs=(model, policy)), metric))
    except SpecError:
        return None


def none_beats_sentence(floors: Sequence[Floor], models: int) -> str:
    """Return the sentence that none of ``models`` models beats its floor."""
    if models == 1:
        return floor_sentence(floors[0])
    verb = "beats" if all(floor.loses for floor in floors) else "is shown to beat"
    policies = list(dict.fromkeys(floor.policy.label for floor in floors))
    compared = floors[0].basis.metric.compared
    subject = "Neither model" if models == 2 else f"None of the {models} models"
    several = len(policies) > 1
    scores = "; ".join(
        f"{floor.model.label} {floor.describe(f' of {floor.policy.label}' if several else '')}" for floor in floors
    )
    return f"{subject} {verb} {join_names(policies)} {compared}: {scores}."


def floor_sentence(floor: Floor) -> str:
    """Return the sentence that a run beats its floor, or does not."""
    return f"{floor.model.label} {floor.verb} {floor.policy.label} {floor.basis.metric.compared}: {floor.describe()}."


def rules_sentence(policies: Iterable[RunView]) -> str:
    """Return the sentence that policies are rules and no candidates; "" without any."""
    return policies_sentence({policy.label: str(policy.spec.get("model")) for policy in policies})
