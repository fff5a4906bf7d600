"""The evidence for a recommendation, and the advice that follows from it, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.compare.decided import MissingAnswers
from app.compare.floor import Floor, floor_sentence, none_beats_sentence, rules_sentence
from app.compare.non_inferiority import ALPHA, Decision, TargetShares, format_points
from app.compare.run_view import RunView
from app.compare.sample_size import examples_for_margin
from app.report.competence import SourceAccuracy, join_names, unread_sentence, unread_sources
from benchmarks.stats.intervals import few_pages, percent, span
from benchmarks.vocabulary import RULES, Estimate
from mlx_backends.policy import policy_description

_NO_MODEL = (
    "There is no model among these runs. Policies are rules that answer without looking: the floor that a model must beat. "
    "Add a model's run."
)
_CHOICE = "should win where your sources disagree."
_MOST_NAMED = 3
"""The most models that are named behind the first."""
_HALF = 0.5
"""The share of conflicts below which a model that follows a rule is not to be relied on."""


class RuleLead(NamedTuple):
    """The shares of conflicts in which models follow a rule, the greatest first, and whether that one is shown to lead."""

    shares: tuple[tuple[str, Estimate], ...]
    is_shown: bool


@dataclass(frozen=True)
class Evidence:
    """The evidence for a recommendation: the decision, each model's floor, and its accuracy on each source alone."""

    decision: Decision
    floors: Sequence[Floor]
    readings: Mapping[str, Mapping[str, SourceAccuracy]]
    models: bool
    beyond: tuple[str, ...] = ()
    """A sentence on each model that exceeds a limit."""
    missing: Mapping[str, MissingAnswers] = field(default_factory=dict)
    """The missing answers of each model."""
    ceilings: Mapping[str, Estimate] = field(default_factory=dict)
    """Each model's share of conflicts in which it could follow the rule, by what it reads alone; empty without a rule."""
    ends: tuple[Estimate, Estimate] | None = None
    """The best model's share if none of the user's questions had a conflict, and if all had; None where that is known."""
    follows: Mapping[str, float] = field(default_factory=dict)
    """Each model's share of conflicts in which it follows the rule; empty without a rule."""
    by_rule: Mapping[str, RuleLead] = field(default_factory=dict)
    """The leaders by rule, over own documents for which the user has not said what should win."""
    by_rows: str = ""
    """A sentence on the rows that say what should win where others do not."""

    def floor(self, index: int) -> Floor | None:
        label = self.decision.basis.views.runs[index].label
        return next((floor for floor in self.floors if floor.model.label == label), None)

    @property
    def unread(self) -> dict[str, list[str]]:
        """The sources that some models do not read, with these models."""
        return unread_sources(self.readings)

    @property
    def hopeless(self) -> bool:
        """True if there is a source that no model reads, so that more examples would not help."""
        return any(len(failing) == len(self.readings) for failing in self.unread.values())

    @property
    def is_unbeaten(self) -> bool:
        """True if no model beats its floor."""
        return bool(self.floors) and not any(floor.beats for floor in self.floors)

    @property
    def missing_matter(self) -> bool:
        """True if the missing answers, were they right or wrong, could change which runs are within the margin."""
        shares, margin = self.decision.basis, self.decision.margin
        runs = shares.views.runs
        numbers = [self.missing.get(run.label, MissingAnswers({}, 0)) for run in runs]
        absent = [missing.total / max(1, missing.of) for missing in numbers]
        if len(runs) == 1:
            return absent[0] > 0
        pairs = ((i, j) for i in range(len(runs)) for j in range(len(runs)) if i != j and absent[i] + absent[j])
        bounds = ((shares.least(i, j).lower(1 - ALPHA) + margin, absent[i] + absent[j]) for i, j in pairs)
        return any(abs(distance) <= moved for distance, moved in bounds)

    def is_worse(self, run: int) -> bool:
        """Return True if a run is shown to be worse than the best by more than the margin."""
        high = self.decision.basis.interval(run, self.decision.basis.best, 1 - 2 * ALPHA)[1]
        return high < -self.decision.margin


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
    choice = _choice(evidence)
    if (evidence.is_unbeaten or first) and choice:
        choice[0] = f"Among the models only, {choice[0][:1].lower()}{choice[0][1:]}"
    lines = [*first, *choice, *last]
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
    decision, shares = evidence.decision, evidence.decision.basis
    labels = [run.label for run in shares.views.runs]
    within = f"shown to be within {format_points(decision.margin)} points of the best {shares.metric.compared}"
    sentences = [*filter(None, [unreliable_sentence(evidence)]), *(floor if evidence.is_unbeaten else ())]
    if len(labels) > 1 and not decision.holds:
        best = f"({labels[shares.best]}, {shares.shares[shares.best]:.1%})"
        sentences.append(f"No run can be recommended yet: none is {within} {best}.{_more(evidence)}")
    elif len(decision.holds) == 1 and len(labels) > 1:
        sentences.append(f"Recommended: {_named(shares, decision.holds[0])}, the only run that is {within}.")
    elif len(labels) > 1:
        smallest, fastest = decision.smallest, decision.fastest
        least = "needs the least memory" if decision.least_memory is not None else "is the smallest on disk"
        count = f"{len(decision.holds)} are {within}"
        if smallest is not None and fastest is not None and decision.is_as_fast(smallest):
            sentences.append(
                f"Recommended: {_named(shares, smallest)}. {count}; it {least} and {decision.speed_clause}."
            )
        elif smallest is not None and fastest is not None:
            sentences.append(f"{count}: {labels[smallest]} {least}, {labels[fastest]} is faster.")
        else:
            sentences.append(f"{count}; choose between them by their behaviour.")
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


