"""Abstention quality: abstentions under conflict against needless ones, risk and coverage, and utility under a user's costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import number_ranges as ranges
from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import AbstentionRule, Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.stats.intervals import DIFFERENCE, Draws, estimate, ratio
from benchmarks.stats.repeated_answers import distinct_share, metric_estimate, wilson_repeated
from benchmarks.vocabulary import Estimate, LabelMetrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SITUATIONS = ("without conflict", "under conflict")
RESPONSES = ("abstains", "right", "wrong")
"""The responses to a question; an answer that abstains, or names the conflict, is neither right nor wrong."""

_WITHOUT, _CONFLICT = range(len(SITUATIONS))
ABSTAINS, _RIGHT, WRONG = range(len(RESPONSES))

UNDER_CONFLICT, NEEDLESS, GAP, JUSTIFIED, COVERAGE, RISK = (
    "abstains under conflict",
    "abstains needlessly",
    "difference",
    "justified",
    "coverage",
    "risk",
)

RATIOS = {"1:10": 0.1, "1:5": 0.2, "1:2": 0.5, "1:1": 1.0, "2:1": 2.0, "5:1": 5.0, "10:1": 10.0}
"""The cost of a needless abstention to that of a wrong answer or a missed conflict, as displayed and as a number."""

COMPARED_RATIOS = ("1:10", "1:1", "10:1")
"""The ratios at which a comparison tests the utility."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the three kinds of mistake, in any unit.

    Attributes:
        wrong: Of a wrong answer where the sources agree.
        needless: Of an abstention where the sources agree.
        missed: Of an answer under conflict that neither names the conflict nor is right.
    """

    wrong: float = 1.0
    needless: float = 1.0
    missed: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            ranges.MISTAKE.check(field.name, getattr(self, field.name))
        if not self.largest:
            raise SpecError("all costs are 0, so every run is as good; give at least one mistake a cost above 0.")

    @classmethod
    def parse(cls, text: str) -> Costs:
        """Return the costs in "wrong=1,needless=0.2,missed=3"; those that are not named are 1."""
        names, costs = [field.name for field in fields(cls)], dict[str, float]()
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, _, number = (part.strip() for part in item.partition("="))
            if name not in names:
                raise SpecError(f"there is no cost {name!r}; {did_you_mean(name, names)}")
            if name in costs:
                raise SpecError(f"the cost of {name} is given twice; give it once.")
            try:
                costs[name] = float(number)
            except ValueError:
                raise SpecError(f"{item!r} has no number; write costs as in wrong=1,needless=0.2,missed=3.") from None
        return cls(**costs)

    @property
    def largest(self) -> float:
        """The cost of the costliest mistake."""
        return max(self.wrong, self.needless, self.missed)

    def utilities(self) -> tuple[tuple[float, ...], ...]:
        """Return the utility of each response in each situation: 1 without a cost, 0 for the costliest mistake."""
        without = (self.needless, 0.0, self.wrong)
        conflict = (0.0, 0.0, self.missed)
        return tuple(tuple(1 - cost / self.largest for cost in costs) for costs in (without, conflict))

    def __str__(self) -> str:
        return ", ".join(f"{field.name} {getattr(self, field.name):g}" for field in fields(self))


EQUAL_COSTS = Costs()


def at_ratio(needless: float, costs: Costs = EQUAL_COSTS) -> Costs:
    """Return costs at which a needless abstention costs ``needless`` times a wrong answer."""
    return Costs(costs.wrong, needless * costs.wrong, costs.missed)


# --- metrics of counts of shape (..., situations, responses) ----------------------------------------


def abstains_under_conflict(counts: Array) -> Array:
    """Return the share of abstentions among the answers under conflict."""
    return ratio(counts[..., _CONFLICT, ABSTAINS], counts[..., _CONFLICT, :].sum(-1))


def abstains_needlessly(counts: Array) -> Array:
    """Return the share of abstentions among the answers without conflict."""
    return ratio(counts[..., _WITHOUT, ABSTAINS], counts[..., _WITHOUT, :].sum(-1))


def abstention_gap(counts: Array) -> Array:
    """Return the share of abstentions under conflict less that without: 1 if conflicts decide, 0 if they do not matter."""
    gap: Array = abstains_under_conflict(counts) - abstains_needlessly(counts)
    return gap


def justified(counts: Array) -> Array:
    """Return the share of the abstentions that are under conflict."""
    return ratio(counts[..., _CONFLICT, ABSTAINS], counts[..., :, ABSTAINS].sum(-1))


def coverage(counts: Array) -> Array:
    """Return the share of answers that do not abstain (El-Yaniv and Wiener 2010)."""
    return ratio(counts[..., _RIGHT:].sum((-1, -2)), counts.sum((-1, -2)))


def risk(counts: Array) -> Array:
    """Return the share of wrong answers among those that do not abstain (El-Yaniv and Wiener 2010)."""
    return ratio(counts[..., WRONG].sum(-1), counts[..., _RIGHT:].sum((-1, -2)))


def utility(costs: Costs, conflict_share: float | None = None) -> Callable[[Array], Array]:
    """Return the metric of the mean utility under ``costs``: 1 without mistakes, 0 with nothing but the costliest.

    ``conflict_share`` is the share of conflicts among a user's questions; None takes the answers as they are.
    """
    import numpy as np

    utilities = np.array(costs.utilities())

    def mean(counts: Array) -> Array:
        by_situation = (counts * utilities).sum(-1)
        sizes = counts.sum(-1)
        if conflict_share is None:
            return ratio(by_situation.sum(-1), sizes.sum(-1))
        means, total = ratio(by_situation, sizes), np.zeros(np.shape(sizes)[:-1])
        for situation, weight in ((_WITHOUT, 1 - conflict_share), (_CONFLICT, conflict_share)):
            total = total + weight * means[..., situation] if weight else total
        return total

    return mean


SHARES: Mapping[str, Callable[[Array], Array]] = {
    UNDER_CONFLICT: abstains_under_conflict,
    NEEDLESS: abstains_needlessly,
    GAP: abstention_gap,
    JUSTIFIED: justified,
    COVERAGE: coverage,
    RISK: risk,
}

_PARTS: Mapping[str, tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]] = {
    UNDER_CONFLICT: (((1, 0),), ((1, 0), (1, 1), (1, 2))),
    NEEDLESS: (((0, 0),), ((0, 0), (0, 1), (0, 2))),
    JUSTIFIED: (((1, 0),), ((0, 0), (1, 0))),
    COVERAGE: (((0, 1), (0, 2), (1, 1), (1, 2)), tuple((i, j) for i in range(2) for j in range(3))),
    RISK: (((0, 2), (1, 2)), ((0, 1), (0, 2), (1, 1), (1, 2))),
}
"""The cells that a share counts, and those that it is a share of."""

_REASONS = {
    UNDER_CONFLICT: "no labelled answer under conflict",
    NEEDLESS: "no labelled answer without conflict",
    GAP: "it needs labelled answers under conflict and without",
    JUSTIFIED: "no answer abstains",
    COVERAGE: "no labelled answer",
    RISK: "every answer abstains",
}


# --- from labels to responses -----------------------------------------------------------------------


def response_places(benchmark: Benchmark, rule: AbstentionRule) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the situation and the response, as indices, of each condition of the rule and label."""
    places = {}
    for condition in rule.conditions:
        for label in benchmark.labels:
            is_right = benchmark.correct(condition, label) and label not in benchmark.inventions
            response = _RIGHT if is_right else WRONG
            response = ABSTAINS if label in rule.labels[condition] else response
            places[condition, label] = (int(condition in rule.conflict), response)
    return places


