"""Target metrics: what a decision between runs is by, as a score of each label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.compare.runs.cost_tables import LabelMask, correct_labels
from app.compare.runs.run_pairs import Array
from app.compare.runs.run_view import RunViews
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.stats.paired_tests import share_labels
from benchmarks.vocabulary import LabelMetrics

ACCURACY = "accuracy"
"""The name by which ``--metric`` knows :data:`DECISION_ACCURACY`."""


DECISION_ACCURACY = "decision accuracy"
"""The share of right labels where an empty, truncated or invented answer is wrong: what recommendations and gates decide by."""


@dataclass(frozen=True, slots=True)
class ConditionShares:
    """The share of the answers under some conditions, a mask of shape (conditions,), that a metric is to rest on."""

    conditions: NDArray[np.bool_]
    share: float

    def weights(self, condition: NDArray[np.int64]) -> Array:
        """Return weights of answers under these conditions that give the share; their mean is 1. Shape (answers,).

        Raises:
            SpecError: There is no answer of a kind that the share needs.
        """
        inside = self.conditions[condition]
        present = float(inside.mean())
        if (self.share and not present) or (self.share < 1 and present == 1):
            raise SpecError(
                "these runs share no labelled answers under conflict, or none without it; run both, or leave the share of "
                "conflicts out."
            )
        weights: Array = np.where(
            inside, self.share / (present or 1.0), (1 - self.share) / (1 - present if present < 1 else 1.0)
        )
        return weights


@dataclass(frozen=True, slots=True)
class TargetMetric:
    """The metric that decides: the mean score of all answers under the conditions that have a score.

    Attributes:
        hits: The score of each label, from 0 to 1, shape (conditions, labels); for a share of labels, a mask. With ``rules``,
            for each rule in turn, shape (rules * conditions, labels).
        mix: The share of answers that some conditions are to have; None takes the answers as they are.
        note: Its definition, if the tables have none.
    """

    name: str
    hits: LabelMask | Array
    lower_is_better: bool = False
    mix: ConditionShares | None = None
    note: str = ""
    counts_no_answer: bool = False
    """An empty answer or one that was cut off counts, with a score of 0; else it is left out."""
    right_value: float | None = None
    """The score of the right value though no source has it; None: that of its label."""
    rules: tuple[str, ...] = ()
    """The rules of the rows themselves, where these decide; "" for rows without one."""
    source: str = ""
    """The source whose answers alone count; ``hits`` then has a single row."""
    clause: str = ""
    """The words that say in a sentence that runs are compared by it."""
    strictness: str = ""
    """The clause on answers that are wrong in a decision, and need not be in the benchmark's tables."""

    @property
    def compared(self) -> str:
        """The clause on what runs are compared by: "in HR"."""
        return self.clause or f"in {self.name}"


def metric_title(name: str) -> str:
    """Return the name under which a deciding metric is displayed."""
    return DECISION_ACCURACY if name == ACCURACY else name


def target_metric(views: RunViews, name: str | None, *, lower_is_better: bool = False) -> TargetMetric:
    """Return the metric called ``name``; None is the accuracy.

    Raises:
        SpecError: The metric is unknown, or no share of all answers, or its direction is another.
    """
    if name is None or name.casefold() == ACCURACY:
        if lower_is_better:
            raise SpecError("a lower accuracy is not better; name another --metric with --lower-is-better.")
        inventions = views.benchmark.inventions
        return TargetMetric(
            ACCURACY,
            correct_labels(views) & ~np.isin(views.label_metrics.labels, list(inventions)),
            counts_no_answer=True,
            right_value=1.0,
            clause=f"by {DECISION_ACCURACY}",
            strictness=f"an empty{', truncated or invented' if inventions else ' or truncated'} answer is wrong",
        )
    metrics = views.label_metrics
    known = {metric.casefold(): metric for metric in metrics.of}
    if name.casefold() not in known:
        names = (ACCURACY, *metrics.of)
        raise SpecError(f"{views.benchmark.name} has no metric {name!r}; {did_you_mean(name, names)}")
    name = known[name.casefold()]
    hits = share_labels(metrics.of[name], metrics)
    if hits is None:
        shares = [metric for metric, function in metrics.of.items() if share_labels(function, metrics) is not None]
        raise SpecError(f"{name} is no share of all answers, so it cannot be tested; use {', '.join(shares)}.")
    return TargetMetric(name, hits, is_lower_better(metrics, name, lower_is_better))


def is_lower_better(metrics: LabelMetrics, name: str, override: bool) -> bool:
    """Return whether lower values of a metric are better, as it declares or, where it has no direction, by ``override``.

    Raises:
        SpecError: The override contradicts it.
    """
    declared = metrics.lower_is_better.get(name, override)
    if override and not declared:
        raise SpecError(f"a lower {name} is not better; leave --lower-is-better out.")
    return declared
