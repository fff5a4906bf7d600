"""A recommendation in words and in a table: what to take, what it does otherwise, and what cannot be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.compare.cost import COSTS, costs
from app.compare.floor import Floor, beside_floor, floors, none_beats
from app.compare.non_inferiority import (
    ACCURACY,
    ERROR,
    Decision,
    TargetMetric,
    TargetShares,
    basis,
    decide,
    measure_of,
    points,
)
from app.compare.run_view import RunView, RunViews, load, refuse_twice
from app.compare.spec_diff import warnings
from app.compare.tables import lacking
from app.report.competence import SourceAccuracy, listed, readings, unread, unread_sentence
from app.report.judge_selection import caveat
from benchmarks.base import Cell, Estimate, Table
from benchmarks.errors import SpecError

__all__ = ["Recommendation", "points", "recommend", "recommend_of"]

FEW = 30
"""With fewer examples the bounds are of little use: they are approximations, and wide."""

_MOST_BEHAVIOURS = 3

_SAME_TIME = 0.05
"""Speeds that differ by less are told apart by what else the machine did."""


@dataclass(frozen=True)
class Recommendation:
    """``take`` is what to do, ``does`` what the recommended run does otherwise than the best, ``unknown`` what cannot be said.

    The decision is among the models; policies are floors, which the models are put beside. ``alone`` is the share of right
    answers where one source is shown alone, where the benchmark asks that.
    """

    decision: Decision
    table: Table
    take: tuple[str, ...]
    does: tuple[str, ...]
    unknown: tuple[str, ...]
    alone: Table | None = None


def recommend(
    folders: Sequence[Path],
    *,
    judge: str | None = None,
    margin: float = 0.03,
    metric: str | None = None,
    lower_is_better: bool = False,
) -> Recommendation:
    """Recommend one of the runs in ``folders``, at a cost of ``margin`` at most in ``metric`` (None: the share of right labels).

    Raises SpecError where nothing can be compared, or the metric is no share of all answers.
    """
    refuse_twice(folders)
    if len(folders) < 2:
        raise SpecError("one run is not a choice; name two or more.")
    return recommend_of(load(folders, judge=judge), margin=margin, metric=metric, lower_is_better=lower_is_better)


def recommend_of(
    sides: RunViews, *, margin: float = 0.03, metric: str | None = None, lower_is_better: bool = False
) -> Recommendation:
    """:func:`recommend` among runs that are read."""
    if not 0 < margin < 1:
        raise SpecError(f"a margin of {margin} is no share between 0 and 1; 0.03 is three points in a hundred.")
    models, policies = divided(sides)
    measure = measure_of(sides, metric, lower_is_better=lower_is_better)
    answers = basis(replace(sides, sides=models or policies), measure)
    if answers.groups < 2:
        raise SpecError("these runs have labelled one example in common, and one decides nothing; ask more of them.")
    found = decide(answers, margin)
    if not models:
        found = replace(found, holds=(), leanest=None, lightest=None, fastest=None)
    ground = _Ground(
        found,
        tuple(floors(models, policies, sides, measure)),
        {side.label: _readings(side, sides) for side in models},
        bool(models),
    )
    return Recommendation(
        found,
        _table(found, policies if models else (), sides, measure),
        tuple(_take(ground)),
        tuple(_does(found)),
        tuple(_unknown(ground, sides)),
        _alone(ground.readings),
    )


def divided(sides: RunViews) -> tuple[tuple[RunView, ...], tuple[RunView, ...]]:
    """Divide the runs into models, which can be recommended, and policies, which are floors."""
    return (
        tuple(side for side in sides.sides if not side.is_policy),
        tuple(side for side in sides.sides if side.is_policy),
    )


@dataclass(frozen=True)
class _Ground:
    """What a recommendation rests on besides the decision: each model's floor, and how it reads each source alone."""

    decision: Decision
    floors: Sequence[Floor]
    readings: Mapping[str, Mapping[str, SourceAccuracy]]
    models: bool

    def floor(self, run: int) -> Floor | None:
        label = self.decision.basis.sides.sides[run].label
        return next((floor for floor in self.floors if floor.model.label == label), None)

    @property
    def unread(self) -> dict[str, list[str]]:
        """The sources that some model does not read, and which models."""
        return unread(self.readings)

    @property
    def hopeless(self) -> bool:
        """Return whether there is a source that no model reads, so that more rows would tell nothing."""
        return any(len(failing) == len(self.readings) for failing in self.unread.values())


