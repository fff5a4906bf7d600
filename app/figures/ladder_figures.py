"""Figure of a ladder: the accuracy of each rung, and the changes of each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app.figures.figure_parts import percent_axis
from app.figures.figure_style import inches, ink, label, styled
from app.parity.ladder.ladder_comparison import Ladder, LadderStep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERIES = ("answers", "labels", "likeliest tokens")


def draw_ladder(ladder: Ladder, *, width: str) -> Figure:
    """Draw the rungs' accuracies with their intervals, and below them the changes of each step.

    The changes are the mean absolute change of a logit, and the shares of answers, labels and likeliest tokens that differ
    after the step. A value that was not measured is drawn as n/a.
    """
    from matplotlib.figure import Figure

    steps = [step for step in ladder.steps if not step.side_branch]
    with styled():
        figure = Figure(figsize=(inches(width), 4.8))
        above, middle, below = figure.subplots(3, 1)
        _draw_accuracies(above, ladder)
        _draw_logits(middle, steps)
        _draw_changes(below, steps)
    return figure


def _draw_accuracies(axes: Any, ladder: Ladder) -> None:
    rungs = [i for i, rung in enumerate(ladder.rungs) if not rung.side_branch]
    for place, i in enumerate(rungs):
        value = ladder.accuracies[i]
        if value.value is None:
            axes.text(place, 0.02, "n/a", ha="center", fontsize=5.5)
            continue
        if value.low is not None and value.high is not None:
            axes.plot([place, place], [value.low, value.high], color="black", linewidth=0.6)
        axes.plot([place], [value.value], "o", color=ink(0).fill, markersize=4)
    axes.set_xticks(range(len(rungs)), [label(ladder.rungs[i].name, 12) for i in rungs])
    axes.set_xlim(-0.5, len(rungs) - 0.5)
    axes.set_ylim(0, 1)
    axes.set_ylabel("accuracy")
    percent_axis(axes.yaxis)
    axes.set_title("Accuracy at each rung", fontsize=7)


def _draw_logits(axes: Any, steps: Sequence[LadderStep]) -> None:
    for place, step in enumerate(steps):
        if step.parity.numerics is None:
            axes.text(place, 0.0, "n/a", ha="center", va="bottom", fontsize=5.5)
            continue
        axes.bar(place, step.moved, 0.5, color=ink(2).fill, edgecolor="black", linewidth=0.4)
        axes.text(place, step.moved, f"{step.moved:.2g}", ha="center", va="bottom", fontsize=5.5)
    _label_steps(axes, steps)
    axes.set_ylim(0, max(1e-6, max((step.moved for step in steps), default=0.0)) * 1.25)
    axes.set_ylabel("logits")
    axes.set_title("By how much each step moves a logit on average", fontsize=7)


def _draw_changes(axes: Any, steps: Sequence[LadderStep]) -> None:
    """Draw the shares of answers, labels and likeliest tokens that differ after each step, a bar for each."""
    bar_width = 0.26
    shares = [_changed_shares(step) for step in steps]
    for number, name in enumerate(_SERIES):
        kind = ink(number)
        for place, of_step in enumerate(shares):
            x, share = place + (number - 1) * bar_width, of_step[number]
            if share is None:
                axes.text(x, 0.002, "n/a", rotation=90, ha="center", va="bottom", fontsize=5.5)
                continue
            name_once = {"label": name} if place == 0 else {}
            axes.bar(
                x,
                share,
                bar_width * 0.92,
                color=kind.fill,
                hatch=kind.hatch,
                edgecolor=kind.on if kind.hatch else "black",
                linewidth=0.4,
                **name_once,
            )
            axes.text(x, share, f"{100 * share:.0f}", ha="center", va="bottom", fontsize=5.5)
    _label_steps(axes, steps)
    axes.set_ylim(0, max(0.05, axes.get_ylim()[1] * 1.15))
    axes.set_ylabel("share")
    percent_axis(axes.yaxis)
    axes.set_title("What each step makes another one", fontsize=7)
    axes.legend(loc="best")


def _changed_shares(step: LadderStep) -> tuple[float | None, float | None, float | None]:
    """Return the shares of ``_SERIES`` that differ after a step; None where that was not measured."""
    answers, effect, numerics = step.parity.answers, step.parity.effect, step.parity.numerics
    return (
        1 - answers.same / answers.shared if answers.shared else None,
        None if effect.same_labels.value is None else 1 - effect.same_labels.value,
        1 - numerics.top_same / numerics.positions if numerics else None,
    )


def _label_steps(axes: Any, steps: Sequence[LadderStep]) -> None:
    axes.set_xticks(range(len(steps)), [label(f"{step.start} to {step.end}", 16, 3) for step in steps])
    axes.set_xlim(-0.6, len(steps) - 0.4)
