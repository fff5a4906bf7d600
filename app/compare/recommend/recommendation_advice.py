"""The advice of a recommendation, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from app.compare.decision.against_policies import floor_sentence, none_beats_sentence, rules_sentence
from app.compare.recommend.choice_sentences import brief_choice, choice_lines
from app.compare.recommend.recommendation_evidence import Evidence, RuleLead
from app.compare.recommend.recommended_runs import Decision
from app.report.tables.single_source_accuracy import join_names, unread_sentence
from benchmarks.stats.intervals import few_pages, percent, span
from benchmarks.vocabulary import RULES, Estimate
from mlx_backends.policy_engine import policy_description

_NO_MODEL = (
    "There is no model among these runs. Policies are rules that answer without looking: the floor that a model must beat. "
    "Add a model's run."
)
_CHOICE = "should win where your sources disagree."
_MOST_NAMED = 3
"""The most models that are named behind the first."""
_HALF = 0.5
"""The share of conflicts below which a model that follows a rule is not to be relied on."""


def advice(evidence: Evidence) -> list[str]:
    """Return the advice.

    The objections to all runs come first, then the recommendation, then the objections to the recommended run.
    """
    if not evidence.models:
        return [_NO_MODEL]
    opening, rules = list[str](), _rules_of_floors(evidence)
    first: list[str] = []
    last: list[str] = []
    for source, failing in evidence.unread.items():
        accuracies = {run: evidence.readings[run][source] for run in failing}
        sentence = unread_sentence(source, accuracies, len(evidence.readings))
        (first if len(failing) == len(evidence.readings) else last).append(sentence)
    decision = evidence.decision
    recommended_runs = _recommended(decision)
    if evidence.is_unbeaten:
        opening = [f"{rules} {none_beats_sentence(evidence.floors, len(evidence.readings))}"]
    else:
        beaten = [
            floor_sentence(floor) for run in sorted(recommended_runs) if (floor := evidence.floor(run)) is not None
        ]
        is_first = bool(evidence.by_rule) or not beaten
        opening = [rules] if rules and is_first else []
        last = [*beaten, *([] if is_first else [rules]), *last]
    lines = [*first, *choice_lines(evidence), *last]
    unreliable = [*filter(None, [unreliable_sentence(evidence)])]
    if evidence.by_rule:
        lines = [*opening, _asks(evidence), *unreliable, *_rules(evidence), *lines]
    else:
        lines = [*unreliable, *opening, *lines]
    if lines:
        lines[0] = " ".join(filter(None, [lines[0], bounds_sentence(evidence), change_sentence(evidence)]))
    return lines


def _rules_of_floors(evidence: Evidence) -> str:
    """Return that the policies that set floors are no candidates; "" without any."""
    return rules_sentence({floor.policy.label: floor.policy for floor in evidence.floors}.values())


def _asks(evidence: Evidence) -> str:
    """Return what the choice of a model depends on, or how good the only one is."""
    runs = evidence.decision.basis.views.runs
    if len(runs) > 1 and not any(lead.is_shown for lead in evidence.by_rule.values()):
        return f"No run can be recommended yet: no difference is shown, whatever {_CHOICE}"
    return f"{f'How good {runs[0].label} is' if len(runs) == 1 else 'Which model is better'} depends on what {_CHOICE}"


def _rules(evidence: Evidence) -> list[str]:
    return [*rule_sentences(evidence.by_rule), *filter(None, [evidence.by_rows])]


def rule_sentences(by_rule: Mapping[str, RuleLead]) -> list[str]:
    """Return the sentence of each rule."""
    return [f"If {RULES[rule]}: {rule_clause(rule, lead)}" for rule, lead in by_rule.items()]


def rule_clause(rule: str, lead: RuleLead, *, brief: bool = False) -> str:
    """Return how often the models follow a rule; if ``brief``, in whole percent without intervals."""
    does = "flags it" if rule == "flag" else "follows it"
    (best, share), *others = lead.shares
    if not share.value:
        return f"no model here {does}."
    interval = ""
    if share.low is not None and share.high is not None and not brief:
        interval = f" ({span(f'{share.low:.1%}', f'{share.high:.1%}')} at 95%)"

    def often(of: Estimate) -> str:
        return percent(of) if brief else f"{of.value:.1%}"

    rest = "".join(f", {label} in {often(of)}" for label, of in others[:_MOST_NAMED])
    most = " most," if others and lead.is_shown else ""
    only = "" if others or brief else ", the only model here,"
    unknown = "no difference is shown; " if others and not lead.is_shown else ""
    return f"{unknown}{best}{only} {does}{most} in {often(share)} of conflicts{interval}{rest}."


def summary(evidence: Evidence) -> str:
    """Return the advice in short: the recommended run, and the objections to all runs."""
    if not evidence.models:
        return _NO_MODEL
    floor = _floor_summary(evidence)
    if evidence.by_rule:
        return " ".join(filter(None, [*floor, _asks(evidence), unreliable_sentence(evidence), *_rules(evidence)]))
    shares = evidence.decision.basis
    labels = [run.label for run in shares.views.runs]
    sentences = [*filter(None, [unreliable_sentence(evidence)]), *(floor if evidence.is_unbeaten else ())]
    sentences += [brief_choice(evidence)] if len(labels) > 1 else []
    sentences += [
        f"No model reads the {source}s." for source, failing in evidence.unread.items() if len(failing) == len(labels)
    ]
    if sentences and not evidence.is_unbeaten:
        sentences += floor
    return " ".join(filter(None, [*sentences, change_sentence(evidence) if sentences else ""]))


def _floor_summary(evidence: Evidence) -> list[str]:
    """Return that the policies that set floors are no candidates, and if no model beats them, that none does."""
    rules = [*filter(None, [_rules_of_floors(evidence)])]
    if not evidence.is_unbeaten:
        return rules
    policies = join_names(list(dict.fromkeys(floor.policy.label for floor in evidence.floors)))
    labels = [run.label for run in evidence.decision.basis.views.runs]
    subject = "No model is shown to beat" if len(labels) > 1 else f"{labels[0]} {evidence.floors[0].verb}"
    shares = f": {evidence.floors[0].percentages()}" if len(labels) == 1 else ""
    return [*rules, f"{subject} {policies} {evidence.decision.basis.metric.compared}{shares}."]


def bounds_sentence(evidence: Evidence) -> str:
    """Return between which ends a model's share lies: its hardest policy's, and what it could reach by what it reads.

    The model is the one that is recommended, or else the best.
    """
    shares, subject = evidence.decision.basis, evidence.decision.subject
    run = shares.views.runs[subject].label
    top, floor = evidence.ceilings.get(run), evidence.floor(subject)
    if top is None:
        return ""
    below = "No policy sets a floor"
    if floor is not None:
        does = policy_description(str(floor.policy.spec.get("model"))) or floor.policy.label
        below = f"The floor is {floor.basis.shares[1]:.1%} ({does})"
    above = (
        f"the ceiling is unknown: {top.reason}"
        if top.value is None
        else f"the ceiling under conflict is {top.value:.1%}, as often as {run} reads alone what the rule needs"
    )
    mixed = ""
    if evidence.ends is not None:
        without, all_conflicts = (f"{end.value:.1%}" for end in evidence.ends)
        mixed = f" {run} reaches {without} if no question has a conflict, and {all_conflicts} if all have one."
    return f"{below}; {above}.{mixed}"


def change_sentence(evidence: Evidence) -> str:
    """Return what could change the advice: missing answers, and too few pages; empty if nothing is known that could."""
    few = few_pages(evidence.decision.basis.clusters.own_count)
    return " ".join(filter(None, [missing_sentence(evidence), few]))


def missing_sentence(evidence: Evidence) -> str:
    """Return a sentence on each run's missing answers and on how they count; empty if they could not change the advice."""
    if not evidence.missing_matter:
        return ""
    runs = [f"{run} {missing.clause}" for run, missing in evidence.missing.items() if missing.total]
    counts_as = (
        " Those without an answer or cut off count as not right."
        if evidence.decision.basis.metric.counts_no_answer
        else ""
    )
    return f"{'; '.join(runs)}.{counts_as}"


