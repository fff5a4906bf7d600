"""Bounds of a comparison's differences, whatever the answers that the judge has not decided turn out to be.

Equal answers of two runs to one instance get the same label, so they cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.run_pairs import MetricFunction, PairedDifference, RunPair, label_codes
from benchmarks.stats.metric_extremes import extremes, is_linear
from benchmarks.vocabulary import Cell, Table

Codes = NDArray[np.int64]

_BOTH, _FIRST, _SECOND = -1, 0, 1


@dataclass(frozen=True)
class Undecided:
    """The instances of a pair of runs that one of them, or both, have not decided.

    ``codes`` are those of :attr:`RunPair.coded` for all instances, with the number of labels for an undecided one; ``same`` marks
    those where both are undecided and the answers are equal. Shapes (instances, 4) and (instances,).
    """

    codes: Codes
    same: NDArray[np.bool_]
    labels: int

    @property
    def count(self) -> int:
        """The number of undecided answers of both runs."""
        return int((self.codes[:, 2:] == self.labels).sum())

    @property
    def blocks(self) -> list[tuple[float, int, int]]:
        """The undecided answers that get one label at a bound: (count, run or -1 for both, condition)."""
        blocks = []
        for condition in np.unique(self.codes[:, 1]).tolist():
            for run in (_BOTH, _FIRST, _SECOND):
                count = int((self._mask(run) & (self.codes[:, 1] == condition)).sum())
                blocks += [(float(count), run, condition)] if count else []
        return blocks

    def labelled(self, labels: Sequence[int]) -> Codes:
        """Return the codes with the label of each block given to its answers."""
        codes = self.codes.copy()
        for (_, run, condition), label in zip(self.blocks, labels, strict=True):
            rows = self._mask(run) & (self.codes[:, 1] == condition)
            for column in (2, 3) if run == _BOTH else (2 + run,):
                codes[rows, column] = label
        return codes

    def _mask(self, run: int) -> NDArray[np.bool_]:
        if run == _BOTH:
            return self.same
        mask: NDArray[np.bool_] = (self.codes[:, 2 + run] == self.labels) & ~self.same
        return mask


def undecided_of(pair: RunPair) -> Undecided | None:
    """Return the undecided instances of a pair; None where there are none."""
    metrics = pair.label_metrics
    count = len(metrics.labels)
    codes = pair.shared_codes(metrics.conditions, {**label_codes(metrics), "undecided": count})
    rows = (codes >= 0).all(1)
    if not (codes[rows][:, 2:] == count).any():
        return None
    same = np.zeros(len(codes), np.bool_)
    both = np.flatnonzero(rows & (codes[:, 2:] == count).all(1))
    texts = [run.answer_texts(places[both]) for run, places in zip((pair.first, pair.second), pair.places, strict=True)]
    same[both] = [text == other for text, other in zip(*texts, strict=True)]
    return Undecided(codes[rows], same[rows], count)


def difference_bounds(
    pair: RunPair, metric: MetricFunction, undecided: Undecided
) -> tuple[PairedDifference, PairedDifference]:
    """Return the difference of a metric at its least and at its greatest, whatever the ``undecided`` answers turn out to be.

    Each has the interval with the labels of that bound. Equal answers cancel in linear metrics;
    in others their labels move both runs' denominators, so each run gets its own there, and the bounds are wider.
    """
    shape = (len(pair.label_metrics.conditions), undecided.labels)
    if not is_linear(metric, shape):
        undecided = replace(undecided, same=np.zeros_like(undecided.same))
    totals = np.zeros((2, *shape))
    for run in (_FIRST, _SECOND):
        known = undecided.codes[:, 2 + run] < undecided.labels
        np.add.at(totals, (run, undecided.codes[known, 1], undecided.codes[known, 2 + run]), 1)
    ends = extremes(metric, totals, undecided.blocks)
    least, greatest = (replace(pair, given=undecided.labelled(labels.tolist())).compare(metric) for labels in ends)
    return least, greatest


def bounds_table(pairs: Sequence[RunPair], names: Sequence[str]) -> Table | None:
    """Return the bounds of each difference; None where every answer is decided."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for pair in pairs:
        if (undecided := undecided_of(pair)) is None:
            continue
        for name in names:
            least, greatest = difference_bounds(pair, pair.label_metrics.of[name], undecided)
            rows.append((f"{pair.second.label} / {name}", (undecided.count, least.difference, greatest.difference)))
    if not rows:
        return None
    notes = (
        "The table of differences counts the answers that are decided in both runs. Here the undecided ones count too, with the "
        "labels that make the difference least, and with those that make it greatest; equal answers of both runs to one instance "
        "get the same label, except in shares of some labels, such as MPB. Intervals: as there, with these labels.",
    )
    return Table(
        "bounds",
        "Bounds of the differences while answers are undecided",
        ("undecided", "least", "greatest"),
        tuple(rows),
        notes,
    )
