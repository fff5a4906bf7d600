"""Obedience to what a user says should win: the metric of a recommendation, and what bounds it from above."""

from __future__ import annotations

import numpy as np

from app.compare.non_inferiority import ConditionShares, TargetMetric
from app.compare.run_view import RunView, RunViews
from benchmarks import number_ranges as ranges
from benchmarks.errors import SpecError
from benchmarks.scorecard import AGREES, FOLLOWS, NEEDS, act_of_label, check_rule, has_scorecard
from benchmarks.vocabulary import Estimate

OBEDIENCE = "obedience"


def trust_target(views: RunViews, rule: str, conflict_share: float | None = None) -> TargetMetric:
    """Return the share of answers that follow a rule: under conflict its acts, where sources agree their value.

    ``conflict_share`` is the share of the user's questions whose sources disagree; None takes the answers as they are.

    Raises:
        SpecError: There is no such rule, or the benchmark's labels name no source.
    """
    check_rule(rule)
    ranges.CONFLICT_SHARE.check("--conflict-share", conflict_share)
    benchmark, metrics = views.benchmark, views.label_metrics
    if not has_scorecard(benchmark):
        raise SpecError(f"the labels of {benchmark.name} do not say which source an answer follows; leave --trust out.")
    under_conflict = np.array([condition in benchmark.conflicts for condition in metrics.conditions])
    acts = [act_of_label(label) for label in metrics.labels]
    follows, agrees = (np.array([act in of for act in acts]) for of in (FOLLOWS[rule], AGREES))
    hits = np.where(under_conflict[:, None], follows, agrees)
    mix = None if conflict_share is None else ConditionShares(under_conflict, conflict_share)
    weighted = "" if conflict_share is None else f", with conflicts in {conflict_share:.0%} of the questions"
    note = f"{OBEDIENCE} ({rule}): the share of answers that do, or give the value on which the sources agree{weighted}"
    return TargetMetric(OBEDIENCE, hits, mix=mix, note=note, counts_no_answer=True)


def ceiling(run: RunView, views: RunViews, rule: str) -> Estimate:
    """Return the share of a run's answers under conflict to examples whose needed sources it reads alone.

    It is n/a where these were not asked alone. A model that knew what should win could follow the rule there.
    """
    benchmark, coded = views.benchmark, run.coded
    reads: dict[tuple[int, str], bool] = {}
    conflicts = []
    for place, answer in enumerate(coded.values()):
        group = int(coded.group[place])
        if answer.single_source in NEEDS[rule]:
            act = act_of_label(answer.outcome) if answer.outcome in benchmark.labels else ""
            known = act in (answer.single_source, "both")
            reads[group, answer.single_source] = known or reads.get((group, answer.single_source), False)
        elif answer.condition in benchmark.conflicts:
            conflicts.append(place)
    asked = [place for place in conflicts if all((int(coded.group[place]), source) in reads for source in NEEDS[rule])]
    able = [all(reads[int(coded.group[place]), source] for source in NEEDS[rule]) for place in asked]
    share = coded.clusters.at(np.array(asked, dtype=np.int64)).mean(able)
    return share if share.n else Estimate(None, reason=f"the {' and the '.join(NEEDS[rule])} were not asked alone")
