"""Recommendations: the recommended run, its behaviour against the best run, and what remains unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from app.compare.decision.against_policies import hardest_floors
from app.compare.decision.resource_limits import NO_LIMITS, Limits, within_limits
from app.compare.decision.target_metric import TargetMetric, target_metric
from app.compare.decision.target_shares import TargetShares, target_shares
from app.compare.decision.trust_metric import ceiling, rules_of, trust_target
from app.compare.decision.utility_metric import UserCosts, cost_ratios_table, has_costs, utility_target
from app.compare.recommend.recommendation_advice import (
    advice,
    bounds_sentence,
    missing_sentence,
    summary,
    unreliable_sentence,
)
from app.compare.recommend.recommendation_caveats import caveats
from app.compare.recommend.recommendation_evidence import Evidence, RuleLead
from app.compare.recommend.recommendation_table import recommendation_table, single_sources_table
from app.compare.recommend.recommended_behaviour import behaviour
from app.compare.recommend.recommended_runs import Decision, decide
from app.compare.runs.decision_scores import missing_answers
from app.compare.runs.run_pairs import label_codes
from app.compare.runs.run_view import RunView, RunViews, reject_duplicates, split_policies
from app.compare.runs.view_reader import load_views
from app.report.tables.remedy_advice import remedies, remedies_title
from app.report.tables.single_source_accuracy import Counted, CountedAnswers
from benchmarks import number_ranges as ranges
from benchmarks.answer_behaviour import name_rules, names_sources
from benchmarks.errors import SpecError
from benchmarks.vocabulary import RULES, Estimate, Table


@dataclass(frozen=True)
class Recommendation:
    """A recommendation: advice, the recommended run's behaviour against the best run, and caveats.

    The decision is among the models; policies are their floors. ``single_sources`` has the share of right answers where a
    prompt has one source only, for benchmarks with such prompts.
    """

    decision: Decision
    table: Table
    advice: tuple[str, ...]
    behaviour: tuple[str, ...]
    caveats: tuple[str, ...]
    single_sources: Table | None = None
    cost_ratios: Table | None = None
    """The best run at each cost ratio, for benchmarks whose labels tell abstentions."""
    summary: str = ""
    """The advice in one to three short sentences, without intervals."""
    to_try: tuple[str, tuple[str, ...]] = ("", ())
    """What to try with the recommended run's model, or with the best one's: a title, and its lines."""
    missing: str = ""
    """A sentence on the missing answers, if they could change the advice, which has it too."""
    bounds: str = ""
    """A sentence on the floor and the ceiling of the best model under a rule, and on both extremes of the share of conflicts."""
    by_rule: Mapping[str, RuleLead] = field(default_factory=dict)
    """The leaders by rule, over own documents for which the user has not said what should win."""
    unreliable: str = ""
    """Why the recommended run is not to be relied on, if anything speaks against it; the advice has it too."""

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """The sentences behind the summary, by title."""
        return _without_empty(
            {"Reasons": self.advice if self.advice != (self.summary,) else (), "Differences": self.behaviour}
        )

    @property
    def open_questions(self) -> dict[str, tuple[str, ...]]:
        """The sentences on what may change the recommendation, by title."""
        return _without_empty({"Not established": self.caveats, self.to_try[0]: self.to_try[1]})


def _without_empty(sections: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {title: lines for title, lines in sections.items() if lines}


def recommend(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
    user: UserCosts | None = None,
    limits: Limits = NO_LIMITS,
    trust: str | None = None,
) -> Recommendation:
    """Recommend one of the runs in ``folders``, at a loss of at most ``margin`` in ``metric`` (None: the accuracy).

    With the costs of a ``user``, the utility under them decides; with ``trust``, obedience to that rule, or to the row's own.
    Where all rows under conflict have one and nothing else is asked for, no ``trust`` is needed. Runs beyond ``limits`` are not
    recommended.

    Raises:
        SpecError: Nothing can be compared, or the metric is no share of all answers.
    """
    reject_duplicates(folders)
    if len(folders) < 2:
        raise SpecError("one run is not a choice; name two or more.")
    return recommend_views(
        load_views(folders, judge=judge),
        margin=margin,
        metric=metric,
        lower_is_better=lower_is_better,
        user=user,
        limits=limits,
        trust=trust,
    )


def recommend_views(
    views: RunViews,
    *,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
    user: UserCosts | None = None,
    limits: Limits = NO_LIMITS,
    trust: str | None = None,
) -> Recommendation:
    """Recommend one of the loaded runs as :func:`recommend` does."""
    ranges.MARGIN.check("--margin", margin)
    has_metric = metric is not None or lower_is_better
    _check_options(has_metric, user, trust)
    all_models, policies = split_policies(views)
    models, beyond = _some_within(limits, all_models)
    rules = rules_of(views, trust) if names_sources(views.benchmark) else Counter[str]()
    obeys = trust is not None or (not has_metric and not has_costs(user) and bool(name_rules(rules)))
    target = _target(views, metric, lower_is_better, user, trust, obeys=obeys)
    shares = target_shares(replace(views, runs=models or policies or views.runs), target)
    if shares.examples < 2:
        raise SpecError("these runs have one labelled example in common, which decides nothing; run more of them.")
    decision = decide(shares, margin)
    if not models:
        decision = replace(decision, holds=(), least_memory=None, smallest_on_disk=None, fastest=None)
    evidence = Evidence(
        decision,
        tuple(hardest_floors(models, policies, views, target)),
        {run.label: _counted_answers(run, views).sources for run in models},
        bool(models),
        tuple(beyond),
        {run.label: missing_answers(run, views.label_metrics, target.hits, decision=True) for run in models},
    )
    if obeys:
        evidence = _with_rule(evidence, models, views, trust, has_mix=target.mix is not None)
    else:
        evidence = replace(
            evidence,
            by_rule=_by_rule(models, views) if user is None and metric is None else {},
            by_rows=_by_rows(rules) if views.own_rows_only else "",
        )
    return Recommendation(
        decision,
        recommendation_table(decision, policies if models else (), views, target),
        tuple(advice(evidence)),
        tuple(behaviour(decision)),
        tuple(caveats(evidence, views)),
        single_sources_table(evidence.readings),
        _cost_ratios(models, policies, views, user),
        summary(evidence) or " ".join(advice(evidence)[:1]),
        _to_try(decision, views) if models else ("", ()),
        missing_sentence(evidence),
        bounds_sentence(evidence),
        evidence.by_rule,
        unreliable_sentence(evidence) if models else "",
    )


def _check_options(has_metric: bool, user: UserCosts | None, trust: str | None) -> None:
    """Raise SpecError if several options name what decides."""
    if user is not None and has_metric:
        raise SpecError("costs decide by the utility; leave --metric and --lower-is-better out, or the costs.")
    if trust is not None and (has_costs(user) or has_metric):
        raise SpecError("--trust decides by what should win; leave --costs, --metric and --lower-is-better out.")


def _some_within(limits: Limits, models: Sequence[RunView]) -> tuple[tuple[RunView, ...], list[str]]:
    """Return what :func:`within_limits` does. Raises SpecError if none is within."""
    within, beyond = within_limits(models, limits)
    if models and not within:
        raise SpecError(f"no model is within {limits}: {' '.join(beyond)} Raise a limit, or add a smaller model's run.")
    return within, beyond


def _target(
    views: RunViews,
    metric: str | None,
    lower_is_better: bool,
    user: UserCosts | None,
    trust: str | None,
    *,
    obeys: bool,
) -> TargetMetric:
    """Return what decides: obedience, the utility under a user's costs, or a metric."""
    if obeys:
        return trust_target(views, trust, None if user is None else user.conflict_share)
    if user is not None:
        return utility_target(views, user)
    return target_metric(views, metric, lower_is_better=lower_is_better)


