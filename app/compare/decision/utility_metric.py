"""Utility under a user's costs as the metric of a recommendation, and the best run at each cost ratio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.compare.decision.resource_limits import Limits
from app.compare.decision.target_metric import ConditionShares, TargetMetric
from app.compare.decision.target_shares import TargetShares, target_shares
from app.compare.runs.run_view import RunView, RunViews
from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError
from benchmarks.tables.abstention_quality import EQUAL_COSTS, RATIOS, Costs, at_ratio, response_places
from benchmarks.vocabulary import Cell, Estimate, Table

UTILITY = "utility"

_COLUMNS = ("best run", "utility", "next", "lead", "floor", "utility of the floor")


@dataclass(frozen=True, slots=True)
class UserCosts:
    """A user's costs, and the share of conflicts among the user's questions; None takes the answers as they are."""

    costs: Costs = EQUAL_COSTS
    conflict_share: float | None = None

    def __post_init__(self) -> None:
        ranges.CONFLICT_SHARE.check("the share of conflicts", self.conflict_share)

    def __str__(self) -> str:
        mix = "" if self.conflict_share is None else f", with conflicts in {self.conflict_share:.0%} of the questions"
        return f"{self.costs}{mix}"


def has_costs(user: UserCosts | None) -> bool:
    """Return whether a user's mistakes cost differently, so that the utility decides."""
    return user is not None and user.costs != EQUAL_COSTS


def parse_requirements(text: str) -> tuple[UserCosts | None, Limits]:
    """Return the costs and the limits in "wrong=1,needless=0.2,conflict=0.1,memory=8,seconds=2,disk=5".

    ``conflict`` is the share of conflicts. Without a cost or that share, the costs are None.
    """
    numbers, costs = dict[str, float](), list[str]()
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = (part.strip() for part in item.partition("="))
        if name not in ("conflict", "memory", "seconds", "disk"):
            costs.append(item)
            continue
        try:
            numbers[name] = float(number)
        except ValueError:
            raise SpecError(f"{item!r} has no number; write as in conflict=0.1,memory=8,seconds=2,disk=5.") from None
    conflict_share = numbers.pop("conflict", None)
    user = UserCosts(Costs.parse(",".join(costs)), conflict_share) if costs or conflict_share is not None else None
    return user, Limits(**numbers)


def utility_target(views: RunViews, user: UserCosts) -> TargetMetric:
    """Return the utility under a user's costs as a metric that decides.

    Raises:
        SpecError: No label of the benchmark abstains.
    """
    benchmark, metrics, rule = views.benchmark, views.label_metrics, views.benchmark.abstention
    if rule is None:
        raise SpecError(
            f"no label of {benchmark.name} says that an answer abstains, so costs cannot be counted; leave --costs out."
        )
    utilities = user.costs.utilities()
    scores = np.zeros((len(metrics.conditions), len(metrics.labels)))
    for (condition, label), (situation, response) in response_places(benchmark, rule).items():
        scores[metrics.conditions.index(condition), metrics.labels.index(label)] = utilities[situation][response]
    under_conflict = np.array([condition in rule.conflict for condition in metrics.conditions])
    mix = None if user.conflict_share is None else ConditionShares(under_conflict, user.conflict_share)
    note = f"utility: 1 for an answer without a cost, 0 for the costliest mistake; costs: {user}"
    return TargetMetric(UTILITY, scores, mix=mix, note=note, counts_no_answer=True)


def cost_ratios_table(
    models: Sequence[RunView], policies: Sequence[RunView], views: RunViews, user: UserCosts
) -> Table:
    """Return the model with the highest utility at each cost ratio, its lead over the next, and its floor."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for name, needless in RATIOS.items():
        at = replace(user, costs=at_ratio(needless, user.costs))
        rows.append((name, _row(models, policies, replace(views, runs=tuple(models)), utility_target(views, at))))
    others = max(1, len(models) - 1)
    notes = (
        "Rows: the cost of a needless abstention to that of a wrong answer. A missed conflict costs "
        f"{_ratio(user.costs.missed, user.costs.wrong)} a wrong answer."
        + ("" if user.conflict_share is None else f" {user.conflict_share:.0%} of the questions have a conflict."),
        f"lead: the difference to the next with its 95% interval, over clusters"
        f"{f', corrected for {others} other runs' if others > 1 else ''}; where it contains 0, either may be the better one.",
        "floor: the policy, a rule that answers without looking, with the highest utility over the answers that count in both; "
        "where that is higher, the model is not worth its cost.",
    )
    return Table("cost-ratios", "The best run at each cost ratio", _COLUMNS, tuple(rows), notes)


def _ratio(missed: float, wrong: float) -> str:
    if missed == wrong:
        return "as much as"
    return f"{missed / wrong:g} times" if wrong else "more than"


def _row(
    models: Sequence[RunView], policies: Sequence[RunView], views: RunViews, target: TargetMetric
) -> tuple[Cell, ...]:
    shares = target_shares(views, target)
    best, n = shares.best, len(shares.group)
    order = sorted((i for i in range(len(models)) if i != best), key=lambda i: -float(shares.shares[i]))
    lead: Cell = Estimate(None, reason="there is one model")
    if order:
        difference = shares.difference(best, order[0])
        lead = Estimate(difference.value, *shares.interval(best, order[0], 1 - 0.05 / len(order)), n)
    policy, policy_utility = _best_policy(models[best], policies, views, target)
    best_utility = Estimate(float(shares.shares[best]), n=n)
    return (models[best].label, best_utility, models[order[0]].label if order else "", lead, policy, policy_utility)


def _best_policy(
    model: RunView, policies: Sequence[RunView], views: RunViews, target: TargetMetric
) -> tuple[str, Estimate]:
    utilities: list[tuple[float, str, TargetShares]] = []
    for policy in policies:
        try:
            shares = target_shares(replace(views, runs=(model, policy)), target)
        except SpecError:  # no answer counts in both
            continue
        utilities.append((float(shares.shares[1]), policy.label, shares))
    if not utilities:
        return "", Estimate(None, reason="no policy is among the runs")
    highest, label, shares = max(utilities, key=lambda entry: entry[0])
    return label, Estimate(highest, n=len(shares.group))
