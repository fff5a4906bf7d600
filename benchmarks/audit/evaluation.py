"""Cross-validation of the blind rules on the questions of one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.audit import RuleResult, TaskAudit
from benchmarks.audit.fitting import Fitted, fitted_rules
from benchmarks.audit.questions import Array, Questions
from benchmarks.audit.rules import MediaSize, rules
from benchmarks.stats.intervals import clustered_wilson

_ERRORS = 0.05
"""The share of clean sets of questions in which any rule may be flagged."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The rules of a task with their scores, and those of the best rule.

    Attributes:
        scores: Each rule's score of each question, fitted on the other folds, shape (rules, questions).
        blind: The score of the rule that is best on the other folds, shape (questions,).
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
        chance = float(questions.chance.mean())
        results = [self._rule(place, chance, tests) for place in range(len(self.fitted))]
        return TaskAudit(
            task=self.task,
            questions=len(questions.items),
            clusters=questions.clusters.count,
            chance=chance,
            blind=questions.clusters.mean(self.blind),
            rules=tuple(sorted(results, key=lambda result: -result.share)),
            constant=self._constant(tests),
        )

    def _rule(self, place: int, chance: float, tests: int) -> RuleResult:
        rule, clusters = self.fitted[place], self.questions.clusters
        hits, sizes = clusters.sums(self.scores[place]), clusters.sums(np.ones(len(clusters)))
        estimate = clustered_wilson(hits, sizes)
        # Only a rule better than chance is flagged: both ends of the interval have this probability.
        strict = clustered_wilson(hits, sizes, confidence=1 - 2 * _ERRORS / tests)
        return RuleResult(
            rule.name,
            rule.looks_at,
            float(self.scores[place].mean()),
            estimate.low,
            estimate.high,
            strict.low is not None and strict.low > chance,
            rule.prefers(),
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


def evaluate(task: str, questions: Questions, media: MediaSize | None) -> Evaluation:
    """Fit and test all rules on the questions of one task. Rules need two clusters, and their choice three."""
    folds = int(questions.fold.max()) + 1
    fitted = fitted_rules(rules(questions, media), questions) if folds > 1 else []
    scores = np.tile(questions.chance, (len(fitted), 1))
    # The mean score of each rule on all folds but one, fitted without that fold: totals by that fold and rule.
    totals = np.zeros((folds, len(fitted)))
    for place, rule in enumerate(fitted):
        for fold in range(folds):
            tested = questions.fold == fold
            scores[place, tested] = questions.scores(rule.values([fold]))[tested]
        for one, other in combinations(range(folds), 2):
            if folds > 2:
                pair = questions.scores(rule.values([one, other]))
                totals[other, place] += pair[questions.fold == one].sum()
                totals[one, place] += pair[questions.fold == other].sum()
    blind = questions.chance.copy()
    for fold in range(folds if folds > 2 and fitted else 0):
        tested, best = questions.fold == fold, int(totals[fold].argmax())
        if totals[fold, best] > questions.chance[~tested].sum():
            blind[tested] = scores[best, tested]
    return Evaluation(task, questions, fitted, scores, blind)