def abstention_metrics(benchmark: Benchmark) -> LabelMetrics | None:
    """Return the metrics of abstention as functions of label counts, for comparing runs; None if no label abstains."""
    import numpy as np

    rule = benchmark.abstention
    if rule is None:
        return None
    cells = np.zeros((len(rule.conditions), len(benchmark.labels), len(SITUATIONS), len(RESPONSES)))
    for (condition, label), place in response_places(benchmark, rule).items():
        cells[(rule.conditions.index(condition), benchmark.labels.index(label), *place)] = 1

    def of_labels(metric: Callable[[Array], Array]) -> Callable[[Array], Array]:
        return lambda counts: metric(np.tensordot(counts, cells, axes=2))

    metrics = {name: of_labels(metric) for name, metric in SHARES.items()}
    metrics |= {f"utility {name}": of_labels(utility(at_ratio(RATIOS[name]))) for name in COMPARED_RATIOS}
    return LabelMetrics(rule.conditions, benchmark.labels, metrics, benchmark.unparsed_label)


def count_responses(
    answers: Answers, judge: str, benchmark: Benchmark, rule: AbstentionRule
) -> tuple[NDArray[np.int64], float]:
    """Return each cluster's answers by situation and response, shape (clusters, situations, responses), and their distinct share.

    Only labelled answers count, and empty ones where the benchmark's tables count them. The share is that of
    :meth:`RepeatedClusters.distinct`.
    """
    places, unparsed = response_places(benchmark, rule), benchmark.unparsed_label

    def cell(kind: AnswerKind) -> tuple[int, int] | None:
        outcome = kind.outcome(judge)
        label = kind.label(judge) if outcome == "labelled" else unparsed if outcome == "unparsed" else None
        return None if label is None else places.get((kind.condition, label))

    def code(kind: AnswerKind) -> int:
        place = cell(kind)
        return -1 if place is None else place[0] * len(RESPONSES) + place[1]

    codes = answers.codes(code)
    distinct = distinct_share(answers.clusters.at(codes >= 0), codes[codes >= 0]) if answers.is_repeated else 1.0
    return answers.cells((len(SITUATIONS), len(RESPONSES)), cell), distinct


