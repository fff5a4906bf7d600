"""JSON of ``rashomon recommend``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.compare.recommend.recommendation import Recommendation
from app.compare.recommend.recommendation_advice import rule_sentences
from app.json_output.tables_json import TableJson, table_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedRuns:
    """A recommendation: names of runs, and the sentences in which it is printed.

    Attributes:
        margin: How much worse than the best a run may be, as a share.
        best: The run with the best value.
        holds: The runs that are shown to be within the margin.
        smallest: The one of these with the least memory, or smallest on disk; null if none holds or a value is unknown.
        fastest: The one of these with the shortest time per answer; null likewise.
        advice: The recommendation.
        hints: Options that would tell more.
        by_rule: The leaders under each rule on what should win, where that was not said.
        behaviour: How the recommended run and the best one differ.
        unknown: What remains unknown.
        to_try_title, to_try: What to try with the recommended run's model.
    """

    margin: float
    best: str
    holds: tuple[str, ...]
    smallest: str | None
    fastest: str | None
    advice: tuple[str, ...]
    hints: tuple[str, ...]
    by_rule: tuple[str, ...]
    behaviour: tuple[str, ...]
    unknown: tuple[str, ...]
    to_try_title: str
    to_try: tuple[str, ...]
    table: TableJson
    single_sources: TableJson | None
    """The share of right answers where a prompt has one source only."""
    cost_ratios: TableJson | None
    """The best run at each ratio of costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizePlan:
    """The examples that a decision takes (``--plan``)."""

    answer: str
    table: TableJson


RecommendResult = RecommendedRuns | SampleSizePlan


def recommended_runs(recommendation: Recommendation, hints: Sequence[str]) -> RecommendedRuns:
    """Return a recommendation, with ``hints`` on options that would tell more."""
    decision = recommendation.decision
    names = [run.name for run in decision.basis.views.runs]
    title, steps = recommendation.to_try
    single, ratios = recommendation.single_sources, recommendation.cost_ratios
    return RecommendedRuns(
        margin=decision.margin,
        best=names[decision.basis.best],
        holds=tuple(names[index] for index in decision.holds),
        smallest=None if decision.smallest is None else names[decision.smallest],
        fastest=None if decision.fastest is None else names[decision.fastest],
        advice=recommendation.advice,
        hints=tuple(hints),
        by_rule=tuple(rule_sentences(recommendation.by_rule)),
        behaviour=recommendation.behaviour,
        unknown=recommendation.caveats,
        to_try_title=title,
        to_try=steps,
        table=table_json(recommendation.table),
        single_sources=None if single is None else table_json(single),
        cost_ratios=None if ratios is None else table_json(ratios),
    )
