"""The verdict of a report: which model to choose, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from app.compare.decision.target_shares import TargetShares
from app.compare.recommend.recommendation_advice import rule_clause
from app.compare.recommend.recommendation_evidence import RuleLead
from app.compare.runs.run_view import RunView
from app.exports.report.report_document import Verdict
from app.exports.report.report_inputs import Evidence
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from app.text.text_escaping import size
from benchmarks.stats.intervals import few_pages, percent, span
from benchmarks.vocabulary import RULES

_MOST_NAMES = 3


def few_names(names: Sequence[str]) -> str:
    """Return names as prose; of many, the first ones and the number of the others."""
    if len(names) <= _MOST_NAMES + 1:
        return join_names(names)
    return join_names([*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more"])


def verdict(evidence: Evidence) -> Verdict:
    """Return which model to choose, and why."""
    if not evidence.models:
        return Verdict(
            "These runs hold no model to choose.",
            ("They are simple rules, which show what can be reached without any model.",),
        )
    if not evidence.counted and evidence.lacks_conflicts:
        return Verdict("These runs do not show what happens when sources disagree.", ())
    if not evidence.counted:
        return _behaviour_verdict(evidence)
    decision = evidence.decision
    if not evidence.comparable:
        return Verdict(
            "These scores do not decide between models.",
            ("The judge gives an answer several labels; choose another judge.",),
        )
    if decision is None:
        return Verdict(
            "There are too few scored answers to choose.",
            ("The models share fewer than two questions whose answers are scored for all of them.",),
        )
    assert evidence.recommendation is not None
    by_rule, few = evidence.recommendation.by_rule, few_pages(decision.basis.clusters.own_count)
    chosen = _depends(evidence, by_rule) if by_rule else _chosen(evidence, decision.basis)
    headline = " ".join(filter(None, [chosen.headline, evidence.recommendation.missing]))
    return Verdict(headline, (*chosen.sentences, *filter(None, (evidence.recommendation.bounds, few))))


def _depends(evidence: Evidence, by_rule: Mapping[str, RuleLead]) -> Verdict:
    """Return what each rule on what should win would decide, of which the user has not said one."""
    question = "what should win where your sources disagree"
    headline = f"Which model to choose depends on {question}."
    if len(evidence.models) == 1:
        headline = f"Whether {evidence.models[0].label} is good enough depends on {question}."
    elif not any(lead.is_shown for lead in by_rule.values()):
        headline = "No difference between the models is shown, whatever should win where your sources disagree."
    rules = [f"If {RULES[rule]}: {rule_clause(rule, lead, brief=True)}" for rule, lead in by_rule.items()]
    decide = "Decide what should win; a report with --trust image, text or flag is then about that."
    unreliable = evidence.recommendation.unreliable if evidence.recommendation else ""
    return Verdict(headline, (*filter(None, [unreliable]), *rules, decide))


def _chosen(evidence: Evidence, shares: TargetShares) -> Verdict:
    """Return the verdict where the models can be compared."""
    objections = list(_objections(evidence))
    if len(evidence.models) == 1:
        return _verdict_on_one(evidence, shares, objections)
    headline, sentences = _choice(evidence)
    if objections:
        is_pair = len(evidence.models) == 2
        among = f"{'Between' if is_pair else 'Among'} them: {headline[:1].lower()}{headline[1:]}"
        any_model = "either model" if is_pair else "any of these models"
        return Verdict(f"Do not rely on {any_model} yet.", (*objections, among, *sentences))
    return Verdict(headline, tuple(sentences))


def _behaviour_verdict(evidence: Evidence) -> Verdict:
    """Return what the models do, where no answer is right or wrong by itself."""
    sentences = []
    for run in evidence.models:
        shares = [
            f"{evidence.behaviour(label)} in {percent(share)}"
            for label in evidence.benchmark.behaviours
            if (share := evidence.share_labelled(run.label, label, evidence.benchmark.conflicts)) is not None
        ]
        if shares:
            sentences.append(f"Where sources disagree, {run.label} {join_names(shares)} of its answers.")
    return Verdict("This test shows what the models do; it does not say which is better.", tuple(sentences))


def _verdict_on_one(evidence: Evidence, shares: TargetShares, objections: Sequence[str]) -> Verdict:
    model = shares.views.runs[0]
    does = _does(evidence)
    share = f"{model.label} {does} in {percent(float(shares.shares[0]))} of {_answers(evidence, shares)}."
    alone = "Only one model was tested, so there is nothing to choose between."
    if objections:
        return Verdict(f"Do not rely on {model.label} yet.", (share, *objections, alone))
    better = [
        f"That is better than {_policy(evidence, floor.policy)}, which {does} in "
        f"{percent(float(floor.basis.shares[1]))}."
        for floor in evidence.floors
    ]
    return Verdict(share, (*better, alone))


def _objections(evidence: Evidence) -> Iterator[str]:
    """Yield the reasons against all models: sources that they are not shown to use, or a policy unbeaten."""
    if evidence.recommendation is not None and evidence.recommendation.unreliable:
        yield evidence.recommendation.unreliable
    models = len(evidence.models)
    subject = "It" if models == 1 else "Neither model" if models == 2 else "None of the models"
    for source in evidence.sources:
        readings = [by_source[source] for by_source in evidence.readings.values() if source in by_source]
        if len(readings) == models and all(reading.fails for reading in readings):
            shares = sorted(reading.share.value or 0.0 for reading in readings)
            spread = span(percent(shares[0]), percent(shares[-1]))
            verb = "does not read" if models == 1 else "reads"
            yield f"{subject} {verb} the {source}s: shown the {source} alone, {spread} of the answers are right."
    if evidence.floors and len(evidence.floors) == models and not any(floor.beats for floor in evidence.floors):
        policies = list(dict.fromkeys(_policy(evidence, floor.policy) for floor in evidence.floors))
        verb = "is not" if models == 1 else "is"
        yield f"{subject} {verb} shown to do better than {' or '.join(policies)}."


def _policy(evidence: Evidence, policy: RunView) -> str:
    """Return a policy as a noun phrase."""
    answer = evidence.describe_policy(policy)
    return f"a rule that needs no model ({answer})" if answer else policy.label


def _choice(evidence: Evidence) -> tuple[str, list[str]]:
    """Return the headline and the reasons, for two or more models."""
    decision = evidence.decision
    assert decision is not None
    shares, runs = decision.basis, decision.basis.views.runs
    points = f"{format_points(decision.margin)} percentage points"
    listing = _listing(evidence, shares)
    if not decision.holds:
        pages = shares.clusters.own_count
        few = f"{pages:,} pages" if pages < shares.examples else f"{shares.examples:,} questions"
        more = f"{few} are too few to tell whether the models are within {points} of one another."
        return "It is too early to choose.", [f"So far, {listing}.", more]
    if len(decision.holds) == 1:
        chosen = runs[decision.holds[0]]
        reason = f"It is the only one shown to be within {points} of the best: {listing}."
        if decision.holds[0] == shares.best:
            reason = f"It is the best: {listing}. No other is shown to come within {points} of it."
        return f"Choose {chosen.label}.", [reason]
    equal = f"{_count(len(decision.holds))} models are shown to be within {points} of the best: {listing}."
    smallest, fastest = decision.smallest, decision.fastest
    if smallest is not None and fastest is not None:
        costs = [_cost(runs[index]) for index in dict.fromkeys((smallest, fastest))]
        if decision.is_as_fast(smallest):
            reason = f"Of these it is the smallest and {decision.speed_clause}: {costs[0]}."
            return f"Choose {runs[smallest].label}.", [equal, reason]
        headline = f"Choose {runs[smallest].label} if memory is short, {runs[fastest].label} if speed counts."
        return headline, [equal, f"{'; '.join(costs)}."]
    if smallest is not None:
        return f"Choose {runs[smallest].label}.", [equal, f"Of these it is the smallest: {_cost(runs[smallest])}."]
    labels = few_names([runs[index].label for index in decision.holds])
    return f"Choose any of {labels}.", [equal, "Size and speed were not measured for all of them."]


def _answers(evidence: Evidence, shares: TargetShares) -> str:
    """Return the number of answers that decide, which are not those to one source alone."""
    where = " with several sources" if len(evidence.sources) > 2 else ""
    if len(evidence.sources) == 2:
        where = f" to {join_names(list(evidence.sources))} together"
    return f"{len(shares.group):,} answers{where}"


def _does(evidence: Evidence) -> str:
    """Return what decides, as a verb phrase."""
    return "follows your rule" if evidence.rule else "is right"


def _listing(evidence: Evidence, shares: TargetShares) -> str:
    """Return each model's percentage of right answers, best first."""
    order = sorted(range(len(shares.views.runs)), key=lambda index: -float(shares.shares[index]))
    labels = [run.label for run in shares.views.runs]
    percentages = [percent(float(shares.shares[index])) for index in order]
    answers = f"its {_answers(evidence, shares)}"
    if len({*percentages}) == 1:
        return f"each {_does(evidence)} in {percentages[0]} of {answers}"
    parts = [f"{labels[index]} in {percentage}" for index, percentage in zip(order, percentages, strict=True)]
    parts[0] = f"{labels[order[0]]} {_does(evidence)} in {percentages[0]} of {answers}"
    if len(parts) > _MOST_NAMES + 1:
        others = f"{len(parts) - _MOST_NAMES} others in {span(percentages[-1], percentages[_MOST_NAMES])}"
        parts[_MOST_NAMES:] = [others]
    return ", ".join(parts)


def _cost(run: RunView) -> str:
    """Return a run's memory and speed."""
    parts = []
    if run.cost.peak_memory is not None:
        parts.append(f"{size(run.cost.peak_memory)} of memory")
    elif run.weights_bytes is not None:
        parts.append(f"{size(run.weights_bytes)} on disk")
    if run.cost.seconds_per_answer is not None:
        parts.append(f"{run.cost.seconds_per_answer:.2g} s per answer")
    return f"{run.label} takes {' and '.join(parts)}"


def _count(number: int) -> str:
    return {2: "Two", 3: "Three", 4: "Four", 5: "Five"}.get(number, str(number))
