"""The ladder: one model from PyTorch in full precision to MLX in 4 bits, and at which step the difference enters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from app.compare.run_view import RunViews, load
from app.parity.compare_runs import ParityReport, assemble, forced
from app.parity.diagnosis import causes
from app.parity.ladder.models import Rung
from app.parity.outputs import compare_answers
from app.parity.probing import ProbeOptions, ProbeResult, choose, known_runs, probe
from benchmarks.base import Estimate


@dataclass(frozen=True)
class LadderStep:
    """From one rung to another: what sets them apart, and the two runs compared."""

    start: str
    end: str
    kind: str
    parity: ParityReport
    aside: bool = False

    @property
    def changed(self) -> int:
        """How many answers are others."""
        return self.parity.answers.shared - self.parity.answers.same

    @property
    def moved(self) -> float:
        """By how much a logit moves on average; 0 where that was not looked at."""
        return self.parity.numerics.moved if self.parity.numerics else 0.0


@dataclass(frozen=True)
class Ladder:
    """The rungs that could be had, with their runs' folders, the steps between neighbours, and the way as a whole."""

    rungs: tuple[Rung, ...]
    folders: tuple[Path, ...]
    steps: tuple[LadderStep, ...]
    whole: LadderStep
    accuracies: tuple[Estimate, ...]
    missing: tuple[str, ...] = field(default=())
    """What could not be had, a sentence each."""

    @property
    def verdict(self) -> str:
        """Where the difference enters, in words."""
        way = [step for step in self.steps if not step.aside]
        whole = self.whole
        effect = whole.parity.effect.sentence().replace(" in A", " at the top").replace(" in B", " at the foot")
        told = [
            f"From {whole.start} to {whole.end}, {whole.changed} of {whole.parity.answers.shared} answers change; {effect}."
        ]
        for step in self.steps:
            early = [each for each in causes(step.parity.findings) if each.stage not in ("numerics", "judge")]
            told += [f"At {step.start} to {step.end} already the {each.stage} differ: {each.cause}." for each in early]
        if len(way) > 1:
            most = max(way, key=lambda step: (step.moved, step.changed))
            others = [step for step in way if step is not most]
            if not most.moved and not most.changed:
                told.append("No step changes anything.")
            else:
                elsewhere = max(step.moved for step in others)
                told.append(
                    f"Most of it enters at {most.start} to {most.end} ({most.kind}): a logit moves by {most.moved:.2g} there on "
                    f"average, by {elsewhere:.2g} at most elsewhere; {most.changed} answers change there, {_each(others)}."
                )
        return " ".join(told)


def climb(
    rungs: Sequence[Rung],
    folders: Sequence[Path],
    look: ProbeOptions,
    *,
    judge: str | None = None,
    missing: Sequence[str] = (),
) -> Ladder:
    """Compare the runs in ``folders``, one of each of ``rungs``, step by step.

    All rungs are led through the answers of the first, so that the steps add up. Raises SpecError and StoreError.
    """
    from app.compare.cost import accuracy
    from app.report.tables import RESAMPLES

    sides = load(folders, judge=judge)
    before = known_runs(folders, look)
    runs = [run for run, _ in before]
    way = [i for i, rung in enumerate(rungs) if not rung.aside]
    top, foot = way[0], way[-1]
    differing = compare_answers(runs[top], runs[foot]).differing
    instances = choose(before[top], before[foot], look.probes, differing)
    asked = [forced(runs[top], run, instances) for run in runs]
    seen = [probe(each, led, look) if led else ProbeResult(None) for each, led in zip(before, asked, strict=True)]

    def step(i: int, j: int, *, aside: bool = False) -> LadderStep:
        two = RunViews(sides.benchmark, sides.judge, (sides.sides[i], sides.sides[j]), sides.seed)
        found = assemble(runs[i], runs[j], seen[i], seen[j], instances, two, compare_answers(runs[i], runs[j]))
        same = runs[i].identity.get("engine") == runs[j].identity.get("engine")
        kind = "quantisation" if same else "framework"
        if not same and _stored(runs[i].quantisation) != _stored(runs[j].quantisation):
            kind = "framework and quantisation"
        return LadderStep(rungs[i].name, rungs[j].name, kind, found, aside)

    steps = [step(i, j) for i, j in pairwise(way)]
    steps += [step(i, foot, aside=True) for i, rung in enumerate(rungs) if rung.aside]
    return Ladder(
        tuple(rungs),
        tuple(folders),
        tuple(steps),
        step(top, foot),
        tuple(accuracy(side, sides, RESAMPLES) for side in sides.sides),
        tuple(missing),
    )


def _stored(quantisation: str | None) -> str:
    """How weights are stored, whatever they are computed in."""
    return (quantisation or "").partition(" in ")[0]


def _each(steps: Sequence[LadderStep]) -> str:
    return ", ".join(f"{step.changed} at {step.start} to {step.end}" for step in steps)