def _readings(side: RunView, sides: RunViews) -> dict[str, SourceAccuracy]:
    labels = sides.benchmark.labels
    return readings(
        (said.alone, sides.benchmark.correct(said.condition, said.outcome))
        for said in side.said.values()
        if said.outcome in labels
    )


def _take(ground: _Ground) -> list[str]:
    """What to take: first what speaks against taking any, then the recommendation, then what speaks against that one."""
    if not ground.models:
        return [
            "There is no model among these runs. Policies look at nothing: they are the floor that a model must beat. Add a "
            "model's run."
        ]
    first: list[str] = []
    last: list[str] = []
    for source, failing in ground.unread.items():
        sentence = unread_sentence(source, {run: ground.readings[run][source] for run in failing}, len(ground.readings))
        (first if len(failing) == len(ground.readings) else last).append(sentence)
    advised = {
        run for run in (ground.decision.leanest, ground.decision.lightest, ground.decision.fastest) if run is not None
    }
    advised = advised or set(ground.decision.holds)
    if ground.floors and not any(floor.beats for floor in ground.floors):
        first.append(none_beats(ground.floors, len(ground.readings)))
    else:
        last = [beside_floor(floor) for run in sorted(advised) if (floor := ground.floor(run)) is not None] + last
    choice = _choice(ground)
    if first and choice:
        choice[0] = f"Between the models alone: {choice[0][:1].lower()}{choice[0][1:]}"
    return [*first, *choice, *last]


def _choice(ground: _Ground) -> list[str]:
    found = ground.decision
    of, sides = found.basis, found.basis.sides.sides
    if len(sides) == 1:
        return []
    within = f"shown to be within {points(found.margin)} points of the best in {of.measure.name}"
    if not found.holds:
        more = "" if ground.hopeless else " More examples would tell."
        return [
            f"Nothing can be recommended yet: none is {within}, not even {_named(of, of.best)}, which has the best figure "
            f"here.{more}"
        ]
    if len(found.holds) == 1:
        return [f"Take {_named(of, found.holds[0])}: it is the only one that is {within}."]
    smallest, fastest = found.smallest, found.fastest
    if smallest is not None and fastest is not None and _as_fast(of, smallest, fastest):
        fast = "the fastest" if smallest == fastest else f"as fast as the fastest within {_SAME_TIME:.0%}"
        needs = "needs the least memory" if found.leanest is not None else "is the smallest on disk"
        return [
            f"Take {_named(of, smallest)}: of the {len(found.holds)} that are {within}, it {needs} "
            f"({_size(found, smallest)}) and is {fast} ({_speed(of, smallest)})."
        ]
    told = [f"{len(found.holds)} are {within}: {', '.join(_named(of, i) for i in found.holds)}."]
    if found.leanest is not None:
        told.append(f"Short of memory, take {sides[found.leanest].label} ({_size(found, found.leanest)}).")
    if found.lightest is not None and found.lightest != found.leanest:
        told.append(f"Short of disk, take {sides[found.lightest].label} ({_on_disk(sides[found.lightest])}).")
    if fastest is not None:
        told.append(f"Short of time, take {sides[fastest].label}, the fastest of them ({_speed(of, fastest)}).")
    if smallest is None and fastest is None:
        told.append("Which of them to take is decided by what they do otherwise.")
    return told


def _named(of: TargetShares, run: int) -> str:
    return f"{of.sides.sides[run].label} ({of.shares[run]:.1%})"