def _with_rule(
    evidence: Evidence, models: Sequence[RunView], views: RunViews, trust: str | None, *, has_mix: bool
) -> Evidence:
    """Return the evidence with how far models follow the rule, and could follow it."""
    decision = evidence.decision
    return replace(
        evidence,
        ceilings={run.label: ceiling(run, views, trust) for run in models},
        ends=None if has_mix else _ends(decision.basis.views.runs[decision.subject], views, trust),
        follows={run.label: share for run in models if (share := _follows(run, views, trust)) is not None},
    )


def _by_rule(models: Sequence[RunView], views: RunViews) -> dict[str, RuleLead]:
    """Return for each rule how often the runs follow it under conflict; nothing where the data are not the user's own."""
    if not models or not views.own_rows_only or not names_sources(views.benchmark):
        return {}
    leads = {}
    for rule in RULES:
        try:
            shares = target_shares(replace(views, runs=tuple(models)), trust_target(views, rule, conflict_share=1.0))
        except SpecError:  # no answer counts for it in all runs
            continue
        order = sorted(range(len(models)), key=lambda run: -float(shares.shares[run]))
        is_shown = all(shares.interval(order[0], other)[0] > 0 for other in order[1:])
        leads[rule] = RuleLead(tuple((models[run].label, _share_of(shares, run)) for run in order), is_shown)
    return leads


