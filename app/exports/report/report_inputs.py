"""Evidence of a report: the runs with their answers, the decision between the models, and shares of right answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.compare.decision.against_policies import Floor, hardest_floors
from app.compare.recommend.recommendation import Recommendation, recommend_views
from app.compare.recommend.recommended_runs import Decision
from app.compare.runs.decision_scores import decided_score
from app.compare.runs.run_view import RunView, RunViews, split_policies
from app.exports.export_input import Export, ExportedRun
from app.report.runs.citations import Citations, cite
from app.report.tables.run_headline import score_under
from app.report.tables.single_source_accuracy import Counted, CountedAnswers, SourceAccuracy
from app.report.tables.table_inputs import TableInputs
from benchmarks.answer_behaviour import AGREES, FOLLOWS, name_rules, names_sources, rule_of, rules_under_conflict
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError
from benchmarks.factors.factor_tables import reference_cells
from benchmarks.stats.intervals import span
from benchmarks.tables.blind_rule_tables import gain_over_blind, parted_conditions
from benchmarks.tables.scorecard import NAME as SCORECARD
from benchmarks.vocabulary import Estimate, Table
from mlx_backends.policy_engine import policy_description

_BEHAVIOURS = {"CORRECT": "is right", "INCORRECT": "is wrong", "WRONG": "is wrong"}
"""The behaviours of labels that any benchmark may have."""
_PLAIN = {
    "abstains": "says that it cannot tell",
    "sees the conflict": "notices that they disagree",
    "takes the distractor": "takes an answer that fits neither",
    "says what neither supports": "gives a value that is in neither",
}
"""Behaviours in the words of a reader who does not know the field."""


@dataclass(frozen=True)
class Evidence:
    """All that a report is made of; ``comparable`` is False if the judge gives an answer several labels."""

    export: Export
    inputs: TableInputs
    views: RunViews
    comparable: bool = True

    @property
    def benchmark(self) -> Benchmark:
        return self.inputs.benchmark

    @property
    def judge(self) -> str:
        return self.inputs.judge

    @cached_property
    def answers(self) -> Mapping[str, Answers]:
        """The answers of each run, by its label; of a varied build, those in one cell."""
        return reference_cells(self.inputs.runs)

    @cached_property
    def rule(self) -> str:
        """The name of the rule on what should win; empty if that was not said for all conflicts."""
        rules = rules_under_conflict(self.benchmark, self.answers.values(), self.inputs.trust)
        return name_rules(rules) if names_sources(self.benchmark) else ""

    @cached_property
    def scorecard(self) -> Table | None:
        """The scorecard where it leads, on own documents or under a rule; None where the paper's metrics decide."""
        leads = self.inputs.leads_with_scorecard
        return next((table for table in self.export.tables if leads and table.name == SCORECARD), None)

    def acts_of(self, run: str) -> dict[str, Estimate]:
        """Return the share of each act among a run's answers to conflicts, from its scorecard."""
        table = self.scorecard
        rows = table.rows if table else ()
        place = table.columns.index(run) if table else 0
        cells = {name.removeprefix("conflict: "): of[place] for name, of in rows if name.startswith("conflict: ")}
        return {name: cell for name, cell in cells.items() if isinstance(cell, Estimate)}

    def is_good(self, kind: AnswerKind, act: str) -> bool:
        """Return whether an act is what the scorecard asks for: under conflict the rule, without one no invention."""
        if kind.condition in self.benchmark.conflicts:
            rule = rule_of(kind, self.inputs.trust) if self.rule else ""
            return act in FOLLOWS[rule] if rule else act not in ("invents", "none")
        return act in AGREES

    @cached_property
    def citations(self) -> Citations:
        """The papers to cite, and the licences of data and models."""
        assert self.export.workspace is not None
        return cite(self.export.workspace, self.export.folders)

    @cached_property
    def models(self) -> tuple[RunView, ...]:
        """The runs of models, which can be chosen."""
        return split_policies(self.views)[0]

    @cached_property
    def policies(self) -> tuple[RunView, ...]:
        """The runs of policies, which are floors."""
        return split_policies(self.views)[1]

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The recommendation; None where the runs share too few labelled answers to compare, or none are comparable."""
        if not self.comparable:
            return None
        try:
            return recommend_views(self.views, margin=self.export.options.margin, trust=self.inputs.trust)
        except SpecError:
            return None

    @property
    def decision(self) -> Decision | None:
        return None if self.recommendation is None else self.recommendation.decision

    @cached_property
    def floors(self) -> Sequence[Floor]:
        """For each model, the policy that it is furthest from beating."""
        if self.decision is None:
            return ()
        return hardest_floors(self.models, self.policies, self.views, self.decision.basis.metric)

    @cached_property
    def subject(self) -> RunView:
        """The run whose mistakes the first page describes: the recommended model, or the best."""
        decision = self.decision
        if decision is None or not self.models:
            return (*self.models, *self.views.runs)[0]
        runs = decision.basis.views.runs
        index = decision.smallest if decision.smallest is not None else decision.fastest
        if index is None:
            index = decision.holds[0] if decision.holds else decision.basis.best
        return runs[index]

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The conditions under which an answer is right or wrong by itself, without those of a single source."""
        counted = self.benchmark.counted_conditions
        single = {kind.condition for answers in self.answers.values() for kind in answers.kinds if single_source(kind)}
        return tuple(name for name in self.present if name in counted and name not in single)

    @cached_property
    def present(self) -> tuple[str, ...]:
        """The conditions under which anything was asked."""
        conditions = {kind.condition for answers in self.answers.values() for kind in answers.kinds}
        return tuple(name for name in self.benchmark.conditions if name in conditions)

    @cached_property
    def conflicts(self) -> tuple[str, ...]:
        """The counted conditions under which sources disagree."""
        return tuple(name for name in self.counted if name in self.benchmark.conflicts)

    @property
    def lacks_conflicts(self) -> bool:
        """Return whether the benchmark is about conflicts, and no prompt of these runs holds one."""
        return bool(self.benchmark.conflicts) and not set(self.present).intersection(self.benchmark.conflicts)

    def share_right(self, run: str, conditions: Collection[str]) -> Estimate | None:
        """Return the share of right answers of a run under ``conditions``, as a decision counts them; None where none does."""
        share, _ = score_under(conditions, self.answers[run], self.judge, self.benchmark, decided_score)
        return share if share.n else None

    def share_blind(self, conditions: Collection[str]) -> Estimate | None:
        """Return the share that the best rule without sources gets right of the subject's answers; None of open questions."""
        answers = self.answers[self.subject.label]
        gain = gain_over_blind(self.benchmark, answers, self.judge, conditions=conditions)
        if gain is None:
            return None
        parted = parted_conditions(self.benchmark, answers)
        return None if parted.intersection(conditions) and not parted <= {*conditions} else gain.blind

    def share_labelled(self, run: str, label: str, conditions: Collection[str]) -> Estimate | None:
        """Return the share of a run's answers under ``conditions`` with this label; None where none counts."""

        def has_label(kind: AnswerKind) -> float | None:
            labels = self.benchmark.counted_labels(kind, self.judge) if kind.condition in conditions else ()
            return float(label in labels) if labels else None

        share, _ = self.answers[run].mean_score(has_label)
        return share if share.n else None

    @cached_property
    def readings(self) -> Mapping[str, Mapping[str, SourceAccuracy]]:
        """Each model's accuracy on each source alone."""
        return {run.label: self._readings(run.label) for run in self.models}

    def _readings(self, run: str) -> dict[str, SourceAccuracy]:
        def right_alone(kind: AnswerKind) -> Counted | None:
            score = decided_score(kind, self.judge, self.benchmark)
            return None if score is None else (kind.condition, single_source(kind), score == 1)

        return CountedAnswers.of(self.answers[run], right_alone).sources

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The modalities that are shown alone in some prompts."""
        return tuple(dict.fromkeys(source for by_source in self.readings.values() for source in by_source))

    def reading(self, run: str, source: str) -> Estimate | None:
        """Return a run's share of right answers to one source alone."""
        accuracy = self._readings(run).get(source)
        return None if accuracy is None else accuracy.share

    def count(self, run: str, key: Callable[[AnswerKind], str | None]) -> Counter[str]:
        """Return the number of a run's answers by ``key``, None excepted."""
        return self.answers[run].count(key)

    def pages(self, run: str) -> int:
        """Return the number of pages, pictures or documents behind a run's answers, which count as one each."""
        return self.answers[run].clusters.own_count

    def examples(self, run: str) -> int:
        """Return the number of a run's examples with an answer."""
        answers = self.answers[run]
        return len(np.unique(answers.example_at[answers.mask(lambda kind: kind.finish_reason is not None)]))

    def exported(self, run: str) -> ExportedRun:
        """Return the exported run with this label."""
        return next(exported for exported in self.export.runs if exported.label == run)

    def describe_policy(self, run: RunView) -> str:
        """Return what a policy answers, in a few words."""
        return policy_description(str(run.spec.get("model")))

    def behaviour(self, label: str) -> str:
        """Return what an answer with this label does, as a verb phrase."""
        behaviour = self.benchmark.behaviours.get(label) or _BEHAVIOURS.get(label) or f"is labelled {label}"
        return _PLAIN.get(behaviour, behaviour)

    def situation(self, condition: str) -> str:
        """Return a condition as a clause."""
        return self.benchmark.situations.get(condition, f"under {condition}")


def single_source(kind: AnswerKind) -> str:
    """Return the modality of the only source of an answer's prompt; empty for several."""
    return kind.instance.single_source


def interval(share: Estimate) -> str:
    """Return the 95% interval of a share in whole percent: "62 to 79%"."""
    if share.low is None or share.high is None:
        return ""
    return f"{span(f'{100 * share.low:.0f}', f'{100 * share.high:.0f}')}%"
