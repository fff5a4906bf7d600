"""A decision in words and in a table: what to take, what it does otherwise, and what cannot be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.compare.cost import COSTS, costs
from app.compare.decide import ACCURACY, ERROR, Basis, Decision, basis, decide, measure_of
from app.compare.sides import Sides, load, refuse_twice
from app.compare.specs import warnings
from app.compare.tables import lacking
from app.report.whose import caveat
from benchmarks.base import Cell, Estimate, Table
from benchmarks.errors import SpecError
from mlx_backends.policy import PREFIX

FEW = 30
"""With fewer examples the bounds are of little use: they are approximations, and wide."""

_MOST_BEHAVIOURS = 3

_SAME_TIME = 0.05
"""Speeds that differ by less are told apart by what else the machine did."""


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
    refuse_twice(folders)
    if len(folders) < 2:
        raise SpecError("one run is not a choice; name two or more.")
    return recommend_of(load(folders, judge=judge), margin=margin, metric=metric, lower_is_better=lower_is_better)


def recommend_of(
    sides: Sides, *, margin: float = 0.03, metric: str | None = None, lower_is_better: bool = False
) -> Recommendation:
    """:func:`recommend` among runs that are read."""
    if not 0 < margin < 1:
        raise SpecError(f"a margin of {margin} is no share between 0 and 1; 0.03 is three points in a hundred.")
    answers = basis(sides, measure_of(sides, metric, lower_is_better=lower_is_better))
    if answers.groups < 2:
        raise SpecError("these runs have labelled one example in common, and one decides nothing; ask more of them.")
    found = decide(answers, margin)
    return Recommendation(found, _table(found), tuple(_take(found)), tuple(_does(found)), tuple(_unknown(found, sides)))


def _take(found: Decision) -> list[str]:
    of, sides = found.basis, found.basis.sides.sides
    within = f"shown to be within {points(found.margin)} points of the best in {of.measure.name}"
    if not found.holds:
        return [
            f"Nothing can be recommended yet: none is {within}, not even {_named(of, of.best)}, which has the best figure "
            "here. More examples would tell."
        ]
    if len(found.holds) == 1:
        return [f"Take {_named(of, found.holds[0])}: it is the only one that is {within}."]
    smallest, fastest = found.smallest, found.fastest
    if smallest is not None and fastest is not None and _as_fast(of, smallest, fastest):
        fast = "the fastest" if smallest == fastest else f"as fast as the fastest within {_SAME_TIME:.0%}"
        return [
            f"Take {_named(of, smallest)}: of the {len(found.holds)} that are {within}, it is the smallest "
            f"({_size(of, smallest)}) and {fast} ({_speed(of, smallest)})."
        ]
    told = [f"{len(found.holds)} are {within}: {', '.join(_named(of, i) for i in found.holds)}."]
    if smallest is not None:
        told.append(f"Short of memory, take {sides[smallest].label}, the smallest of them ({_size(of, smallest)}).")
    if fastest is not None:
        told.append(f"Short of time, take {sides[fastest].label}, the fastest of them ({_speed(of, fastest)}).")
    if smallest is None and fastest is None:
        told.append("Which of them to take is decided by what they do otherwise.")
    return told


def _named(of: Basis, run: int) -> str:
    return f"{of.sides.sides[run].label} ({of.shares[run]:.1%})"


def _as_fast(of: Basis, run: int, fastest: int) -> bool:
    mine, least = (of.sides.sides[i].cost.seconds_per_answer or 0.0 for i in (run, fastest))
    return mine <= (1 + _SAME_TIME) * least


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
    """What ``run`` does more or less often than the best: by condition what is sure, else the most."""
    figures, sides = of.sides.figures, of.sides.sides
    under = [i for i, name in enumerate(figures.conditions) if name in of.sides.benchmark.conflicts]
    views = [
        (i, label, part)
        for i in under or range(len(figures.conditions))
        if (part := _under(of, i)) is not None
        for label in range(len(figures.labels))
        if (part.label[:, [run, of.best]] == label).any()
    ]
    told = []
    for condition, label, part in views:
        marks = part.label == label
        low, high = part.difference(run, of.best, marks).interval(1 - ERROR / len(views))
        apart = float(marks[:, run].mean() - marks[:, of.best].mean())
        line = f"{_does_so(part, (run, of.best), condition, label)} ({points(apart, sign=True)} points; "
        line += f"{points(low, sign=True)} to {points(high, sign=True)}{_corrected(len(views))})."
        told.append((low <= 0 <= high, -abs(apart), condition, line))
    told.sort()
    by_condition: dict[int, str] = {}
    for unsure, _, condition, line in told:
        if not unsure:
            by_condition.setdefault(condition, line)
    if by_condition:
        return list(by_condition.values())[:_MOST_BEHAVIOURS]
    where = "Under conflict " if under else ""
    if not told or not told[0][1]:
        return [f"{where}{sides[run].label} gives every label as often as {sides[of.best].label}."]
    nothing = f"{where}{sides[run].label} does nothing otherwise than {sides[of.best].label} that is more than chance may bring."
    return [nothing, f"The most is: {told[0][-1]}"]


def _does_so(of: Basis, runs: tuple[int, int], condition: int, label: int) -> str:
    about, (one, other) = of.sides.benchmark, (of.sides.sides[run].label for run in runs)
    named, under = of.sides.figures.labels[label], of.sides.figures.conditions[condition]
    behaviour = about.behaviours.get(named, f"is labelled {named}")
    when = about.situations.get(under, f"under {under}")
    when = when[:1].upper() + when[1:]
    mine, theirs = ((of.label[:, run] == label).mean() for run in runs)
    return f"{when}, {one} {behaviour} in {mine:.0%} of {len(of.group)} answers, {other} in {theirs:.0%}"


def _corrected(lines: int) -> str:
    """How sure, where so many intervals are to hold together (Bonferroni)."""
    return " at 95%" if lines == 1 else f" at 95%, all {lines} such figures together"


def _under(of: Basis, condition: int) -> Basis | None:
    """The answers under one condition; None where there are none."""
    among = of.condition == condition
    if not among.any():
        return None
    group = np.unique(of.group[among], return_inverse=True)[1]
    return Basis(of.sides, of.measure, group, of.condition[among], of.label[among])


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
                f"{side.label} is not shown to hold, nor to fail: by these answers {here} {best}, in truth up to {points(-low)} "
                "points worse; more examples would tell."
            )
    if of.best not in found.holds and found.holds:
        told.append(f"{best} has the best figure here, but is not itself shown to be within the margin of the others.")
    if found.holds and (found.smallest is None or found.fastest is None):
        missing = " and ".join(
            what for what, one in (("smallest", found.smallest), ("fastest", found.fastest)) if one is None
        )
        told.append(f"Which is the {missing} cannot be said: it is not known of each of those that hold.")
    if of.groups < FEW:
        told.append(f"{of.groups} examples are few: bounds on so few are wide and rough.")
    if not any(str(side.spec.get("model")).startswith(PREFIX) for side in sides.sides):
        told.append(
            "Whether any of them is better than a model that reads nothing cannot be said: no policy, such as "
            "policy:always-text, is among these runs."
        )
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
        f"{_told(of)}, over the {len(of.group)} answers that all runs have labelled{lower}. better by: than the run with "
        "the best figure; at least: its one-sided 95% lower bound (Bonett and Price 2012, over examples).",
        f"holds: shown to be worse than none of the others by {points(found.margin)} points or more, and so not than the best, "
        "whichever that is; p is against that, corrected for asking it of every run (Holm 1979).",
    )
    columns = (of.measure.name, "better by", "at least", "holds", "p (Holm)", *COSTS)
    return Table("recommend", f"Within {points(found.margin)} points of the best", columns, tuple(rows), notes)


def _told(of: Basis) -> str:
    """The measure, and what it is where its name does not say."""
    if of.measure.name != ACCURACY:
        return f"{of.measure.name}: as in the tables"
    used = sorted(set(of.condition.tolist()))
    return (
        f"accuracy: the share of right labels under {', '.join(of.sides.figures.conditions[i] for i in used)} together"
    )


def points(share: float, *, sign: bool = False) -> str:
    """A share, or a difference of shares, in points of a hundred: ``3``, ``-1.25``, with ``sign`` also ``+3``."""
    told = f"{100 * share:+.1f}" if sign else f"{100 * share:.1f}"
    return told.removesuffix(".0") if told not in ("-0.0", "+0.0") else "0"