def _more(evidence: Evidence) -> str:
    """Return about how many examples would tell whether the runs are within the margin, after a space; "" if unknown."""
    if evidence.hopeless:
        return ""
    shares = evidence.decision.basis
    needed = examples_for_margin(shares, evidence.decision.margin)
    if needed is None:
        return ""
    if needed <= shares.examples:
        return " More examples would tell."
    return (
        f" About {needed:,} examples would show that the runs are, if they are in truth as good (not which is better); you have "
        f"{shares.examples:,}."
    )


def _choice(evidence: Evidence) -> list[str]:
    decision, shares = evidence.decision, evidence.decision.basis
    if len(shares.views.runs) == 1:
        return []
    within = f"shown to be within {format_points(decision.margin)} points of the best {shares.metric.compared}"
    if not decision.holds:
        return [
            f"No run can be recommended yet: none is {within}, not even {_named(shares, shares.best)}, which has the best value "
            f"here.{_more(evidence)}"
        ]
    if len(decision.holds) == 1:
        return [f"Recommended: {_named(shares, decision.holds[0])}, the only run that is {within}."]
    smallest, fastest = decision.smallest, decision.fastest
    if smallest is not None and fastest is not None and decision.is_as_fast(smallest):
        needs = "needs the least memory" if decision.least_memory is not None else "is the smallest on disk"
        return [
            f"Recommended: {_named(shares, smallest)}. Of the {len(decision.holds)} that are {within}, it {needs} "
            f"({_size(decision, smallest)}) and {decision.speed_clause} ({_speed(shares, smallest)})."
        ]
    return _trade_offs(decision, within)


def _trade_offs(decision: Decision, within: str) -> list[str]:
    """Return the advice where the smallest run is not the fastest."""
    shares, runs = decision.basis, decision.basis.views.runs
    least_memory, on_disk, fastest = decision.least_memory, decision.smallest_on_disk, decision.fastest
    lines = [f"{len(decision.holds)} are {within}: {', '.join(_named(shares, i) for i in decision.holds)}."]
    if least_memory is not None:
        lines.append(f"For the least memory: {runs[least_memory].label} ({_size(decision, least_memory)}).")
    if on_disk is not None and on_disk != least_memory:
        lines.append(f"For the least disk space: {runs[on_disk].label} ({_on_disk(runs[on_disk])}).")
    if fastest is not None:
        lines.append(f"For speed: {runs[fastest].label} ({_speed(shares, fastest)}).")
    if decision.smallest is None and fastest is None:
        lines.append("Choose between them by their behaviour.")
    return lines


def _named(shares: TargetShares, index: int) -> str:
    return f"{shares.views.runs[index].label} ({shares.shares[index]:.1%})"


def _size(decision: Decision, index: int) -> str:
    """Return the measured peak memory that decided, with the highest of the runs that hold; else the size on disk."""
    runs = decision.basis.views.runs
    if decision.least_memory is None:
        return _on_disk(runs[index])
    peaks = [peak for i in decision.holds if (peak := runs[i].cost.peak_memory) is not None]
    peak_note = (
        f"; up to {_bytes(max(peaks))} for the others" if max(peaks) > (runs[index].cost.peak_memory or 0) else ""
    )
    holding, weights = [runs[i] for i in decision.holds], runs[index].weights_bytes
    if weights and any(run.weights_bytes and run.weights_bytes < weights for run in holding):
        peak_note += "; the weights of others are smaller"
        if all((run.weights_bytes or 0) < (run.cost.peak_memory or 0) / 2 for run in holding):
            peak_note += ", but images and batches take most of so small a peak"
    return f"{_bytes(runs[index].cost.peak_memory or 0)} at its measured peak{peak_note}"


def _on_disk(run: RunView) -> str:
    return f"{_bytes(run.weights_bytes or 0)} on disk"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _speed(shares: TargetShares, index: int) -> str:
    return f"{shares.views.runs[index].cost.seconds_per_answer:.3g} s per answer"
