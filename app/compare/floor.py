"""Floors: what policies, which look at nothing, score beside the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.compare.non_inferiority import TargetMetric, TargetShares, basis, points
from app.compare.run_view import RunView, RunViews
from app.report.competence import listed
from benchmarks.errors import SpecError


@dataclass(frozen=True)
class Floor:
    """One model beside one policy, over the answers that both have labelled."""

    basis: TargetShares

    @property
    def model(self) -> RunView:
        return self.basis.sides.sides[0]

    @property
    def policy(self) -> RunView:
        return self.basis.sides.sides[1]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of how much better the model does."""
        return self.basis.difference(0, 1).interval()

    @property
    def beats(self) -> bool:
        """Return whether the model is shown to do better."""
        return self.interval[0] > 0

    @property
    def loses(self) -> bool:
        """Return whether the model is shown to do worse."""
        return self.interval[1] < 0

    def figures(self, against: str = "") -> str:
        """Both shares, and the first less the second in points with its interval; ``against`` names the policy."""
        (mine, theirs), (low, high) = self.basis.shares, self.interval
        more = self.basis.difference(0, 1).value
        if self.basis.measure.lower_is_better:
            more, low, high = -more, -high, -low
        interval = f"{points(low, sign=True)} to {points(high, sign=True)} at 95%"
        return f"{mine:.1%} against {theirs:.1%}{against} ({points(more, sign=True)} points; {interval})"


def floors(
    models: Sequence[RunView], policies: Sequence[RunView], sides: RunViews, measure: TargetMetric
) -> list[Floor]:
    """Put each model beside the policy that it is furthest from beating; a model that shares no answer with one is left out."""
    lowest = []
    for model in models:
        beside = []
        for policy in policies:
            try:
                beside.append(Floor(basis(replace(sides, sides=(model, policy)), measure)))
            except SpecError:  # nothing that both have labelled
                continue
        if beside:
            lowest.append(min(beside, key=lambda floor: floor.interval[0]))
    return lowest


def none_beats(beside: Sequence[Floor], models: int) -> str:
    """Say that none of ``models`` beats its floor."""
    verb = "beats" if all(floor.loses for floor in beside) else "is shown to beat"
    policies = list(dict.fromkeys(floor.policy.label for floor in beside))
    if models == 1:
        verb = f"does worse than {policies[0]}" if beside[0].loses else f"is not shown to beat {policies[0]}"
        return f"{beside[0].model.label} {verb}, which looks at nothing: {beside[0].figures()}."
    subject = "Neither model" if models == 2 else f"None of the {models} models"
    several = len(policies) > 1
    figures = "; ".join(
        f"{floor.model.label} {floor.figures(f' of {floor.policy.label}' if several else '')}" for floor in beside
    )
    look = "which look at nothing" if several else "which looks at nothing"
    return f"{subject} {verb} {listed(policies)}, {look}: {figures}."


def beside_floor(floor: Floor) -> str:
    """Say whether one run beats its floor."""
    verb = "beats" if floor.beats else "does worse than" if floor.loses else "is not shown to beat"
    return f"{floor.model.label} {verb} {floor.policy.label}: {floor.figures()}."
