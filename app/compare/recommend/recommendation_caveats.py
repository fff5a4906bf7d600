"""The caveats of a recommendation: what was not measured, what is not known, and what the metrics rest on."""

from __future__ import annotations

from app.compare.comparison_tables import coverage_warnings
from app.compare.decision.target_shares import ALPHA
from app.compare.recommend.recommendation_evidence import Evidence
from app.compare.recommend.recommended_runs import Decision
from app.compare.runs.run_view import RunViews, split_policies
from app.compare.runs.spec_diff import difference_warnings
from app.report.tables.judge_selection import caveat
from app.report.tables.single_source_accuracy import join_names
from app.text.percentage_points import format_points
from benchmarks.stats.intervals import few_pages

FEW_EXAMPLES = 30
"""The number of examples below which the bounds, which are approximations, are too wide to be of use."""


def caveats(evidence: Evidence, views: RunViews) -> list[str]:
    """Return what a reader must know before following the advice, in sentences."""
    shares = evidence.decision.basis
    lines = [*evidence.beyond, *_not_holding(evidence), *_unmeasured(evidence.decision)]
    examples, pages = shares.examples, shares.clusters.own_count
    on_pages = f" on {pages} pages" if pages < examples else ""
    if examples < FEW_EXAMPLES and not few_pages(pages):  # too few pages are in the first line
        lines.append(f"{examples} examples are few: their bounds are wide and approximate.")
    _, policies = split_policies(views)
    if not policies and not all(run.gain for run in shares.views.runs):
        lines.append(
            "These runs include no policy, such as policy:always-text, so they cannot be compared with a rule that answers "
            "without looking."
        )
    with_floor = {floor.model.label for floor in evidence.floors}
    without_floor = [run for run in evidence.readings if run not in with_floor]
    if policies and without_floor and not evidence.ceilings:
        lines.append(
            f"No policy shares labelled answers with {join_names(without_floor)}, so there is no floor to compare with."
        )
    if shares.every is not None:
        counts = zip(shares.views.runs, shares.every.counts, strict=True)
        undecided = join_names([f"{count} of {run.label}" for run, count in counts if count])
        lines.append(
            f"Answers are undecided by {views.judge}: {undecided}. A run holds only if it does so whatever they turn out to be."
        )
    lines += coverage_warnings(views)
    lines += difference_warnings(shares.views.runs)
    lines.append(
        f"The metrics rest on {len(shares.group)} answers to {examples} examples{on_pages}, labelled by "
        f"{views.judge}{caveat(views.judge)}. They do not carry over to other data, prompts or decoding."
    )
    return lines


def _not_holding(evidence: Evidence) -> list[str]:
    """Return a sentence on each run that does not hold, the best included."""
    decision, shares = evidence.decision, evidence.decision.basis
    best = shares.views.runs[shares.best].label
    lines = []
    for index, run in enumerate(shares.views.runs):
        if index in decision.holds or index == shares.best or not evidence.models:
            continue
        difference = shares.difference(index, shares.best)
        low, _ = shares.interval(index, shares.best, 1 - 2 * ALPHA)
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
