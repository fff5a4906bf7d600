"""Recommendations: the recommended run, its behaviour against the best run, and what remains unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.compare.cost import COSTS, cost_cells
from app.compare.floor import Floor, floor_sentence, hardest_floors, none_beats_sentence
from app.compare.limits import NO_LIMITS, Limits, within_limits
from app.compare.non_inferiority import (
    ACCURACY,
    ALPHA,
    Decision,
    TargetMetric,
    TargetShares,
    decide,
    format_points,
    target_metric,
    target_shares,
)
from app.compare.run_view import RunView, RunViews, load_views, reject_duplicates
from app.compare.spec_diff import difference_warnings
from app.compare.tables import coverage_warnings
from app.compare.utility import UserCosts, cost_ratios_table, utility_target
from app.report.competence import SourceAccuracy, join_names, source_accuracies, unread_sentence, unread_sources
from app.report.judge_selection import caveat
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Cell, Estimate, Table

__all__ = ["Recommendation", "format_points", "recommend", "recommend_views"]

FEW_EXAMPLES = 30
"""The number of examples below which the bounds, which are approximations, are too wide to be of use."""

_MOST_BEHAVIOURS = 3

_NO_MODEL = (
    "There is no model among these runs. Policies read no input: they are the floor that a model must beat. "
    "Add a model's run."
)
_SAME_TIME = 0.05
"""The relative difference below which speeds count as equal: other load on the machine explains it."""


@dataclass(frozen=True)
class Recommendation:
    """A recommendation: advice, the recommended run's behaviour against the best run, and caveats.

    The decision is among the models; policies are their floors. ``single_sources`` has the share of right answers where a
    prompt has one source only, for benchmarks with such prompts. ``more_examples_help`` is True if a run may or may not be
    within the margin, and more examples would decide it.
    """

    decision: Decision
    table: Table
    advice: tuple[str, ...]
    behaviour: tuple[str, ...]
    caveats: tuple[str, ...]
    more_examples_help: bool
    single_sources: Table | None = None
    cost_ratios: Table | None = None
    """The best run at each cost ratio, for benchmarks whose labels tell abstentions."""
    summary: str = ""
    """The advice in one to three short sentences, without intervals."""


def recommend(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
    user: UserCosts | None = None,
    limits: Limits = NO_LIMITS,
) -> Recommendation:
    """Recommend one of the runs in ``folders``, at a loss of at most ``margin`` in ``metric`` (None: the accuracy).

    With the costs of a ``user``, the utility under them decides. Runs beyond ``limits`` are not recommended.

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
    )


def recommend_views(
    views: RunViews,
    *,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
    user: UserCosts | None = None,
    limits: Limits = NO_LIMITS,
) -> Recommendation:
    """Recommend one of the loaded runs as :func:`recommend` does."""
    if not 0 < margin < 1:
        raise SpecError(f"a margin of {margin} is not between 0 and 1; 0.03 is three percentage points.")
    if user is not None and (metric is not None or lower_is_better):
        raise SpecError("costs decide by the utility; leave --metric and --lower-is-better out, or the costs.")
    all_models, policies = split_policies(views)
    models, beyond = within_limits(all_models, limits)
    if all_models and not models:
        raise SpecError(f"no model is within {limits}: {' '.join(beyond)} Raise a limit, or add a smaller model's run.")
    target = utility_target(views, user) if user else target_metric(views, metric, lower_is_better=lower_is_better)
    shares = target_shares(replace(views, runs=models or policies or views.runs), target)
    if shares.groups < 2:
        raise SpecError("these runs have one labelled example in common, which decides nothing; run more of them.")
    decision = decide(shares, margin)
    if not models:
        decision = replace(decision, holds=(), least_memory=None, smallest_on_disk=None, fastest=None)
    evidence = _Evidence(
        decision,
        tuple(hardest_floors(models, policies, views, target)),
        {run.label: _source_accuracies(run, views) for run in models},
        bool(models),
        tuple(beyond),
    )
    return Recommendation(
        decision,
        _table(decision, policies if models else (), views, target),
        tuple(_advice(evidence)),
        tuple(_behaviour(decision)),
        tuple(_caveats(evidence, views)),
        evidence.more_examples_help,
        _single_sources_table(evidence.readings),
        _cost_ratios(models, policies, views, user),
        _summary(evidence) or " ".join(_advice(evidence)[:1]),
    )


def _cost_ratios(
    models: Sequence[RunView], policies: Sequence[RunView], views: RunViews, user: UserCosts | None
) -> Table | None:
    if not models or views.benchmark.abstention is None:
        return None
    try:
        return cost_ratios_table(models, policies, views, user or UserCosts())
    except SpecError:  # no answer that counts for the utility is labelled in all runs
        return None


