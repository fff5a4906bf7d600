"""A decision in words and in a table: what to take, what it does otherwise, and what cannot be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.compare.cost import COSTS, costs
from app.compare.decide import ERROR, Basis, Decision, basis, decide, measure_of
from app.compare.sides import Sides, load, refuse_twice
from app.compare.specs import warnings
from app.compare.tables import lacking
from app.report.whose import caveat
from benchmarks.base import Cell, Estimate, Table
from benchmarks.errors import SpecError

FEW = 30
"""With fewer examples the bounds are of little use: they are approximations, and wide."""

_MOST_BEHAVIOURS = 3


@dataclass(frozen=True)
class Recommendation:
    """``take`` is what to do, ``does`` what the recommended run does otherwise than the best, ``unknown`` what cannot be said."""

    decision: Decision
    table: Table
    take: tuple[str, ...]
    does: tuple[str, ...]
    unknown: tuple[str, ...]


def recommend(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
) -> Recommendation:
    """Which of the runs in ``folders`` to take, at a cost of ``margin`` at most in ``metric`` (None: the share of right labels).

    Raises SpecError where nothing can be compared, or the metric is no share of all answers.
    """
    if not 0 < margin < 1:
        raise SpecError(f"--margin {margin} is no share between 0 and 1; 0.03 is three points in a hundred.")
    refuse_twice(folders)
    if len(folders) < 2:
        raise SpecError("one run is not a choice; name two or more.")
    sides = load(folders, judge=judge)
    found = decide(basis(sides, measure_of(sides, metric, lower_is_better=lower_is_better)), margin)
    return Recommendation(found, _table(found), tuple(_take(found)), tuple(_does(found)), tuple(_unknown(found, sides)))


def _take(found: Decision) -> list[str]:
    of, sides = found.basis, found.basis.sides.sides
    best, within = sides[of.best].label, f"within {points(found.margin)} points of the best in {of.measure.name}"
    if not found.holds:
        return [f"Nothing can be recommended: no run is shown to be {within}, {best} with the best figure neither."]
    labels = [sides[i].label for i in found.holds]
    if found.smallest is not None and found.smallest == found.fastest:
        side = sides[found.smallest]
        return [
            f"Take {side.label}: it is shown to be {within}, and is the smallest and fastest of those that are "
            f"({_size(of, found.smallest)}, {_speed(of, found.smallest)})."
        ]
    told = [f"Shown to be {within}: {', '.join(labels)}."]
    if found.smallest is not None:
        told.append(
            f"Short of memory, take {sides[found.smallest].label}, the smallest of them ({_size(of, found.smallest)})."
        )
    if found.fastest is not None:
        told.append(
            f"Short of time, take {sides[found.fastest].label}, the fastest of them ({_speed(of, found.fastest)})."
        )
    return told


def _size(of: Basis, run: int) -> str:
    side = of.sides.sides[run]
    if side.weights_bytes is not None:
        return f"{_bytes(side.weights_bytes)} on disk"
    return f"{_bytes(side.cost.peak_memory or 0)} at its peak"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _speed(of: Basis, run: int) -> str:
    return f"{of.sides.sides[run].cost.seconds_per_answer:.3g} s an answer"


def _does(found: Decision) -> list[str]:
    """How a recommended run behaves otherwise than the best; where that is the best, how the others do."""
    taken = {run for run in (found.smallest, found.fastest) if run is not None and run != found.basis.best}
    others = taken or {run for run in range(len(found.basis.sides.sides)) if run != found.basis.best}
    return [line for run in sorted(others) for line in _behaves(found.basis, run)]


def _behaves(of: Basis, run: int) -> list[str]:
    about, sides = of.sides.benchmark, of.sides.sides
    under = [i for i, name in enumerate(of.sides.figures.conditions) if name in about.conflicts]
    among = np.isin(of.condition, under) if under else np.ones(len(of.condition), dtype=np.bool_)
    if not among.any():
        return []
    part = Basis(
        of.sides, of.measure, np.unique(of.group[among], return_inverse=True)[1], of.condition[among], of.label[among]
    )
    where = f"of {len(part.group)} answers under conflict" if under else f"of {len(part.group)} answers"
    told = []
    for i, label in enumerate(of.sides.figures.labels):
        marks = part.label == i
        mine, theirs = marks[:, run].mean(), marks[:, of.best].mean()
        if not mine and not theirs:
            continue
        low, high = part.difference(run, of.best, marks).interval()
        apart = mine - theirs
        sure = low > 0 or high < 0
        told_apart = f"{points(apart, sign=True)} points" if apart else "no difference"
        chance = "" if sure or not apart else ", which may be chance"
        behaviour = about.behaviours.get(label, f"is labelled {label}")
        line = (
            f"{sides[run].label} {behaviour} in {mine:.0%} {where}, {sides[of.best].label} in {theirs:.0%} "
            f"({told_apart}, 95% interval {points(low, sign=True)} to {points(high, sign=True)}{chance})."
        )
        told.append((not sure, -abs(apart), line))
    return [line for _, _, line in sorted(told)[:_MOST_BEHAVIOURS]]


def _unknown(found: Decision, sides: Sides) -> list[str]:
    of = found.basis
    told = []
    best = sides.sides[of.best].label
    for run, side in enumerate(sides.sides):
        if run in found.holds or run == of.best:
            continue
        difference = of.difference(run, of.best)
        low, high = difference.interval(1 - 2 * ERROR)
        if high < -found.margin:
            told.append(
                f"{side.label} is worse than {best} by more than the margin: {points(-difference.value)} points."
            )
        else:
            here = "as good as" if not difference.value else f"{points(-difference.value)} points worse than"
            told.append(
                f"{side.label} is not shown to hold, nor to fail: here {here} {best}, in truth it may be {points(-low)} points "
                "worse; more examples would tell (--plan)."
            )
    if of.best not in found.holds and found.holds:
        told.append(f"{best} has the best figure, but is not itself shown to be within the margin of the others.")
    if found.holds and (found.smallest is None or found.fastest is None):
        missing = " and ".join(
            what for what, one in (("smallest", found.smallest), ("fastest", found.fastest)) if one is None
        )
        told.append(f"Which is the {missing} cannot be said: not all of those that hold have told it.")
    if of.groups < FEW:
        told.append(f"These are {of.groups} examples; bounds on so few are wide and rough.")
    told += lacking(sides)
    told += warnings(sides.sides)
    told.append(
        f"The figures rest on {len(of.group)} answers to {of.groups} examples, labelled by {sides.judge}{caveat(sides.judge)}. "
        "Of other data, prompts and decoding they say nothing."
    )
    return told


def _table(found: Decision) -> Table:
    of, sides = found.basis, found.basis.sides.sides
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, side in enumerate(sides):
        n = len(of.group)
        bound: Estimate | None = None
        difference: Estimate | None = None
        if run != of.best:
            apart = of.difference(run, of.best)
            bound, difference = Estimate(apart.lower(1 - ERROR), n=n), Estimate(apart.value, n=n)
        holds = "yes" if run in found.holds else "no"
        shown = f"{holds}, the best figure" if run == of.best else holds
        rows.append(
            (
                side.label,
                (
                    Estimate(float(of.shares[run]), n=n),
                    difference,
                    bound,
                    shown,
                    Estimate(found.chances[run], n=n),
                    *costs(side),
                ),
            )
        )
    lower = ", lower is better" if of.measure.lower_is_better else ""
    notes = (
        f"{of.measure.name}: over the {len(of.group)} answers that all runs have labelled{lower}. better by: than the run with "
        "the best figure; at least: its one-sided 95% lower bound (Bonett and Price 2012, over examples).",
        f"holds: shown to be worse than none of the others by {points(found.margin)} points or more, and so not than the best, "
        "whichever that is; p is against that, corrected for asking it of every run (Holm 1979).",
    )
    columns = (of.measure.name, "better by", "at least", "holds", "p (Holm)", *COSTS)
    return Table("recommend", f"Within {points(found.margin)} points of the best", columns, tuple(rows), notes)


def points(share: float, *, sign: bool = False) -> str:
    """A share, or a difference of shares, in points of a hundred: ``3``, ``-1.25``, with ``sign`` also ``+3``."""
    told = f"{100 * share:+.1f}" if sign else f"{100 * share:.1f}"
    return told.removesuffix(".0") if told not in ("-0.0", "+0.0") else "0"
