"""JSON of ``rashomon parity``."""

from __future__ import annotations

from dataclasses import dataclass

from app.json_output.facts_json import Fact
from app.json_output.show_json import identity_facts
from app.json_output.tables_json import EstimateJson, TableJson, estimate_json
from app.parity.ladder.ladder_comparison import Ladder, LadderStep
from app.parity.numerics_stage import Numerics
from app.parity.output_stages import DifferingAnswer
from app.parity.parity_report import ParityReport
from app.parity.parity_stages import STAGES
from mlx_backends.portable_model_names import without_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityRun:
    """A run that is compared; ``label`` is its name in the tables."""

    run: str
    label: str
    model: str
    identity: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageJson:
    """A stage of an answer: same, noise (differs by no more than rounding), differs for a ``cause``, or unknown."""

    stage: str
    description: str
    status: str
    summary: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersJson:
    """The answers to the ``shared`` instances, which both runs answered.

    ``texts`` of them are equal as texts; of the ``with_tokens`` answers that have tokens in both runs, ``tokens`` are equal token
    by token. ``by_tokens`` says that all were compared so, and that the places of the ``differing`` ones count tokens, not
    characters.
    """

    shared: int
    texts: int
    with_tokens: int
    tokens: int
    by_tokens: bool
    differing: tuple[DifferingAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectJson:
    """The effect on the labels of the answers that are ``labelled`` in both runs; ``difference`` is B's accuracy less A's."""

    labelled: int
    same_labels: EstimateJson
    kappa: EstimateJson
    accuracy_a: EstimateJson
    accuracy_b: EstimateJson
    difference: EstimateJson


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJson:
    """Two runs compared stage by stage. ``numerics`` is null where the models were not probed.

    ``probed`` are the instances that were probed; ``not_probed`` are sentences on models and requests that were not.
    """

    verdict: str
    a: ParityRun
    b: ParityRun
    stages: tuple[StageJson, ...]
    answers: AnswersJson
    effect: EffectJson
    numerics: Numerics | None
    probed: tuple[str, ...]
    not_probed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RungJson:
    """A version of the model; ``side_branch`` says that it is off the path from the first version to the last."""

    name: str
    model: str
    run: str
    side_branch: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStepJson:
    """A step from one version to another; ``kind`` is what changes there: framework, quantisation, or both."""

    start: str
    end: str
    kind: str
    side_branch: bool
    pair: PairJson


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderJson:
    """The versions of a model (``--model``): the steps between neighbours, and the ``overall`` one from the first to the last.

    ``missing`` are sentences on the versions that are not available.
    """

    rungs: tuple[RungJson, ...]
    missing: tuple[str, ...]
    steps: tuple[LadderStepJson, ...]
    overall: LadderStepJson


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityResult:
    """A comparison of two runs (``pair``), of a model's versions (``ladder``), or of either with a paper's rows.

    ``verdicts`` are printed first. ``comparability`` are sentences on what a paper's rows and the runs have in common.
    ``message`` says what was stored, where a single run is named and so only probed.
    """

    verdicts: tuple[str, ...] = ()
    pair: PairJson | None = None
    ladder: LadderJson | None = None
    comparability: tuple[str, ...] = ()
    message: str = ""
    tables: tuple[TableJson, ...] = ()


def pair_json(report: ParityReport) -> PairJson:
    """Return the comparison of two runs."""
    answers, effect = report.answers, report.effect
    accuracy_a, accuracy_b = map(estimate_json, effect.accuracies)
    a, b = (
        ParityRun(
            run=run.folder.name,
            label=label,
            model=without_folders(run.spec.model),
            identity=identity_facts(run.identity),
        )
        for run, label in zip((report.a, report.b), report.labels, strict=True)
    )
    return PairJson(
        verdict=report.verdict,
        a=a,
        b=b,
        stages=tuple(
            StageJson(
                stage=finding.stage,
                description=STAGES[finding.stage],
                status=finding.status,
                summary=finding.summary,
                cause=finding.cause,
            )
            for finding in report.findings
        ),
        answers=AnswersJson(
            shared=answers.shared,
            texts=answers.texts,
            with_tokens=answers.with_tokens,
            tokens=answers.tokens,
            by_tokens=answers.by_tokens,
            differing=answers.examples,
        ),
        effect=EffectJson(
            labelled=effect.labelled,
            same_labels=estimate_json(effect.same_labels),
            kappa=estimate_json(effect.kappa),
            accuracy_a=accuracy_a,
            accuracy_b=accuracy_b,
            difference=estimate_json(effect.difference),
        ),
        numerics=report.numerics,
        probed=report.probed,
        not_probed=report.not_probed,
    )


def ladder_json(ladder: Ladder) -> LadderJson:
    """Return the comparison of a model's versions."""
    return LadderJson(
        rungs=tuple(
            RungJson(name=rung.name, model=without_folders(rung.model), run=folder.name, side_branch=rung.side_branch)
            for rung, folder in zip(ladder.rungs, ladder.folders, strict=True)
        ),
        missing=ladder.missing,
        steps=tuple(map(_step, ladder.steps)),
        overall=_step(ladder.overall),
    )


def _step(step: LadderStep) -> LadderStepJson:
    return LadderStepJson(
        start=step.start, end=step.end, kind=step.kind, side_branch=step.side_branch, pair=pair_json(step.parity)
    )
