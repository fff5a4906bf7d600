"""Sentences on the choice between models that are within a margin of the best."""

from __future__ import annotations

from app.compare.decision.sample_size import examples_for_margin
from app.compare.decision.target_shares import TargetShares
from app.compare.recommend.recommendation_evidence import Evidence
from app.compare.recommend.recommended_runs import Decision
from app.compare.runs.run_view import RunView
from app.text.percentage_points import format_points


def brief_choice(evidence: Evidence) -> str:
    """Return which of several models is recommended, or why none is, without what it is compared with in memory and speed."""
    decision, shares = evidence.decision, evidence.decision.basis
    labels = [run.label for run in shares.views.runs]
    if not decision.holds:
        best = f"({labels[shares.best]}, {shares.shares[shares.best]:.1%})"
        return f"{_none_within(evidence)} {best}.{_more(evidence)}"
    if len(decision.holds) == 1:
        return _only_choice(evidence)
    count = f"{len(decision.holds)} are {_within(decision)}"
    least = _least(decision)
    if decision.recommended is not None:
        verdict = _verdict(evidence, _named(shares, decision.recommended))
        return f"{verdict}. {count}; it {least} and {decision.speed_clause}."
    if decision.smallest is not None and decision.fastest is not None:
        choice = f"{labels[decision.smallest]} {least}, {labels[decision.fastest]} is faster"
        return f"{_among(evidence)}{count}: {choice}."
    return f"{_among(evidence)}{count}; choose between them by their behaviour."


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


def choice_lines(evidence: Evidence) -> list[str]:
    """Return which of several models is recommended, or why none is, with memory and speed."""
    decision, shares = evidence.decision, evidence.decision.basis
    if len(shares.views.runs) == 1:
        return []
    if not decision.holds:
        best = f"not even {_named(shares, shares.best)}, which has the best value here"
        return [f"{_none_within(evidence)}, {best}.{_more(evidence)}"]
    if len(decision.holds) == 1:
        return [_only_choice(evidence)]
    if (run := decision.recommended) is not None:
        return [
            f"{_verdict(evidence, _named(shares, run))}. Of the {len(decision.holds)} that are {_within(decision)}, it "
            f"{_least(decision)} ({_size(decision, run)}) and {decision.speed_clause} ({_speed(shares, run)})."
        ]
    return _trade_offs(evidence)


def _none_within(evidence: Evidence) -> str:
    """Return that no run is within the margin; where the advice has already said that none can be recommended, only that."""
    subject = "None of the models" if evidence.by_rule else "No run can be recommended yet: none"
    return f"{subject} is {_within(evidence.decision)}"


def _only_choice(evidence: Evidence) -> str:
    """Return the recommendation of the only run that holds."""
    decision = evidence.decision
    verdict = _verdict(evidence, _named(decision.basis, decision.holds[0]))
    return f"{verdict}, the only run that is {_within(decision)}."


def _verdict(evidence: Evidence, run: str) -> str:
    """Return that a run is recommended; where none can be, that it would be if only the models counted."""
    return f"{_among(evidence)}the choice would be {run}" if evidence.is_qualified else f"Recommended: {run}"


def _among(evidence: Evidence) -> str:
    """Return the beginning of a sentence on the models alone where no run can be recommended; "" where one can."""
    if not evidence.is_qualified:
        return ""
    return "Among the models only, " if evidence.by_rule else "No run can be recommended yet; among the models only, "


def _within(decision: Decision) -> str:
    points = format_points(decision.margin)
    return f"shown to be within {points} points of the best {decision.basis.metric.compared}"


def _least(decision: Decision) -> str:
    """Return what the smallest run has the least of."""
    return "needs the least memory" if decision.least_memory is not None else "is the smallest on disk"


def _trade_offs(evidence: Evidence) -> list[str]:
    """Return the advice where the smallest run is not the fastest."""
    decision = evidence.decision
    shares, runs = decision.basis, decision.basis.views.runs
    least_memory, on_disk, fastest = decision.least_memory, decision.smallest_on_disk, decision.fastest
    within = f"{_among(evidence)}{len(decision.holds)} are {_within(decision)}"
    lines = [f"{within}: {', '.join(_named(shares, i) for i in decision.holds)}."]
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
