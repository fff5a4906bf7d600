"""Figures of a comparison: label changes, and quality against memory and against time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.compare.comparison_tables import Comparison
from app.compare.differences.label_flips import used_labels
from app.compare.runs.cost_tables import BENCHMARK_ACCURACY, accuracy
from app.compare.runs.run_pairs import RunPair, run_metrics
from app.compare.runs.run_view import RunView
from app.figures.figure_drawing import Point, scatter
from app.figures.heat_map import flips
from app.report.tables.run_tables import RESAMPLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GB = 1e9


def comparison_figures(comparison: Comparison, *, width: str) -> Iterator[tuple[str, str, Figure]]:
    """Yield every figure of a comparison as its name, its title, and the figure.

    Quality is the first of the comparison's metrics, or else the benchmark accuracy.
    """
    for number, pair in enumerate(comparison.pairs):
        if pair.shared:
            title = f"Which label became which: {pair.first.label} to {pair.second.label}"
            yield (
                "flips" if len(comparison.pairs) == 1 else f"flips-{number + 1}",
                title,
                _flips(pair, comparison, width),
            )
    yield from _costs(comparison, width)


def _flips(pair: RunPair, comparison: Comparison, width: str) -> Figure:
    counts = pair.flips()
    labels = used_labels([counts], comparison.views.benchmark)
    matrix = [[counts[was, now] for now in labels] for was in labels]
    return flips(
        matrix, labels, before=pair.first.label, after=pair.second.label, title="Which label became which", width=width
    )


def _costs(comparison: Comparison, width: str) -> Iterator[tuple[str, str, Figure]]:
    runs = comparison.views
    quality = comparison.metrics[0] if comparison.metrics else BENCHMARK_ACCURACY

    def quality_point(run: RunView) -> Point:
        if comparison.metrics:
            (value,) = run_metrics(run, runs.label_metrics, [quality], resamples=RESAMPLES, seed=runs.seed)
        else:
            value = accuracy(run, runs)
        return Point(run.label, 0.0, value)

    memory = {run.label: run.cost.peak_memory / _GB for run in runs.runs if run.cost.peak_memory}
    seconds = {run.label: seconds_spent for run in runs.runs if (seconds_spent := run.cost.seconds_per_answer)}
    for name, axis, values in (
        ("memory", "peak memory, GB", memory),
        ("speed", "seconds per answer", seconds),
    ):
        run_points = [quality_point(run) for run in runs.runs if run.label in values]
        points: Sequence[Point] = [Point(point.name, values[point.name], point.y) for point in run_points]
        if sum(point.y.value is not None for point in points) > 1:
            title = f"{quality} against {axis.partition(',')[0]}"
            yield name, title, scatter(points, x=axis, y=quality, title=title, width=width)
