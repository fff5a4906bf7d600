"""Figure of a learning curve: accuracy by the number of rows, a line for each data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.compare.fine_tuning.learning_curve import CurvePoint, LearningCurve
from app.figures.figure_style import MARKERS, inches, ink, label, styled
from benchmarks.vocabulary import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_learning_curve(curve: LearningCurve, *, width: str) -> Figure:
    """Draw the accuracies under conflict, and below those without it, with their intervals; the base is a dashed line.

    Trainings that failed are crosses at the bottom.
    """
    from matplotlib.figure import Figure

    panels = [(curve.measured, curve.base)]
    if curve.base_other is not None:
        panels.append(("without conflict", curve.base_other))
    failed = [point.rows for point in curve.failed]
    sizes = sorted({*failed, *(point.rows for point in curve.points)})
    with styled():
        figure = Figure(figsize=(inches(width), 2.2 * len(panels)))
        for axes, (name, base) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
            if base.value is not None:
                axes.axhline(base.value, color="black", linewidth=0.6, linestyle="--", label="base")
            for number, data in enumerate(curve.data):
                values = [
                    (point, point.conflict if name == curve.measured else point.other) for point in curve.of(data)
                ]
                _draw(axes, values, number, label(data, 24, 1))
            if failed:
                axes.plot(failed, [0.03] * len(failed), "x", color="black", markersize=4, label="failed")
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.minorticks_off()
            axes.set_ylim(0, 1)
            axes.set_ylabel(curve.metric if curve.metric and name == curve.metric else f"accuracy {name}")
        axes.set_xlabel("rows")
        figure.axes[0].legend()
        return figure


def _draw(axes: object, values: list[tuple[CurvePoint, Estimate | None]], number: int, name: str) -> None:
    known = [
        (point.rows, e.value, e.value if e.low is None else e.low, e.value if e.high is None else e.high)
        for point, e in values
        if e is not None and e.value is not None
    ]
    if not known:
        return
    x, y, low, high = zip(*known, strict=True)
    errors = [[a - b for a, b in zip(y, low, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
    # Ink 4 is almost white.
    colour = ink(number % 4).fill
    axes.errorbar(  # type: ignore[attr-defined]
        x, y, yerr=errors, color=colour, marker=MARKERS[number % len(MARKERS)], markersize=4, linewidth=0.9, label=name
    )