def unreliable_sentence(evidence: Evidence) -> str:
    """Return why the recommended runs, or else the best, are not to be relied on; empty if nothing speaks against them.

    They are not shown to use their sources, or follow the rule in under half of conflicts.
    """
    if evidence.by_rule:
        below = all(
            share.value < _HALF for lead in evidence.by_rule.values() for _, share in lead.shares if share.value
        )
        return (
            "Whatever should win, no model here follows it in half of the conflicts: rely on none there."
            if below
            else ""
        )
    decision, runs = evidence.decision, evidence.decision.basis.views.runs
    chosen = sorted({*_recommended(decision)} or {decision.basis.best})
    not_shown = [*filter(None, (runs[i].not_shown for i in chosen))]
    shares = {runs[i].label: evidence.follows[runs[i].label] for i in chosen if runs[i].label in evidence.follows}
    low = [
        f"{run} follows your rule in {percent(share)} of conflicts" for run, share in shares.items() if share < _HALF
    ]
    if low:
        low = [f"{join_names(low)}: do not rely on {'it' if len(low) == 1 else 'them'} where your sources disagree."]
    return " ".join([*not_shown, *low])


def _recommended(decision: Decision) -> set[int]:
    runs = {run for run in (decision.least_memory, decision.smallest_on_disk, decision.fastest) if run is not None}
    return runs or set(decision.holds)