def _as_fast(of: TargetShares, run: int, fastest: int) -> bool:
    mine, least = (of.sides.sides[i].cost.seconds_per_answer or 0.0 for i in (run, fastest))
    return mine <= (1 + _SAME_TIME) * least


def _size(found: Decision, run: int) -> str:
    """The memory that decided for ``run``: its measured peak beside the highest of those that hold, else its size on disk."""
    sides = found.basis.sides.sides
    if found.leanest is None:
        return _on_disk(sides[run])
    peaks = [peak for i in found.holds if (peak := sides[i].cost.peak_memory) is not None]
    most = f"; up to {_bytes(max(peaks))} for the others" if max(peaks) > (sides[run].cost.peak_memory or 0) else ""
    return f"{_bytes(sides[run].cost.peak_memory or 0)} at its measured peak{most}"


def _on_disk(side: RunView) -> str:
    return f"{_bytes(side.weights_bytes or 0)} on disk"


def _bytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def _speed(of: TargetShares, run: int) -> str:
    return f"{of.sides.sides[run].cost.seconds_per_answer:.3g} s an answer"


def _does(found: Decision) -> list[str]:
    """How a recommended run behaves otherwise than the best; where that is the best, how the others do."""
    chosen = (found.leanest, found.lightest, found.fastest)
    taken = {run for run in chosen if run is not None and run != found.basis.best}
    others = taken or {run for run in range(len(found.basis.sides.sides)) if run != found.basis.best}
    return [line for run in sorted(others) for line in _behaves(found.basis, run)]


def _behaves(of: TargetShares, run: int) -> list[str]:
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


def _does_so(of: TargetShares, runs: tuple[int, int], condition: int, label: int) -> str:
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


def _under(of: TargetShares, condition: int) -> TargetShares | None:
    """The answers under one condition; None where there are none."""
    among = of.condition == condition
    if not among.any():
        return None
    group = np.unique(of.group[among], return_inverse=True)[1]
    return TargetShares(of.sides, of.measure, group, of.condition[among], of.label[among])


def _unknown(ground: _Ground, sides: RunViews) -> list[str]:
    found = ground.decision
    of = found.basis
    told = []
    best = of.sides.sides[of.best].label
    for run, side in enumerate(of.sides.sides):
        if run in found.holds or run == of.best or not ground.models:
            continue
        difference = of.difference(run, of.best)
        low, high = difference.interval(1 - 2 * ERROR)
        if high < -found.margin:
            told.append(
                f"{side.label} is worse than {best} by more than the margin: {points(-difference.value)} points."
            )
        else:
            here = "as good as" if not difference.value else f"{points(-difference.value)} points worse than"
            more = "." if ground.hopeless else "; more examples would tell."
            told.append(
                f"{side.label} is not shown to hold, nor to fail: by these answers {here} {best}, in truth up to {points(-low)} "
                f"points worse{more}"
            )
    if of.best not in found.holds and found.holds:
        told.append(f"{best} has the best figure here, but is not itself shown to be within the margin of the others.")
    told += _unmeasured(found)
    if of.groups < FEW:
        told.append(f"{of.groups} examples are few: bounds on so few are wide and rough.")
    _, policies = divided(sides)
    if not policies:
        told.append(
            "Whether any of them is better than a model that reads nothing cannot be said: no policy, such as "
            "policy:always-text, is among these runs."
        )
    shared = {floor.model.label for floor in ground.floors}
    lacks = [run for run in ground.readings if run not in shared]
    if policies and lacks:
        told.append(
            f"Whether {listed(lacks)} beats a policy cannot be said: none has labelled answers in common with one."
        )
    told += lacking(sides)
    told += warnings(of.sides.sides)
    told.append(
        f"The figures rest on {len(of.group)} answers to {of.groups} examples, labelled by {sides.judge}{caveat(sides.judge)}. "
        "Of other data, prompts and decoding they say nothing."
    )
    return told


