"""A judge's metrics, corrected by human labels on a random sample of the answers: prediction-powered inference.

A judge labels all answers, people a sample of them. In each condition, the shares of the labels are the human shares on
the sample, plus lambda times the difference between the judge's shares on all answers and on the sample (PPI++:
Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453). The estimate is unbiased whatever the judge; the better the
judge, the narrower the interval. Variances come from the bootstrap for prediction-powered inference (Zrnic 2024,
arXiv:2405.18379), over clusters, with lambda tuned anew in every resample; the intervals are those of all other metrics
(:func:`benchmarks.stats.intervals.estimate`).

PPI++ takes the judge's shares on the N answers without human labels; here they are over all n + N answers. With the
tuned lambda the two give the same estimate as long as lambda is not clipped: here it is cov / var, there that divided
by 1 + n / N. They differ if the sample gives a cov / var above 1: here lambda stays at 1, there (and in ppi_py) it may
rise to the equivalent of 1 + n / N here. For shares of labels, cov / var cannot exceed 1 in the population (P(judge and
people) - P(judge) P(people) is at most P(judge) (1 - P(judge))), so only the sample's noise is clipped here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, Draws, estimate, ratio
from benchmarks.stats.paired_tests import metric_range
from benchmarks.vocabulary import Cell, Estimate, LabelMetrics, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

MIN_LABELS = 10
"""The least number of human labels in each condition that a metric needs; with fewer, the metric is n/a."""

_HELD = 0.5
"""Above this sum a cluster holds an answer; of a borrowed page, the mean over clusters is counted off."""

NO_LABEL = -1
"""Code of an answer that was judged and got no label."""

NOT_SEEN = -2
"""Code of an answer that was not judged."""


@dataclass(frozen=True, slots=True)
class CorrectedEstimates:
    """One metric in three forms: by the judge on all answers, corrected, and by people on the sample only.

    The ``n`` of the last two counts the answers that people judged in the conditions that the metric needs.
    """

    judge: Estimate
    corrected: Estimate
    people: Estimate


# --- the method, on arrays -----------------------------------------------------------------------


def correction_sums(
    clusters: Clusters, conditions: Codes, judged: Codes, labelled: Codes, shape: tuple[int, int]
) -> Array:
    """Return the sums that the estimates need, for each cluster over its answers.

    The middle three arguments are index arrays of shape (answers,): condition, the judge's label and the human label,
    each a label's index or NO_LABEL; the human label may also be NOT_SEEN. ``shape`` is the number of conditions and
    labels. The result has shape (clusters, conditions, 3 + 3 * labels); see :class:`_Totals`.
    """
    import numpy as np

    kinds, labels = shape
    hot = np.concatenate([np.eye(labels), np.zeros((1, labels))])
    seen = (labelled != NOT_SEEN).astype(float)
    by_judge = hot[judged]
    by_people = hot[np.where(labelled < 0, NO_LABEL, labelled)]
    agree = (by_judge * by_people).sum(-1)
    cells = np.column_stack([np.ones(len(seen)), seen, agree, by_judge, seen[:, None] * by_judge, by_people])
    by_condition = np.zeros((len(seen), kinds, cells.shape[1]))
    by_condition[np.arange(len(seen)), conditions] = cells
    return clusters.sums(by_condition)


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums over clusters, of shape (..., conditions) and, for labels, (..., conditions, labels)."""

    answers: Array
    seen: Array
    agree: Array
    by_judge: Array
    by_judge_seen: Array
    by_people: Array

    @classmethod
    def of(cls, sums: Array) -> _Totals:
        labels = (sums.shape[-1] - 3) // 3
        first_end, second_end = 3 + labels, 3 + 2 * labels
        return cls(
            sums[..., 0],
            sums[..., 1],
            sums[..., 2],
            sums[..., 3:first_end],
            sums[..., first_end:second_end],
            sums[..., second_end:],
        )

    def rectified(self) -> Array:
        """Return the estimated counts of human labels on all answers, shape (..., conditions, labels); nan without human labels.

        A share that comes out below 0, which is possible for a very rare label, is set to 0.
        """
        people, sample, overall = (
            _shares(self.by_people, self.seen),
            _shares(self.by_judge_seen, self.seen),
            _shares(self.by_judge, self.answers),
        )
        moved = people + self.tuned()[..., None] * (overall - sample)
        counts: Array = moved.clip(0) * self.answers[..., None]
        return counts

    def tuned(self) -> Array:
        """Return lambda per condition, shape (..., conditions), in [0, 1], which minimises the summed variance of its shares.

        The judge's variance is over all answers, the covariance with people over the sample (PPI++, proposition 2, for
        shares).
        """
        import numpy as np

        people, sample = _shares(self.by_people, self.seen), _shares(self.by_judge_seen, self.seen)
        overall = _shares(self.by_judge, self.answers)
        covariance = ratio(self.agree, self.seen) - (people * sample).sum(-1)
        variance = overall.sum(-1) - (overall**2).sum(-1)
        tuned = ratio(covariance, np.where(variance > 1e-12, variance, 0))
        return np.where(np.isnan(tuned), 0.0, tuned).clip(0, 1)