def split_policies(views: RunViews) -> tuple[tuple[RunView, ...], tuple[RunView, ...]]:
    """Split the runs into models, which can be recommended, and policies, which are floors; oracles are neither."""
    return (
        tuple(run for run in views.runs if not run.is_policy and not run.is_oracle),
        tuple(run for run in views.runs if run.is_policy and not run.is_oracle),
    )


@dataclass(frozen=True)
class _Evidence:
    """The evidence for a recommendation: the decision, each model's floor, and its accuracy on each source alone."""

    decision: Decision
    floors: Sequence[Floor]
    readings: Mapping[str, Mapping[str, SourceAccuracy]]
    models: bool
    beyond: tuple[str, ...] = ()
    """A sentence on each model that exceeds a limit."""

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
    def more_examples_help(self) -> bool:
        """True if a run may or may not be within the margin, and more examples would decide it."""
        decision, runs = self.decision, range(len(self.decision.basis.views.runs))
        if not self.models or self.hopeless or len(runs) == 1:
            return False
        others = (run for run in runs if run not in decision.holds and run != decision.basis.best)
        return not decision.holds or not all(map(self.is_worse, others))

    def is_worse(self, run: int) -> bool:
        """Return True if a run is shown to be worse than the best by more than the margin."""
        high = self.decision.basis.difference(run, self.decision.basis.best).interval(1 - 2 * ALPHA)[1]
        return high < -self.decision.margin


def _source_accuracies(run: RunView, views: RunViews) -> dict[str, SourceAccuracy]:
    labels = views.benchmark.labels
    return source_accuracies(
        Counter(
            (answer.single_source, views.benchmark.correct(answer.condition, answer.outcome))
            for answer in run.answers.values()
            if answer.outcome in labels
        )
    )


# --- advice ----------------------------------------------------------------------------------------


def _advice(evidence: _Evidence) -> list[str]:
    """Return the advice.

    The objections to all runs come first, then the recommendation, then the objections to the recommended run.
    """
    if not evidence.models:
        return [_NO_MODEL]
    first: list[str] = []
    last: list[str] = []
    for source, failing in evidence.unread.items():
        accuracies = {run: evidence.readings[run][source] for run in failing}
        sentence = unread_sentence(source, accuracies, len(evidence.readings))
        (first if len(failing) == len(evidence.readings) else last).append(sentence)
    decision = evidence.decision
    recommended_runs = {
        run for run in (decision.least_memory, decision.smallest_on_disk, decision.fastest) if run is not None
    }
    recommended_runs = recommended_runs or set(decision.holds)
    if evidence.floors and not any(floor.beats for floor in evidence.floors):
        first.append(none_beats_sentence(evidence.floors, len(evidence.readings)))
    else:
        last = [
            floor_sentence(floor) for run in sorted(recommended_runs) if (floor := evidence.floor(run)) is not None
        ] + last
    choice = _choice(evidence)
    if first and choice:
        choice[0] = f"Among the models only, {choice[0][:1].lower()}{choice[0][1:]}"
    return [*first, *choice, *last]


def _summary(evidence: _Evidence) -> str:
    """Return the advice in short: the recommended run, and the objections to all runs."""
    if not evidence.models:
        return _NO_MODEL
    decision, shares = evidence.decision, evidence.decision.basis
    labels = [run.label for run in shares.views.runs]
    within = f"shown to be within {format_points(decision.margin)} points of the best in {shares.metric.name}"
    sentences = []
    if len(labels) > 1 and not decision.holds:
        more = "" if evidence.hopeless else " More examples would tell."
        sentences.append(f"No run can be recommended yet: none is {within}, {_named(shares, shares.best)}.{more}")
    elif len(decision.holds) == 1 and len(labels) > 1:
        sentences.append(f"Recommended: {_named(shares, decision.holds[0])}, the only run that is {within}.")
    elif len(labels) > 1:
        smallest, fastest = decision.smallest, decision.fastest
        least = "needs the least memory" if decision.least_memory is not None else "is the smallest on disk"
        count = f"{len(decision.holds)} are {within}"
        if smallest is not None and fastest is not None and _as_fast(shares, smallest, fastest):
            speed = "is the fastest" if smallest == fastest else f"is within {_SAME_TIME:.0%} of the fastest"
            sentences.append(f"Recommended: {_named(shares, smallest)}. {count}; it {least} and {speed}.")
        elif smallest is not None and fastest is not None:
            sentences.append(f"{count}: {labels[smallest]} {least}, {labels[fastest]} is the fastest.")
        else:
            sentences.append(f"{count}; choose between them by their behaviour.")
    sentences += [
        f"No model reads the {source}s." for source, failing in evidence.unread.items() if len(failing) == len(labels)
    ]
    if evidence.floors and not any(floor.beats for floor in evidence.floors):
        policies = join_names(list(dict.fromkeys(floor.policy.label for floor in evidence.floors)))
        subject = "No model significantly beats" if len(labels) > 1 else f"{labels[0]} does not significantly beat"
        sentences.append(f"{subject} {policies}.")
    return " ".join(sentences)


