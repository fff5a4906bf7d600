"""Cross-validation of the blind rules on the questions of one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.audit import RuleResult, TaskAudit
from benchmarks.audit.blind_questions import Array, Questions
from benchmarks.audit.blind_rule_fitting import Fitted, fitted_rules
from benchmarks.audit.blind_rules import Counts, MediaSize, rules
from benchmarks.stats.intervals import clustered_wilson
from benchmarks.vocabulary import Estimate

_ERRORS = 0.03
"""The share of clean sets in which any rule may be flagged, by the normal approximation; by count it is below 5%."""

_FEW = "fewer than three pages"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The rules of a task with their scores, and those of the best rule.

    Attributes:
        scores: Each rule's score of each question, fitted on the other folds, shape (rules, questions).
        blind: The score of the rule without a source that is best on the other folds, shape (questions,).
    """

    task: str
    questions: Questions
    fitted: Sequence[Fitted]
    scores: Array
    blind: Array

    @property
    def tests(self) -> int:
        """The number of rules that are tested, and one for a constant answer."""
        return len(self.fitted) + 1

    def result(self, tests: int) -> TaskAudit:
        """Return the results, with flags that are corrected for ``tests`` in all tasks."""
        questions = self.questions
        results = [self._rule(place, tests) for place in range(len(self.fitted))]
        return TaskAudit(
            task=self.task,
            questions=len(questions.items),
            clusters=questions.clusters.count,
            chance=float(questions.chance.mean()),
            blind=questions.clusters.mean(self.blind) if questions.clusters.count > 2 else Estimate(None, reason=_FEW),
            rules=tuple(sorted(results, key=lambda result: -result.share)),
            constant=self._constant(tests),
            is_testable=self._beats_chance(np.ones(len(questions.items)), tests),
        )

    def _beats_chance(self, scores: Array, tests: int) -> bool:
        """Return whether scores beat chance by an interval that is corrected for ``tests``."""
        clusters = self.questions.clusters
        # Only a rule better than chance is flagged: both ends of the interval have this probability.
        strict = clustered_wilson(
            clusters.sums(scores), clusters.sums(np.ones(len(clusters))), confidence=1 - 2 * _ERRORS / tests
        )
        return strict.low is not None and strict.low > float(self.questions.chance.mean())

    def _rule(self, place: int, tests: int) -> RuleResult:
        rule, clusters = self.fitted[place], self.questions.clusters
        estimate = clusters.mean(self.scores[place])
        return RuleResult(
            rule.name,
            rule.looks_at,
            float(self.scores[place].mean()),
            estimate.low,
            estimate.high,
            self._beats_chance(self.scores[place], tests),
            rule.prefers(),
            rule.reads_source,
        )

    def _constant(self, tests: int) -> str:
        """Return the answer to all questions; empty if it differs, or if chance can explain that it does not."""
        questions = self.questions
        names, wrong = (
            {name for name, right in zip(questions.names, questions.right, strict=True) if right == is_right}
            for is_right in (1, 0)
        )
        is_chance = questions.chance.mean() ** (questions.clusters.count - 1) > _ERRORS / tests
        return "" if len(names) > 1 or names & wrong or is_chance else names.pop()


def evaluate(task: str, questions: Questions, media: MediaSize | None, counts: Counts) -> Evaluation:
    """Fit and test all rules on the questions of one task. Rules need two clusters, and their choice three."""
    folds = int(questions.fold.max()) + 1
    fitted = fitted_rules(rules(questions, media, counts), questions) if folds > 1 else []
    scores = np.tile(questions.chance, (len(fitted), 1))
    # Each rule's score of all folds but one, fitted without that fold, by that fold; only of rules that can be chosen.
    totals = np.full((folds, len(fitted)), -np.inf)
    for place, rule in enumerate(fitted):
        for fold in range(folds):
            tested = questions.fold == fold
            scores[place, tested] = questions.scores(rule.values([fold]))[tested]
        if folds < 3 or rule.reads_source:
            continue
        totals[:, place] = 0
        for first, second in combinations(range(folds), 2):
            pair = questions.scores(rule.values([first, second]))
            totals[second, place] += pair[questions.fold == first].sum()
            totals[first, place] += pair[questions.fold == second].sum()
    blind = questions.chance.copy()
    for fold in range(folds if fitted else 0):
        tested, best = questions.fold == fold, int(totals[fold].argmax())
        if totals[fold, best] > questions.chance[~tested].sum():
            blind[tested] = scores[best, tested]
    return Evaluation(task, questions, fitted, scores, blind)
