"""The figures of a comparison: which label became which, and quality against memory and against time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.compare.cost import accuracy
from app.compare.flips import shown
from app.compare.pairs import RunPair, own_figures
from app.compare.run_view import RunView
from app.compare.tables import Comparison
from app.figures.drawing import Point, flips, scatter
from app.report.tables import RESAMPLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GB = 1e9


def figures(found: Comparison, *, width: str) -> Iterator[tuple[str, str, Figure]]:
    """Every figure of a comparison: its name, what it shows, and it. Quality is the first of ``metrics``, else the accuracy."""
    for number, pair in enumerate(found.pairs):
        if pair.shared:
            title = f"Which label became which: {pair.first.label} to {pair.second.label}"
            yield "flips" if len(found.pairs) == 1 else f"flips-{number + 1}", title, _flips(pair, found, width)
    yield from _costs(found, width)


def _flips(pair: RunPair, found: Comparison, width: str) -> Figure:
    counts = pair.flips()
    known = shown([counts], found.sides.benchmark)
    matrix = [[counts[was, now] for now in known] for was in known]
    return flips(
        matrix, known, before=pair.first.label, after=pair.second.label, title="Which label became which", width=width
    )


def _costs(found: Comparison, width: str) -> Iterator[tuple[str, str, Figure]]:
    sides = found.sides
    quality = found.metrics[0] if found.metrics else "accuracy"

    def good(side: RunView) -> Point:
        if found.metrics:
            (value,) = own_figures(side, sides.figures, [quality], resamples=RESAMPLES, seed=sides.seed)
        else:
            value = accuracy(side, sides, RESAMPLES)
        return Point(side.label, 0.0, value)

    memory = {side.label: side.cost.peak_memory / _GB for side in sides.sides if side.cost.peak_memory}
    seconds = {side.label: spent for side in sides.sides if (spent := side.cost.seconds_per_answer)}
    for name, axis, known in (
        ("memory", "peak memory, GB", memory),
        ("speed", "seconds per answer", seconds),
    ):
        told = [good(side) for side in sides.sides if side.label in known]
        points: Sequence[Point] = [Point(each.name, known[each.name], each.y) for each in told]
        if sum(point.y.value is not None for point in points) > 1:
            title = f"{quality} against {axis.partition(',')[0]}"
            yield name, title, scatter(points, x=axis, y=quality, title=title, width=width)
