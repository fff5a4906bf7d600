"""Obedience to what a user says should win: the metric of a recommendation, and what bounds it from above."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from app.compare.decision.target_metric import ConditionShares, TargetMetric, target_metric
from app.compare.differences.lost_and_gained import acts_of_answers
from app.compare.runs.run_view import RunView, RunViews
from benchmarks import number_ranges as ranges
from benchmarks.answer_behaviour import (
    ACTS,
    AGREES,
    FOLLOWS,
    NEEDS,
    act_of_label,
    check_rule,
    gives_right,
    name_rules,
    names_sources,
    needs_of,
)
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Estimate

OBEDIENCE = "obedience"
_ROW_RULES = (*FOLLOWS, "")


def rules_of(views: RunViews, rule: str | None) -> Counter[str]:
    """Return the number of the runs' answers under conflict by what should win there: by its row, else by ``rule``, else ""."""
    counts: Counter[str] = Counter()
    for run in views.runs:
        coded = run.coded
        under_conflict = coded.condition_codes(dict.fromkeys(views.benchmark.conflicts, 0)) == 0
        numbers = np.bincount(coded.rule[under_conflict], minlength=len(coded.rules)).tolist()
        for name, count in zip(coded.rules, numbers, strict=True):
            counts[name or rule or ""] += count
    return +counts


def decisive_target(views: RunViews, rule: str | None) -> TargetMetric:
    """Return what decides between models: obedience where a rule is named or all rows have their own, else the accuracy."""
    decides = rule is not None or rule_of_rows(views)
    return trust_target(views, rule) if decides else target_metric(views, None)


def rule_of_rows(views: RunViews) -> str:
    """Return the rule of the rows under conflict as one word; "" where some have none, or the labels name no source."""
    return name_rules(rules_of(views, None)) if names_sources(views.benchmark) else ""


def trust_target(views: RunViews, rule: str | None, conflict_share: float | None = None) -> TargetMetric:
    """Return the share of answers that follow a rule: under conflict its acts, where sources agree their value.

    The rule is a row's own where it has one, else ``rule``; None where all have one. ``conflict_share`` is the share of the
    user's questions whose sources disagree; None takes the answers as they are.

    Raises:
        SpecError: There is no such rule, or the benchmark's labels name no source.
    """
    check_rule(rule)
    ranges.CONFLICT_SHARE.check("--conflict-share", conflict_share)
    benchmark, metrics = views.benchmark, views.label_metrics
    if not names_sources(benchmark):
        raise SpecError(f"the labels of {benchmark.name} do not say which source an answer follows; leave --trust out.")
    under_conflict = np.array([condition in benchmark.conflicts for condition in metrics.conditions])
    acts = [act_of_label(label) for label in metrics.labels]
    agrees = np.array([act in AGREES for act in acts])
    hits = []
    for name in _ROW_RULES:
        rule_acts = FOLLOWS.get(name or rule or "", frozenset())
        hits.append(np.where(under_conflict[:, None], np.array([act in rule_acts for act in acts]), agrees))
    mix = None if conflict_share is None else ConditionShares(under_conflict, conflict_share)
    weighted = "" if conflict_share is None else f", with conflicts in {conflict_share:.0%} of the questions"
    decides = name_rules(rules_of(views, rule)) or rule
    note = (
        f"{OBEDIENCE}, the share of answers that follow the rule ({decides}) where the sources disagree, and elsewhere give "
        f"the value on which they agree{weighted}"
    )
    return TargetMetric(
        OBEDIENCE,
        np.concatenate(hits),
        mix=mix,
        note=note,
        counts_no_answer=True,
        rules=_ROW_RULES,
        clause=f"in following your rule ({OBEDIENCE})",
    )


def reading_targets(views: RunViews) -> dict[str, TargetMetric | None]:
    """Return for each source the share of answers to it alone that give its value, as the scorecard counts them.

    It is None where that was not asked in all runs. There is no source where the benchmark's labels name none.
    """
    if not names_sources(views.benchmark):
        return {}
    acts = [act_of_label(label) for label in views.label_metrics.labels]
    return {
        source: TargetMetric(
            f"reading the {source} alone",
            np.array([[act in (source, "both") for act in acts]]),
            counts_no_answer=True,
            source=source,
        )
        if all((run.coded.source_codes({source: 0}) == 0).any() for run in views.runs)
        else None
        for source in ("image", "text")
    }


def ceiling(run: RunView, views: RunViews, rule: str | None) -> Estimate:
    """Return the share of a run's answers under conflict to examples whose needed sources it reads alone.

    It is n/a where these were not asked alone. A model that knew what should win could follow the rule there.
    """
    benchmark, coded = views.benchmark, run.coded
    reads: dict[tuple[int, str], bool] = {}
    conflicts: list[tuple[int, str]] = []
    for place, answer in enumerate(coded.values()):
        group = int(coded.group[place])
        if answer.single_source in ("image", "text"):
            act = act_of_label(answer.outcome) if answer.outcome in benchmark.labels else ""
            known = act in (answer.single_source, "both")
            reads[group, answer.single_source] = known or reads.get((group, answer.single_source), False)
        elif answer.condition in benchmark.conflicts and (wins := answer.rule or rule):
            conflicts.append((place, wins))
    asked, able = [], []
    for place, wins in conflicts:
        needed = [(int(coded.group[place]), source) for source in NEEDS[wins]]
        if all(source in reads for source in needed):
            asked.append(place)
            able.append(all(reads[source] for source in needed))
    share = coded.clusters.at(np.array(asked, dtype=np.int64)).mean(able)
    needs = needs_of({wins for _, wins in conflicts} or {rule or "flag"})
    return share if share.n else Estimate(None, reason=f"{needs} were not asked alone")


def truth(run: RunView, views: RunViews) -> Estimate:
    """Return the share of a run's answers under conflict that give the right value, whatever should win."""
    benchmark, coded = views.benchmark, run.coded
    acts, labels, conflicts = [*ACTS], [*benchmark.labels], [*benchmark.conflicts]
    act = acts_of_answers(coded, benchmark)
    condition = coded.condition_codes({name: place for place, name in enumerate(conflicts)})
    label = coded.outcome_codes({name: place for place, name in enumerate(labels)})
    counted = (condition >= 0) & (act >= 0)
    cells, cell_of = np.unique(np.stack([condition, label, act])[:, counted], axis=1, return_inverse=True)
    right = [
        gives_right(benchmark, conflicts[c], labels[of] if of >= 0 else "", acts[does])
        for c, of, does in cells.T.tolist()
    ]
    missing = int(((condition >= 0) & (act < 0)).sum())
    if not right:
        return Estimate(None, reason="no answer under conflict counts", missing=missing)
    return replace(coded.clusters.at(counted).mean(np.array(right, dtype=float)[cell_of.ravel()]), missing=missing)
