"""Floors: the scores of policies, which read no input, as lower bounds for models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.compare.non_inferiority import TargetMetric, TargetShares, format_points, target_shares
from app.compare.run_view import RunView, RunViews
from app.report.competence import join_names
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

    def describe(self, against: str = "") -> str:
        """Return both shares and their difference in points with its interval; ``against`` names the policy."""
        (model, policy), (low, high) = self.basis.shares, self.interval
        lead = self.basis.difference(0, 1).value
        if self.basis.metric.lower_is_better:
            lead, low, high = -lead, -high, -low
        interval = f"{span(format_points(low, sign=True), format_points(high, sign=True))} at 95%"
        return f"{model:.1%} against {policy:.1%}{against} ({format_points(lead, sign=True)} points; {interval})"


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
    verb = "beats" if all(floor.loses for floor in floors) else "significantly beats"
    policies = list(dict.fromkeys(floor.policy.label for floor in floors))
    if models == 1:
        verb = f"does worse than {policies[0]}" if floors[0].loses else f"does not significantly beat {policies[0]}"
        return f"{floors[0].model.label} {verb}, which reads no input, {floors[0].basis.metric.compared}: {floors[0].describe()}."
    compared = floors[0].basis.metric.compared
    subject = "Neither model" if models == 2 else f"None of the {models} models"
    several = len(policies) > 1
    scores = "; ".join(
        f"{floor.model.label} {floor.describe(f' of {floor.policy.label}' if several else '')}" for floor in floors
    )
    clause = "which read no input" if several else "which reads no input"
    return f"{subject} {verb} {join_names(policies)}, {clause}, {compared}: {scores}."


def floor_sentence(floor: Floor) -> str:
    """Return the sentence that a run beats its floor, or does not."""
    verb = "beats" if floor.beats else "does worse than" if floor.loses else "does not significantly beat"
    return f"{floor.model.label} {verb} {floor.policy.label} {floor.basis.metric.compared}: {floor.describe()}."