def _by_rows(rules: Mapping[str, int]) -> str:
    """Return for how many of the answers under conflict their rows say what should win; empty where none does."""
    ruled, every = sum(count for rule, count in rules.items() if rule), sum(rules.values())
    if not ruled:
        return ""
    return (
        f"The rows themselves say it for {ruled:,} of {every:,} answers under conflict; what you say is for the others."
    )


def _ends(run: RunView, views: RunViews, rule: str | None) -> tuple[Estimate, Estimate] | None:
    """Return a run's obedience if no question had a conflict, and if all had; None if it was not asked both."""
    try:
        without, every = (
            _share_of(target_shares(replace(views, runs=(run,)), trust_target(views, rule, share)), 0)
            for share in (0.0, 1.0)
        )
    except SpecError:
        return None
    return without, every


def _follows(run: RunView, views: RunViews, rule: str | None) -> float | None:
    """Return the share of conflicts in which a run follows the rule; None without any."""
    try:
        return float(target_shares(replace(views, runs=(run,)), trust_target(views, rule, 1.0)).shares[0])
    except SpecError:
        return None


def _share_of(shares: TargetShares, run: int) -> Estimate:
    """Return a run's share with its interval."""
    return shares.clusters.mean(shares.hit[:, run], shares.weight)


def _to_try(decision: Decision, views: RunViews) -> tuple[str, tuple[str, ...]]:
    """Return what to try with the recommended run's model; where none is recommended, with the best one's."""
    choices = (decision.smallest, decision.fastest, *decision.holds, decision.basis.best)
    run = decision.basis.views.runs[next(choice for choice in choices if choice is not None)]
    steps = remedies(run.name, run.spec, views.benchmark, _counted_answers(run, views))
    return remedies_title(f"with {run.label}"), tuple(map(str, steps))


def _cost_ratios(
    models: Sequence[RunView], policies: Sequence[RunView], views: RunViews, user: UserCosts | None
) -> Table | None:
    if not models or views.benchmark.abstention is None:
        return None
    try:
        return cost_ratios_table(models, policies, views, user or UserCosts())
    except SpecError:  # no answer that counts for the utility is labelled in all runs
        return None


def _counted_answers(run: RunView, views: RunViews) -> CountedAnswers:
    benchmark = views.benchmark
    codes = label_codes(views.label_metrics)
    places, keys, missing = [], list[Counted](), Counter[str]()
    for place, answer in enumerate(run.coded.values()):
        if (code := codes.get(answer.outcome)) is None:
            missing[answer.single_source] += 1
            continue
        is_right = benchmark.correct(answer.condition, benchmark.labels[code])
        places.append(place)
        keys.append((answer.condition, answer.single_source, is_right))
    return CountedAnswers(keys, run.coded.clusters.at(np.array(places, dtype=np.int64)), missing)
