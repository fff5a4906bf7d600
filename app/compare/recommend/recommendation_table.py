"""Tables of a recommendation: the runs beside the best and their floors, and each source alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.compare.decision.against_policies import Floor, compare_with
from app.compare.decision.target_metric import ACCURACY, DECISION_ACCURACY, TargetMetric, metric_title
from app.compare.decision.target_shares import ALPHA, TargetShares
from app.compare.decision.trust_metric import OBEDIENCE, truth
from app.compare.recommend.recommended_runs import Decision
from app.compare.runs.cost_tables import COSTS, cost_cells
from app.compare.runs.run_view import RunView, RunViews
from app.report.tables.single_source_accuracy import SourceAccuracy
from app.text.percentage_points import format_points
from benchmarks.vocabulary import Cell, Estimate, Table


def single_sources_table(readings: Mapping[str, Mapping[str, SourceAccuracy]]) -> Table | None:
    """Return each model's accuracy on prompts with one source; None where the benchmark has no such prompts."""
    sources = list(dict.fromkeys(source for by_source in readings.values() for source in by_source))
    if not sources:
        return None
    missing = Estimate(None, reason="no answer to this source alone is labelled")
    rows = tuple(
        (run, tuple(by_source[source].share if source in by_source else missing for source in sources))
        for run, by_source in readings.items()
    )
    note = "Shares of right labels where the prompt has the right source only; n is printed where some answers have no label."
    return Table("alone", "Each source alone", tuple(f"{source} alone" for source in sources), rows, (note,))


def recommendation_table(
    decision: Decision, policies: Sequence[RunView], views: RunViews, target: TargetMetric
) -> Table:
    """Return the runs with their difference to the best and its bound; the floors and ceilings follow."""
    shares, runs = decision.basis, decision.basis.views.runs
    best = runs[shares.best]
    ceilings = [run for run in views.runs if run.is_oracle and not best.is_policy]
    rows = [(run.label, _run_cells(decision, index)) for index, run in enumerate(runs)]
    for other in (*policies, *ceilings):
        if (floor := compare_with(best, other, views, target)) is not None:
            rows.append((other.label, _floor_cells(floor, other)))
    obeys = any(cells[3] == "ceiling" for label, cells in rows) and not ceilings
    right: tuple[str, ...] = ()
    if target.name == OBEDIENCE:
        right, by_label = ("right value",), {run.label: run for run in views.runs}
        rows = [(label, (cells[0], truth(by_label[label], views), *cells[1:])) for label, cells in rows]
    lower = ", lower is better" if shares.metric.lower_is_better else ""
    margin = format_points(decision.margin)
    notes: tuple[str, ...] = (
        f"{_metric_note(shares)}, over the {len(shares.group)} answers that count for all models{lower}. better by: the "
        "difference to the model with the best value; at least: its one-sided 95% lower bound, over clusters (Zou and "
        "Donner 2008).",
        f"holds: shown not to be worse than any other run by {margin} points or more, and so not than the best, whichever that "
        "is; p tests against that, corrected for the number of runs (Holm 1979).",
    )
    notes += tuple(
        note
        for note, is_needed in (
            ("right value: the share of answers under conflict that give it, whatever should win.", bool(right)),
            ("floor: a policy, a rule that answers without looking; it is not recommended.", bool(policies)),
            ("ceiling: an oracle, which knows the right source; it is no run to choose.", bool(ceilings)),
            ("ceiling: a policy that does what the rule asks for, whatever the sources say.", obeys),
        )
        if is_needed
    )
    columns = (metric_title(shares.metric.name), *right, "better by", "at least", "holds", "p (Holm)", *COSTS)
    return Table("recommend", f"Within {margin} points of the best", columns, tuple(rows), notes)


def _run_cells(decision: Decision, index: int) -> tuple[Cell, ...]:
    """Return the row of a run that the decision is among."""
    shares, runs = decision.basis, decision.basis.views.runs
    run, n, is_best = runs[index], len(shares.group), index == shares.best
    difference = None if is_best else Estimate(shares.difference(index, shares.best).value, n=n)
    bound = None if is_best else Estimate(shares.least(index, shares.best).lower(1 - ALPHA), n=n)
    status = "floor" if run.is_policy else "yes" if index in decision.holds else "no"
    if len(runs) == 1:
        status = "the only model"
    elif is_best and not run.is_policy:
        status = f"{status}, the best value"
    p = Estimate(decision.p_values[index], n=n)
    return (Estimate(float(shares.shares[index]), n=n), difference, bound, status, p, *cost_cells(run))


def _floor_cells(floor: Floor, run: RunView) -> tuple[Cell, ...]:
    """Return the row of a policy or an oracle beside the best model."""
    basis = floor.basis
    values = (float(basis.shares[1]), basis.difference(1, 0).value, basis.least(1, 0).lower(1 - ALPHA))
    status = "ceiling" if run.is_oracle or floor.is_perfect else "floor"
    return (*(Estimate(value, n=len(basis.group)) for value in values), status, None, *cost_cells(run))


def _metric_note(shares: TargetShares) -> str:
    """Return the metric's name with its definition."""
    if shares.metric.note:
        return shares.metric.note
    if shares.metric.name != ACCURACY:
        return f"{shares.metric.name}: as in the tables"
    condition_indexes = sorted(set(shares.condition.tolist()))
    conditions = shares.views.label_metrics.conditions
    names = ", ".join(conditions[i] for i in condition_indexes)
    return f"{DECISION_ACCURACY}: the share of right labels under {names} together, where {shares.metric.strictness}"