def correct(
    sums: Array, metrics: LabelMetrics, *, resamples: int, seed: int, fewest: int = MIN_LABELS
) -> dict[str, CorrectedEstimates]:
    """Return each metric by the judge, corrected, and by people only, with 95% intervals.

    ``sums`` come from :func:`correction_sums`, for the metrics' conditions and labels in their order.
    """
    draws = Draws.of(sums, resamples, seed)
    totals = _Totals.of(draws.totals)
    estimates: dict[str, CorrectedEstimates] = {}
    for name, metric in metrics.of.items():
        needed = needed_conditions(metric, metrics)
        unjudged = [metrics.conditions[i] for i in needed if not totals.by_judge[i].any()]
        unseen = [metrics.conditions[i] for i in needed if totals.seen[i] < fewest]
        n = int(totals.seen[needed].sum())
        no_judge = f"the judge has labelled no answer under {', '.join(unjudged)}" if unjudged else ""
        no_people = f"people looked at fewer than {fewest} answers under {', '.join(unseen)}" if unseen else ""
        judged = int(totals.by_judge[needed].sum())
        looked_at, of_people = (_holding(sums[:, needed, cell]) for cell in (0, 1))
        measure = partial(_estimate, metric, metric_range(metric, metrics), draws)
        estimates[name] = CorrectedEstimates(
            measure(attrgetter("by_judge"), judged, looked_at, no_judge),
            replace(measure(_Totals.rectified, judged, of_people, no_judge or no_people), n=n),
            measure(attrgetter("by_people"), n, of_people, no_people),
        )
    return estimates


def _estimate(
    metric: Callable[[Array], Array],
    within: tuple[float, float] | None,
    draws: Draws,
    form: Callable[[_Totals], Array],
    n: int,
    clusters: int,
    missing: str,
) -> Estimate:
    """Return a metric of the counts of one ``form``."""
    import numpy as np

    def of(sums: Array) -> Array:
        return np.asarray(metric(np.nan_to_num(form(_Totals.of(sums)))))

    if missing:
        return Estimate(None, n=n, reason=missing)
    return estimate(float(of(draws.totals)), draws.replicates(of), n, clusters=clusters, within=within)


def _holding(counts: Array) -> int:
    """Return how many clusters hold any answer of ``counts``, shape (clusters, conditions)."""
    return int((counts > _HELD).any(1).sum())


def needed_conditions(metric: Callable[[Array], Array], metrics: LabelMetrics) -> list[int]:
    """Return the indices of the conditions that a metric depends on: without their counts it changes or is undefined."""
    import numpy as np

    # Uneven counts, so that no metric stays the same by accident.
    counts = np.random.default_rng(0).uniform(1, 2, (len(metrics.conditions), len(metrics.labels)))
    reduced = np.stack([counts] * len(metrics.conditions))
    reduced[np.arange(len(reduced)), np.arange(len(reduced))] = 0
    complete, parts = np.asarray(metric(counts)), np.asarray(metric(reduced))
    return [i for i in range(len(reduced)) if parts[i] != complete]


def _shares(counts: Array, totals: Array) -> Array:
    return ratio(counts, totals[..., None])


# --- of answers ----------------------------------------------------------------------------------


def corrected_table(
    runs: Mapping[str, Answers], judge: str, human: str, metrics: LabelMetrics, *, resamples: int, seed: int
) -> Table:
    """Return the metrics by ``judge``, corrected by the labels of ``human``, and by those only; a row per run and metric.

    Human labels must be on a random sample of the answers of each condition
    (:func:`judges.human_labels_and_samples.draw_sample`). An answer that only people could label counts by the human label; one
    that people could not label counts as an unparsed answer. Empty answers are excluded: there is nothing to label.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    exclusions: Counter[str] = Counter()
    for run, answers in runs.items():
        sums = _sums(answers, judge, human, metrics, exclusions)
        for name, estimates in correct(sums, metrics, resamples=resamples, seed=seed).items():
            rows.append(
                (f"{run} / {name}", (estimates.judge, estimates.corrected, estimates.people, estimates.people.n))
            )
    notes = [
        f"corrected: what {human} would have said of all answers, from {judge} on all of them and {human} on a random sample, by "
        "prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023; Zrnic 2024).",
        f"{INTERVALS} They hold where the sample is random within each condition.",
        *(f"{reason}: {count}." for reason, count in exclusions.items() if count),
    ]
    columns = (judge, "corrected", f"{human} alone", "labelled by people")
    return Table("corrected", f"Figures by {judge}, corrected by {human}", columns, tuple(rows), tuple(notes))


def _sums(answers: Answers, judge: str, human: str, metrics: LabelMetrics, exclusions: Counter[str]) -> Array:
    import numpy as np

    condition = {name: i for i, name in enumerate(metrics.conditions)}
    code = {name: i for i, name in enumerate(metrics.labels)}
    coded = np.full((len(answers.kinds), 3), -1, dtype=np.int64)
    for number, (kind, size) in enumerate(zip(answers.kinds, answers.sizes.tolist(), strict=True)):
        if not size or kind.condition not in condition or kind.is_empty:
            continue
        by_judge, by_people = _label_code(kind, judge, code), _label_code(kind, human, code)
        if by_judge == NOT_SEEN:
            exclusions[f"Labels by {human} that are not used, since {judge} has not judged the answer"] += size * (
                by_people != NOT_SEEN
            )
            continue
        exclusions[f"Answers with a label by {human} and none that {judge} could give; they count by {human}"] += (
            size * (by_judge == NO_LABEL and by_people >= 0)
        )
        exclusions[f"Answers with a label by {judge} and none that {human} could give; they count as unlabelled"] += (
            size * (by_judge >= 0 and by_people == NO_LABEL)
        )
        coded[number] = condition[kind.condition], by_judge, by_people
    counted = (coded[:, 0] >= 0)[answers.kind]
    clusters = answers.clusters.at(counted)
    conditions, judged, labelled = coded[answers.kind[counted]].T
    return correction_sums(clusters, conditions, judged, labelled, (len(condition), len(code)))


def _label_code(kind: AnswerKind, judge: str, code: Mapping[str, int]) -> int:
    outcome = kind.outcome(judge)
    if outcome in ("pending", "error"):
        return NOT_SEEN
    return code.get(kind.label(judge), NO_LABEL) if outcome == "labelled" else NO_LABEL