def _unmeasured(found: Decision) -> list[str]:
    """Return which of the runs that hold lack a measured peak memory, size or time, so that the least is unknown."""
    if len(found.holds) < 2:
        return []
    sides = [found.basis.sides.sides[i] for i in found.holds]
    told = []
    for what, most, values in (
        ("Peak memory", "needs the least memory", [side.cost.peak_memory for side in sides]),
        ("The size on disk", "is the smallest on disk", [side.weights_bytes for side in sides]),
        ("The time of an answer", "is the fastest", [side.cost.seconds_per_answer for side in sides]),
    ):
        lacks = [side.label for side, value in zip(sides, values, strict=True) if value is None]
        if lacks:
            told.append(f"{what} was not measured for {listed(lacks)}, so which of them {most} cannot be said.")
    return told


def _alone(by_run: Mapping[str, Mapping[str, SourceAccuracy]]) -> Table | None:
    """The table of what each model reads from one source alone; None where the benchmark does not ask that."""
    sources = list(dict.fromkeys(source for by_source in by_run.values() for source in by_source))
    if not sources:
        return None
    nothing = Estimate(None, reason="no answer to this source alone is labelled")
    rows = tuple(
        (run, tuple(by_source[source].share if source in by_source else nothing for source in sources))
        for run, by_source in by_run.items()
    )
    note = "Shares of right labels where the right source is shown alone, with Wilson's 95% intervals."
    return Table("alone", "Each source alone", tuple(f"{source} alone" for source in sources), rows, (note,))


def _table(found: Decision, policies: Sequence[RunView], all_sides: RunViews, measure: TargetMetric) -> Table:
    of, sides = found.basis, found.basis.sides.sides
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, side in enumerate(sides):
        n = len(of.group)
        bound: Estimate | None = None
        difference: Estimate | None = None
        if run != of.best:
            apart = of.difference(run, of.best)
            bound, difference = Estimate(apart.lower(1 - ERROR), n=n), Estimate(apart.value, n=n)
        holds = "floor" if side.is_policy else "yes" if run in found.holds else "no"
        shown = f"{holds}, the best figure" if run == of.best else holds
        shown = "the only model" if len(sides) == 1 else shown
        cells = (Estimate(float(of.shares[run]), n=n), difference, bound, shown, Estimate(found.chances[run], n=n))
        rows.append((side.label, (*cells, *costs(side))))
    best = sides[of.best]
    for policy in policies:
        for floor in floors([best], [policy], all_sides, measure):
            n, apart = len(floor.basis.group), floor.basis.difference(1, 0)
            share, value, bound = (
                Estimate(x, n=n) for x in (float(floor.basis.shares[1]), apart.value, apart.lower(1 - ERROR))
            )
            rows.append((policy.label, (share, value, bound, "floor", None, *costs(policy))))
    lower = ", lower is better" if of.measure.lower_is_better else ""
    notes = (
        f"{_told(of)}, over the {len(of.group)} answers that all models have labelled{lower}. better by: than the model with "
        "the best figure; at least: its one-sided 95% lower bound (Bonett and Price 2012, over examples).",
        f"holds: shown to be worse than none of the others by {points(found.margin)} points or more, and so not than the best, "
        "whichever that is; p is against that, corrected for asking it of every run (Holm 1979).",
        *(["floor: a policy, which looks at nothing and is not recommended."] if policies else ()),
    )
    columns = (of.measure.name, "better by", "at least", "holds", "p (Holm)", *COSTS)
    return Table("recommend", f"Within {points(found.margin)} points of the best", columns, tuple(rows), notes)


def _told(of: TargetShares) -> str:
    """The measure, and what it is where its name does not say."""
    if of.measure.name != ACCURACY:
        return f"{of.measure.name}: as in the tables"
    used = sorted(set(of.condition.tolist()))
    return (
        f"accuracy: the share of right labels under {', '.join(of.sides.figures.conditions[i] for i in used)} together"
    )