def _choice(evidence: _Evidence) -> list[str]:
    decision, shares = evidence.decision, evidence.decision.basis
    if len(shares.views.runs) == 1:
        return []
    within = f"shown to be within {format_points(decision.margin)} points of the best in {shares.metric.name}"
    if not decision.holds:
        more = "" if evidence.hopeless else " More examples would tell."
        return [
            f"No run can be recommended yet: none is {within}, not even {_named(shares, shares.best)}, which has the best value "
            f"here.{more}"
        ]
    if len(decision.holds) == 1:
        return [f"Recommended: {_named(shares, decision.holds[0])}, the only run that is {within}."]
    smallest, fastest = decision.smallest, decision.fastest
    if smallest is not None and fastest is not None and _as_fast(shares, smallest, fastest):
        fast = "the fastest" if smallest == fastest else f"within {_SAME_TIME:.0%} of the fastest"
        needs = "needs the least memory" if decision.least_memory is not None else "is the smallest on disk"
        return [
            f"Recommended: {_named(shares, smallest)}. Of the {len(decision.holds)} that are {within}, it {needs} "
            f"({_size(decision, smallest)}) and is {fast} ({_speed(shares, smallest)})."
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
        lines.append(f"For speed: {runs[fastest].label}, the fastest of them ({_speed(shares, fastest)}).")
    if decision.smallest is None and fastest is None:
        lines.append("Choose between them by their behaviour.")
    return lines


def _named(shares: TargetShares, index: int) -> str:
    return f"{shares.views.runs[index].label} ({shares.shares[index]:.1%})"


def _as_fast(shares: TargetShares, index: int, fastest: int) -> bool:
    seconds, least_seconds = (shares.views.runs[i].cost.seconds_per_answer or 0.0 for i in (index, fastest))
    return seconds <= (1 + _SAME_TIME) * least_seconds


def _size(decision: Decision, index: int) -> str:
    """Return the measured peak memory that decided, with the highest of the runs that hold; else the size on disk."""
    runs = decision.basis.views.runs
    if decision.least_memory is None:
        return _on_disk(runs[index])
    peaks = [peak for i in decision.holds if (peak := runs[i].cost.peak_memory) is not None]
    peak_note = (
        f"; up to {_bytes(max(peaks))} for the others" if max(peaks) > (runs[index].cost.peak_memory or 0) else ""
    )
    return f"{_bytes(runs[index].cost.peak_memory or 0)} at its measured peak{peak_note}"


def _on_disk(run: RunView) -> str:
    return f"{_bytes(run.weights_bytes or 0)} on disk"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _speed(shares: TargetShares, index: int) -> str:
    return f"{shares.views.runs[index].cost.seconds_per_answer:.3g} s per answer"


# --- behaviour -------------------------------------------------------------------------------------


def _behaviour(decision: Decision) -> list[str]:
    """Return how the recommended runs behave against the best; where that is the only one, how the others do."""
    best = decision.basis.best
    recommended_runs = (decision.least_memory, decision.smallest_on_disk, decision.fastest)
    recommended = {run for run in recommended_runs if run is not None and run != best}
    others = recommended or {run for run in range(len(decision.basis.views.runs)) if run != best}
    return [line for run in sorted(others) for line in _behaviour_of(decision.basis, run)]


def _behaviour_of(shares: TargetShares, index: int) -> list[str]:
    """Return what the run does significantly more or less often than the best, by condition; else the largest difference."""
    metrics, runs, best = shares.views.label_metrics, shares.views.runs, shares.best
    conflicts = [i for i, name in enumerate(metrics.conditions) if name in shares.views.benchmark.conflicts]
    cells = [
        (i, label, answers)
        for i in conflicts or range(len(metrics.conditions))
        if (answers := _under_condition(shares, i)) is not None
        for label in range(len(metrics.labels))
        if (answers.label[:, [index, best]] == label).any()
    ]
    lines = []
    for condition, label, answers in cells:
        marks = answers.label == label
        low, high = answers.difference(index, best, marks).interval(1 - ALPHA / len(cells))
        difference = float(marks[:, index].mean() - marks[:, best].mean())
        line = f"{_behaviour_sentence(answers, (index, best), condition, label)} ({format_points(difference, sign=True)} points; "
        line += f"{format_points(low, sign=True)} to {format_points(high, sign=True)}{_level(len(cells))})."
        lines.append((low <= 0 <= high, -abs(difference), condition, line))
    lines.sort()
    by_condition: dict[int, str] = {}
    for insignificant, _, condition, line in lines:
        if not insignificant:
            by_condition.setdefault(condition, line)
    if by_condition:
        return list(by_condition.values())[:_MOST_BEHAVIOURS]
    where = "Under conflict " if conflicts else ""
    if not lines or not lines[0][1]:
        return [f"{where}{runs[index].label} gives every label as often as {runs[best].label}."]
    return [
        f"{where}{runs[index].label} does not behave significantly differently from {runs[best].label}.",
        f"The largest difference: {lines[0][-1]}",
    ]


def _behaviour_sentence(shares: TargetShares, runs: tuple[int, int], condition: int, label: int) -> str:
    benchmark, metrics = shares.views.benchmark, shares.views.label_metrics
    first, second = (shares.views.runs[run].label for run in runs)
    label_name, condition_name = metrics.labels[label], metrics.conditions[condition]
    behaviour = benchmark.behaviours.get(label_name, f"is labelled {label_name}")
    situation = benchmark.situations.get(condition_name, f"under {condition_name}")
    situation = situation[:1].upper() + situation[1:]
    first_share, second_share = ((shares.label[:, run] == label).mean() for run in runs)
    return (
        f"{situation}, {first} {behaviour} in {first_share:.0%} of {len(shares.group)} answers, {second} in "
        f"{second_share:.0%}"
    )


def _level(intervals: int) -> str:
    """Return the confidence level in words, where ``intervals`` hold simultaneously (Bonferroni)."""
    return " at 95%" if intervals == 1 else f" at 95%, simultaneous over {intervals} intervals"


def _under_condition(shares: TargetShares, condition: int) -> TargetShares | None:
    """Return the answers under one condition; None where there are none."""
    selected = shares.condition == condition
    if not selected.any():
        return None
    group = np.unique(shares.group[selected], return_inverse=True)[1]
    metric = replace(shares.metric, mix=None)
    return TargetShares(shares.views, metric, group, shares.condition[selected], shares.label[selected])


# --- caveats ---------------------------------------------------------------------------------------


def _caveats(evidence: _Evidence, views: RunViews) -> list[str]:
    shares = evidence.decision.basis
    lines = [*evidence.beyond, *_not_holding(evidence), *_unmeasured(evidence.decision)]
    if shares.groups < FEW_EXAMPLES:
        lines.append(f"{shares.groups} examples are few: their bounds are wide and approximate.")
    _, policies = split_policies(views)
    if not policies:
        lines.append(
            "These runs include no policy, such as policy:always-text, so they cannot be compared with a model that reads "
            "no input."
        )
    with_floor = {floor.model.label for floor in evidence.floors}
    without_floor = [run for run in evidence.readings if run not in with_floor]
    if policies and without_floor:
        lines.append(
            f"No policy shares labelled answers with {join_names(without_floor)}, so there is no floor to compare with."
        )
    lines += coverage_warnings(views)
    lines += difference_warnings(shares.views.runs)
    lines.append(
        f"The metrics rest on {len(shares.group)} answers to {shares.groups} examples, labelled by "
        f"{views.judge}{caveat(views.judge)}. They do not carry over to other data, prompts or decoding."
    )
    return lines


def _not_holding(evidence: _Evidence) -> list[str]:
    """Return a sentence on each run that does not hold, the best included."""
    decision, shares = evidence.decision, evidence.decision.basis
    best = shares.views.runs[shares.best].label
    lines = []
    for index, run in enumerate(shares.views.runs):
        if index in decision.holds or index == shares.best or not evidence.models:
            continue
        difference = shares.difference(index, shares.best)
        low, _ = difference.interval(1 - 2 * ALPHA)
        points_behind = format_points(-difference.value)
        if evidence.is_worse(index):
            lines.append(f"{run.label} is worse than {best} by more than the margin: {points_behind} points.")
        else:
            relation = "as good as" if not difference.value else f"{points_behind} points worse than"
            more = "." if evidence.hopeless else "; more examples would tell."
            lines.append(
                f"{run.label} may or may not be within the margin: in these answers it is {relation} {best}, in truth up to "
                f"{format_points(-low)} points worse{more}"
            )
    if shares.best not in decision.holds and decision.holds:
        lines.append(f"{best} has the best value here, but is not itself shown to be within the margin of the others.")
    return lines


def _unmeasured(decision: Decision) -> list[str]:
    """Return a sentence on each cost that was not measured for all the runs that hold, so that its least is unknown."""
    if len(decision.holds) < 2:
        return []
    runs = [decision.basis.views.runs[i] for i in decision.holds]
    lines = []
    for cost, minimum, values in (
        ("Peak memory", "needs the least memory", [run.cost.peak_memory for run in runs]),
        ("The size on disk", "is the smallest on disk", [run.weights_bytes for run in runs]),
        ("The time per answer", "is the fastest", [run.cost.seconds_per_answer for run in runs]),
    ):
        missing = [run.label for run, value in zip(runs, values, strict=True) if value is None]
        if missing:
            lines.append(f"{cost} was not measured for {join_names(missing)}, so it is unknown which run {minimum}.")
    return lines


# --- tables ----------------------------------------------------------------------------------------


def _single_sources_table(readings: Mapping[str, Mapping[str, SourceAccuracy]]) -> Table | None:
    """Return each model's accuracy on prompts with one source; None where the benchmark has no such prompts."""
    sources = list(dict.fromkeys(source for by_source in readings.values() for source in by_source))
    if not sources:
        return None
    missing = Estimate(None, reason="no answer to this source alone is labelled")
    rows = tuple(
        (run, tuple(by_source[source].share if source in by_source else missing for source in sources))
        for run, by_source in readings.items()
    )
    note = "Shares of right labels where the prompt has the right source only, with Wilson's 95% intervals."
    return Table("alone", "Each source alone", tuple(f"{source} alone" for source in sources), rows, (note,))


def _table(decision: Decision, policies: Sequence[RunView], views: RunViews, target: TargetMetric) -> Table:
    shares, runs = decision.basis, decision.basis.views.runs
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for index, run in enumerate(runs):
        n = len(shares.group)
        bound: Estimate | None = None
        difference: Estimate | None = None
        if index != shares.best:
            lead = shares.difference(index, shares.best)
            bound, difference = Estimate(lead.lower(1 - ALPHA), n=n), Estimate(lead.value, n=n)
        holds = "floor" if run.is_policy else "yes" if index in decision.holds else "no"
        status = f"{holds}, the best value" if index == shares.best else holds
        status = "the only model" if len(runs) == 1 else status
        cells = (
            Estimate(float(shares.shares[index]), n=n),
            difference,
            bound,
            status,
            Estimate(decision.p_values[index], n=n),
        )
        rows.append((run.label, (*cells, *cost_cells(run))))
    best = runs[shares.best]
    ceilings = [run for run in views.runs if run.is_oracle and not best.is_policy]
    for other in (*policies, *ceilings):
        for floor in hardest_floors([best], [other], views, target):
            n, lead = len(floor.basis.group), floor.basis.difference(1, 0)
            share, value, bound = (
                Estimate(x, n=n) for x in (float(floor.basis.shares[1]), lead.value, lead.lower(1 - ALPHA))
            )
            status = "ceiling" if other.is_oracle else "floor"
            rows.append((other.label, (share, value, bound, status, None, *cost_cells(other))))
    lower = ", lower is better" if shares.metric.lower_is_better else ""
    margin = format_points(decision.margin)
    notes = (
        f"{_metric_note(shares)}, over the {len(shares.group)} answers labelled for all models{lower}. better by: the difference "
        "to the model with the best value; at least: its one-sided 95% lower bound (Bonett and Price 2012, over examples).",
        f"holds: shown not to be worse than any other run by {margin} points or more, and so not than the best, whichever that "
        "is; p tests against that, corrected for the number of runs (Holm 1979).",
        *(["floor: a policy, which reads no input and is not recommended."] if policies else ()),
        *(["ceiling: an oracle, which knows the right source; it is no run to choose."] if ceilings else ()),
    )
    columns = (shares.metric.name, "better by", "at least", "holds", "p (Holm)", *COSTS)
    return Table("recommend", f"Within {margin} points of the best", columns, tuple(rows), notes)


def _metric_note(shares: TargetShares) -> str:
    """Return the metric's name with its definition."""
    if shares.metric.note:
        return shares.metric.note
    if shares.metric.name != ACCURACY:
        return f"{shares.metric.name}: as in the tables"
    condition_indexes = sorted(set(shares.condition.tolist()))
    conditions = shares.views.label_metrics.conditions
    return f"accuracy: the share of right labels under {', '.join(conditions[i] for i in condition_indexes)} together"
