"""What runs take: memory, disk and time, and that beside how good they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.compare.pairs import Array, RunPair, own_counts
from app.compare.run_view import RunView, RunViews
from app.compare.spec_diff import chip_of, stem
from benchmarks.base import Cell, Estimate, Table
from benchmarks.stats.intervals import estimate, resample

COSTS = ("tokens per second", "seconds per answer", "peak memory, GB", "size on disk, GB")
_GB = 1e9

Hits = NDArray[np.bool_]


def costs(side: RunView) -> tuple[Estimate, ...]:
    """The columns ``COSTS``; n/a where the engine cannot tell."""
    cost = side.cost
    peak = None if cost.peak_memory is None else cost.peak_memory / _GB
    size = None if side.weights_bytes is None else side.weights_bytes / _GB
    return (
        Estimate(cost.tokens_per_second, n=cost.timed, reason="no answer was timed"),
        Estimate(cost.seconds_per_answer, n=cost.timed, reason="no answer was timed"),
        Estimate(peak, n=cost.answers, reason="the engine does not tell its memory"),
        Estimate(size, n=1, reason="the model has no weights here, or the run is from before they were measured"),
    )


def cost_table(sides: Sequence[RunView]) -> Table:
    """A row for each run: what it is, and what its answers took."""
    rows: list[tuple[str, tuple[Cell, ...]]] = [
        (side.label, (side.quantisation or "", chip_of(side) or "", side.cost.answers, *costs(side))) for side in sides
    ]
    notes = (
        "Over all answers of a run that are no error. tokens per second: tokens after an answer's first by the time they took; "
        "seconds per answer: from the prepared prompt to the last token; peak memory: the engine's highest; GB: 10^9 bytes.",
    )
    return Table("cost", "Memory and speed", ("quantisation", "chip", "answers", *COSTS), tuple(rows), notes)


def tradeoff_table(
    grouped: Sequence[Sequence[RunView]], pairs: Sequence[RunPair], sides: RunViews, resamples: int
) -> Table:
    """Quality against memory and speed: a row for each quantisation of each model."""
    by_run = {id(pair.second): pair for pair in pairs}
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for group in grouped:
        for side in group:
            pair = by_run.get(id(side))
            difference = None if pair is None else accuracy_difference(pair, sides)
            label = f"{stem(side)} / {side.quantisation or side.label}"
            rows.append((label, (accuracy(side, sides, resamples), difference, *costs(side))))
    notes = (
        f"accuracy: the share of right labels over {', '.join(sides.figures.conditions)} together; difference: to the first row "
        "of the same model, over the answers that both have labelled. Intervals: 95%, percentile bootstrap over examples; one of "
        "no width means that all is the same, not that it is certain.",
    )
    columns = ("accuracy", "difference", *COSTS)
    return Table("tradeoff", "Quality against memory and speed, by quantisation", columns, tuple(rows), notes)


def right(sides: RunViews) -> Hits:
    """Which labels are right under which condition; shape (conditions, labels). All conditions together are the accuracy."""
    figures, correct = sides.figures, sides.benchmark.correct
    return np.array([[correct(condition, label) for label in figures.labels] for condition in figures.conditions])


def accuracy(side: RunView, sides: RunViews, resamples: int) -> Estimate:
    """The share of a run's labels that are right, over all conditions together."""
    counts = own_counts(side, sides.figures)
    return _ratio((counts * right(sides)).sum((1, 2)), counts.sum((1, 2)), resamples, sides.seed)


def accuracy_difference(pair: RunPair, sides: RunViews) -> Estimate:
    """The second run's accuracy less the first one's, over the answers that both have labelled."""
    return _ratio(*pair.of_share(right(sides)), pair.resamples, pair.seed)


def _ratio(sums: Array, sizes: Array, resamples: int, seed: int) -> Estimate:
    drawn = resample(np.column_stack([sums, sizes]), resamples, seed)
    total, n = float(sums.sum()), int(sizes.sum())
    value = total / n if n else float("nan")
    replicates = np.divide(drawn[:, 0], drawn[:, 1], out=np.full(len(drawn), np.nan), where=drawn[:, 1] > 0)
    return estimate(value, replicates, n, reason="there is no labelled answer")