def share_estimates(counts: NDArray[np.int64], resamples: int, seed: int, distinct: float = 1.0) -> dict[str, Estimate]:
    """Return every metric of ``SHARES`` with its interval; ``counts`` has shape (clusters, situations, responses)."""
    return {name: _share_estimate(name, counts, resamples, seed, distinct) for name in SHARES}


def utility_estimate(
    counts: NDArray[np.int64],
    costs: Costs,
    resamples: int,
    seed: int,
    conflict_share: float | None = None,
    distinct: float = 1.0,
) -> Estimate:
    """Return the mean utility under ``costs`` with its interval."""
    return metric_estimate(
        utility(costs, conflict_share),
        counts,
        int(counts.sum()),
        partial(Draws.of, counts, resamples, seed),
        distinct=distinct,
        clusters=_clusters_behind(counts),
        reason=_REASONS[GAP],
    )


def _clusters_behind(counts: NDArray[np.int64]) -> int:
    return int((counts.sum((1, 2)) > 0).sum())


def _share_estimate(name: str, counts: NDArray[np.int64], resamples: int, seed: int, distinct: float) -> Estimate:
    totals = counts.sum(0).astype(float)
    if name not in _PARTS:
        replicates = Draws.of(counts, resamples, seed).replicates(SHARES[name])
        return estimate(
            float(SHARES[name](totals)),
            replicates,
            int(totals.sum()),
            clusters=_clusters_behind(counts),
            within=DIFFERENCE,
            reason=_REASONS[name],
        )
    hits, answers = (sum((counts[:, i, j] for i, j in cells), start=0 * counts[:, 0, 0]) for cells in _PARTS[name])
    cell = wilson_repeated(hits, answers, distinct)
    return cell if cell.value is not None else Estimate(None, reason=_REASONS[name])
