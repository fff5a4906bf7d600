"""Figure of a ladder: the accuracy of each rung, and the changes of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures.style import inches, ink, label, styled
from app.parity.ladder.compare import Ladder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERIES = ("answers", "labels", "likeliest tokens")


def draw_ladder(ladder: Ladder, *, width: str) -> Figure:
    """Draw the rungs' accuracies with their intervals, and below them the changes of each step.

    The changes are the mean absolute change of a logit, and the shares of answers, labels and likeliest tokens that differ
    after the step. A value that was not measured is drawn as n/a.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    width_inches = inches(width)
    rungs = [i for i, rung in enumerate(ladder.rungs) if not rung.side_branch]
    steps = [step for step in ladder.steps if not step.side_branch]
    with styled():
        figure = Figure(figsize=(width_inches, 4.8))
        above, middle, below = figure.subplots(3, 1)
        for place, i in enumerate(rungs):
            value = ladder.accuracies[i]
            if value.value is None:
                above.text(place, 0.02, "n/a", ha="center", fontsize=5.5)
                continue
            if value.low is not None and value.high is not None:
                above.plot([place, place], [value.low, value.high], color="black", linewidth=0.6)
            above.plot([place], [value.value], "o", color=ink(0).fill, markersize=4)
        above.set_xticks(range(len(rungs)), [label(ladder.rungs[i].name, 12) for i in rungs])
        above.set_xlim(-0.5, len(rungs) - 0.5)
        above.set_ylim(0, 1)
        above.set_ylabel("accuracy")
        above.set_title("Accuracy at each rung", fontsize=7)
        names = [label(f"{step.start} to {step.end}", 16, 3) for step in steps]
        for place, step in enumerate(steps):
            if step.parity.numerics is None:
                middle.text(place, 0.0, "n/a", ha="center", va="bottom", fontsize=5.5)
                continue
            middle.bar(place, step.moved, 0.5, color=ink(2).fill, edgecolor="black", linewidth=0.4)
            middle.text(place, step.moved, f"{step.moved:.2g}", ha="center", va="bottom", fontsize=5.5)
        middle.set_xticks(range(len(steps)), names)
        middle.set_xlim(-0.6, len(steps) - 0.4)
        middle.set_ylim(0, max(1e-6, max((step.moved for step in steps), default=0.0)) * 1.25)
        middle.set_ylabel("logits")
        middle.set_title("By how much each step moves a logit on average", fontsize=7)
        bar_width = 0.26
        for number, name in enumerate(_SERIES):
            kind = ink(number)
            for place, step in enumerate(steps):
                answers, effect, numerics = step.parity.answers, step.parity.effect, step.parity.numerics
                share = (
                    (1 - answers.same / answers.shared if answers.shared else None),
                    (None if effect.same_labels.value is None else 1 - effect.same_labels.value),
                    (1 - numerics.top_same / numerics.positions if numerics else None),
                )[number]
                x = place + (number - 1) * bar_width
                if share is None:
                    below.text(x, 0.002, "n/a", rotation=90, ha="center", va="bottom", fontsize=5.5)
                    continue
                name_once = {"label": name} if place == 0 else {}
                below.bar(
                    x,
                    share,
                    bar_width * 0.92,
                    color=kind.fill,
                    hatch=kind.hatch,
                    edgecolor=kind.on if kind.hatch else "black",
                    linewidth=0.4,
                    **name_once,
                )
                below.text(x, share, f"{100 * share:.0f}", ha="center", va="bottom", fontsize=5.5)
        below.set_xticks(range(len(steps)), names)
        below.set_xlim(-0.6, len(steps) - 0.4)
        below.set_ylim(0, max(0.05, below.get_ylim()[1] * 1.15))
        below.set_ylabel("share")
        for axis in (above.yaxis, below.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        below.set_title("What each step makes another one", fontsize=7)
        below.legend(loc="best")
    return figure
