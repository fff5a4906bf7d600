"""The claims of a recommendation and of a comparison, read off their sentences and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.compare.decision.target_shares import ALPHA
from app.compare.differences.metric_differences import differences_table
from app.compare.recommend.recommendation import Recommendation
from app.compare.recommend.recommendation_advice import rule_sentences
from app.compare.runs.cost_tables import accuracy_difference
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunViews
from app.report.tables.run_tables import RESAMPLES
from benchmarks.vocabulary import RULES as WINS
from benchmarks.vocabulary import Estimate


@dataclass(frozen=True)
class Claims:
    """The claims of a recommendation.

    ``worse`` has pairs of a run and the best one, ``behaves`` the number of sentences on runs that behave otherwise, and ``most``
    the run that follows each rule most.
    """

    holds: tuple[str, ...]
    worse: tuple[tuple[str, str], ...]
    beats: tuple[str, ...]
    behaves: int
    most: Mapping[str, str]

    @classmethod
    def of(
        cls,
        holds: Sequence[str],
        advice: Sequence[str],
        behaviour: Sequence[str],
        caveats: Sequence[str],
        rules: Sequence[str],
    ) -> Claims:
        """Read the claims off the sentences of a recommendation."""
        worse = [
            (match[1], match[2])
            for line in caveats
            if (match := re.match(r"(\S+) is worse than (\S+) by more than the margin", line))
        ]
        beats = [match[1] for line in advice if (match := re.match(r"(\S+) beats policy:", line))]
        no_claim = ("gives every label as often", "does not behave significantly", "The largest difference")
        behaves = sum(not any(words in line for words in no_claim) for line in behaviour)
        most = {
            rule: match[1]
            for rule, wins in WINS.items()
            for line in rules
            if (match := re.match(rf"If {wins}: (\S+) (?:follows|flags) it most", line))
        }
        return cls(tuple(holds), tuple(worse), tuple(beats), behaves, most)

    @classmethod
    def of_recommendation(cls, recommendation: Recommendation) -> Claims:
        """Return the claims of a recommendation of runs in memory."""
        decision = recommendation.decision
        holds = [decision.basis.views.runs[index].label for index in decision.holds]
        return cls.of(
            holds,
            recommendation.advice,
            recommendation.behaviour,
            recommendation.caveats,
            rule_sentences(recommendation.by_rule),
        )


@dataclass(frozen=True)
class Compared:
    """The claims of a comparison: the sign of each significant difference in accuracy and, by metric, of each corrected one."""

    accuracy: Mapping[str, int]
    metrics: Mapping[tuple[str, str], int]


def compared(views: RunViews) -> Compared:
    """Return what ``compare`` finds significant: the accuracies of its first lines, and the metrics by Holm's p."""
    pairs = [RunPair(views.runs[0], run, views.label_metrics, RESAMPLES, views.seed) for run in views.runs[1:]]
    accuracy = {}
    for pair in pairs:
        difference = accuracy_difference(pair, views)
        assert difference.low is not None
        assert difference.high is not None
        accuracy[pair.second.label] = int(difference.low > 0) - int(difference.high < 0)
    table = differences_table(pairs, list(views.label_metrics.of))
    size, corrected = (table.columns.index(name) for name in ("difference", "p (Holm)"))
    metrics = {}
    for label, cells in table.rows:
        value, p = cells[size], cells[corrected]
        assert isinstance(value, Estimate)
        assert isinstance(p, Estimate)
        run, _, metric = label.partition(" / ")
        metrics[run, metric] = sign(value.value) if p.value is not None and p.value <= ALPHA else 0
    return Compared(accuracy, metrics)


def sign(value: float | None) -> int:
    """Return -1, 0 or 1; 0 for no value."""
    return 0 if not value else 1 if value > 0 else -1
