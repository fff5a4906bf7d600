"""Verdict on a fine-tuned model: worth shipping, not worth it, or not established, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.fine_tuning import Change, FineTuning
from app.compare.non_inferiority import format_points
from app.report.competence import join_names

MARGIN = 0.03


def verdict(tuning: FineTuning, margin: float = MARGIN) -> str:
    """Return whether the adapter is worth shipping, in a sentence or two.

    It is if a gain is shown, every loss is shown to be below ``margin``, and none is shown under a single condition. All of these
    must hold, so none is corrected for the number of tests. Examples that it was trained on show nothing.
    """
    return ": ".join(_judgement(tuning, margin))


def short_verdict(tuning: FineTuning) -> str:
    """Return the verdict without its reasons."""
    return f"{_judgement(tuning, MARGIN)[0]}."


def _judgement(tuning: FineTuning, margin: float) -> tuple[str, str]:
    """Return the judgement on an adapter, and the reasons for it."""
    name, gain = tuning.tuned.label, tuning.gain
    worth, not_worth = f"{name} is worth shipping", f"{name} is not worth shipping"
    unknown = f"It is not established that {worth}"
    gained = f"{gain.part} it changes by {gain.points()}"
    if tuning.trained:
        return unknown, (
            f"it was trained on {join_names(tuning.trained)}, and its answers to those show what it remembers. Compare runs on "
            "data that its training did not have."
        )
    if not gain.difference.n:
        return unknown, f"{gained}."
    if not gain.is_gain():
        return not_worth, f"{gained}, so no gain is shown.{_detection_hint(tuning)}"
    if lost := _shown(tuning.losses, margin):
        return not_worth, f"{gained}, but it is shown to lose: {_list(lost)}; the margin is {format_points(margin)}."
    if doubt := _doubt(tuning, margin):
        return unknown, f"{gained}, but {doubt}"
    return worth, (
        f"{gained}, and it is shown to lose less than {format_points(margin)} points: {_list(tuning.losses)}."
        f"{_single_conditions(tuning, margin)}"
    )


def _doubt(tuning: FineTuning, margin: float) -> str:
    """Return why it is not established that nothing is lost; "" if it is."""
    limit = format_points(margin)
    if not tuning.losses:
        return "no run shows what it loses elsewhere; add runs of both models on rows without conflict, or on pope, okvqa or gqa."
    if unknown := [change for change in (*tuning.losses, *tuning.details) if not change.difference.n]:
        parts = join_names([change.part for change in unknown])
        return f"nothing is known {parts}, where no answer of both runs counts; see their errors."
    if unsure := _unsure(tuning.losses, margin):
        return f"a loss of {limit} points or more cannot be excluded: {_list(unsure)}. More examples would decide it."
    if lost := _shown(tuning.details, margin):
        return (
            f"a loss under a single condition is shown that is not below {limit} points: {_list(lost)}. Together with others it "
            f"is: {_list(tuning.losses)}."
        )
    return ""


def _single_conditions(tuning: FineTuning, margin: float) -> str:
    """Return that a loss under a single condition cannot be excluded; "" if it can, or there is one condition only."""
    unsure = _unsure(tuning.details, margin)
    if not unsure:
        return ""
    return f" By themselves, these may lose {format_points(margin)} points or more: {_list(unsure)}."


def _detection_hint(tuning: FineTuning) -> str:
    if tuning.detection is None or not tuning.detection.is_gain():
        return ""
    metric = tuning.detection.part.removeprefix("in ")
    return f" It names conflicts more often ({metric} {tuning.detection.points()}); --metric {metric} decides by that."


def _shown(changes: Sequence[Change], margin: float) -> list[Change]:
    """Return the losses that are shown, and not shown to be below the margin."""
    return [change for change in changes if change.is_loss() and not change.exceeds(-margin)]


def _unsure(changes: Sequence[Change], margin: float) -> list[Change]:
    """Return the changes that may be a loss of the margin or more."""
    return [change for change in changes if not change.exceeds(-margin) and not change.is_loss()]


def _list(changes: Sequence[Change]) -> str:
    return join_names([f"{change.part} {change.points()}" for change in changes])
