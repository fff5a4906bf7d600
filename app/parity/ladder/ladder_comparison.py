"""Comparison of the rungs of a ladder, and the step at which the difference enters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from app.compare.runs.cost_tables import accuracy
from app.compare.runs.run_view import RunViews
from app.compare.runs.view_reader import load_views
from app.parity.ladder.ladder_models import Rung
from app.parity.model_probing import ProbeOptions, ProbeResult, choose_instances, load_with_probes, probe_run
from app.parity.output_stages import compare_answers
from app.parity.parity_diagnosis import root_causes
from app.parity.parity_report import ParityReport, build_report, forced_answers
from app.parity.parity_stages import STAGES
from benchmarks.vocabulary import Estimate


@dataclass(frozen=True)
class LadderStep:
    """A step from one rung to another: the kind of change, and the parity report of the two runs."""

    start: str
    end: str
    kind: str
    parity: ParityReport
    side_branch: bool = False

    @property
    def changed(self) -> int:
        """The number of answers that change."""
        return self.parity.answers.shared - self.parity.answers.same

    @property
    def moved(self) -> float:
        """The mean shift of a logit; 0 where the models were not probed."""
        return self.parity.numerics.moved if self.parity.numerics else 0.0


@dataclass(frozen=True)
class Ladder:
    """The available rungs with their runs' folders, the steps between neighbours, and the overall step from top to bottom."""

    rungs: tuple[Rung, ...]
    folders: tuple[Path, ...]
    steps: tuple[LadderStep, ...]
    overall: LadderStep
    accuracies: tuple[Estimate, ...]
    missing: tuple[str, ...] = field(default=())
    """Sentences on the rungs that are not available."""

    @property
    def verdict(self) -> str:
        """The step at which the difference enters, in words."""
        path = [step for step in self.steps if not step.side_branch]
        overall, answers = self.overall, self.overall.parity.answers
        effect = overall.parity.effect.sentence().replace(" in A", " at the top").replace(" in B", " at the bottom")
        sentences = [
            f"From {overall.start} to {overall.end}, {overall.changed} of {answers.shared} answers change; {effect}."
        ]
        for step in self.steps:
            early_causes = [
                cause for cause in root_causes(step.parity.findings) if cause.stage not in ("numerics", "judge")
            ]
            sentences += [
                f"From {step.start} to {step.end} there is an earlier difference, at {STAGES[finding.stage]}: {finding.cause}."
                for finding in early_causes
            ]
        if len(path) > 1:
            sentences.append(_largest_step_sentence(path))
        return " ".join(sentences)


def _largest_step_sentence(path: Sequence[LadderStep]) -> str:
    largest = max(path, key=lambda step: (step.moved, step.changed))
    if not largest.moved and not largest.changed:
        return "No step changes anything."
    others = [step for step in path if step is not largest]
    elsewhere = max(step.moved for step in others)
    changes = ", ".join(f"{step.changed} from {step.start} to {step.end}" for step in others)
    return (
        f"Most of it enters from {largest.start} to {largest.end} ({largest.kind}): a logit moves by {largest.moved:.2g} there "
        f"on average, by {elsewhere:.2g} at most elsewhere; {largest.changed} answers change there, {changes}."
    )


def compare_rungs(
    rungs: Sequence[Rung],
    folders: Sequence[Path],
    options: ProbeOptions,
    *,
    judge: str | None = None,
    missing: Sequence[str] = (),
) -> Ladder:
    """Compare the runs in ``folders``, one of each of ``rungs``, step by step.

    The answers of the first rung are forced through all rungs, so that the steps add up.

    Raises:
        SpecError: The runs cannot be compared.
        StoreError: A folder is no run.
    """
    views = load_views(folders, judge=judge)
    known = load_with_probes(folders, options)
    runs = [run for run, _ in known]
    path = [i for i, rung in enumerate(rungs) if not rung.side_branch]
    top, bottom = path[0], path[-1]
    differing = compare_answers(runs[top], runs[bottom]).differing
    instances = choose_instances(known[top], known[bottom], options.probes, differing)
    forced = [forced_answers(runs[top], run, instances) for run in runs]
    results = [
        probe_run(run_with_probes, answers, options) if answers else ProbeResult(None)
        for run_with_probes, answers in zip(known, forced, strict=True)
    ]

    def step(i: int, j: int, *, side_branch: bool = False) -> LadderStep:
        two = RunViews(views.benchmark, views.judge, (views.runs[i], views.runs[j]), views.seed)
        answers = compare_answers(runs[i], runs[j])
        report = build_report(runs[i], runs[j], results[i], results[j], instances, two, answers)
        same = runs[i].identity.get("engine") == runs[j].identity.get("engine")
        kind = "quantisation" if same else "framework"
        if not same and _stored_width(runs[i].quantisation) != _stored_width(runs[j].quantisation):
            kind = "framework and quantisation"
        return LadderStep(rungs[i].name, rungs[j].name, kind, report, side_branch)

    steps = [step(i, j) for i, j in pairwise(path)]
    steps += [step(i, bottom, side_branch=True) for i, rung in enumerate(rungs) if rung.side_branch]
    return Ladder(
        tuple(rungs),
        tuple(folders),
        tuple(steps),
        step(top, bottom),
        tuple(accuracy(run, views) for run in views.runs),
        tuple(missing),
    )


def _stored_width(quantisation: str | None) -> str:
    """Return the width in which weights are stored, whatever they are computed in."""
    return (quantisation or "").partition(" in ")[0]
