"""Figures by a judge, corrected by people's labels on a random sample of the answers: prediction-powered inference.

A judge labels all answers, people a sample of them. In each condition the shares of the labels are people's on the
sample, plus lambda times how the judge's shares on all answers differ from its shares on the sample (PPI++: Angelopoulos,
Duchi and Zrnic 2023, arXiv:2311.01453). That is right on average whatever the judge is like; the better the judge, the
narrower the interval. Intervals are by the bootstrap for prediction-powered inference (Zrnic 2024, arXiv:2405.18379),
over groups, since the conditions of one example hang together, and with lambda tuned anew in every resample.

PPI++ takes the judge's shares on the N answers without people's labels, here they are over all n + N answers. With the tuned
lambda the two are the same estimate as long as lambda is not clipped: here it is cov / var, there that divided by 1 + n / N.
Where the sample gives a cov / var above 1 they differ. Here lambda stays at 1, there (and in ppi_py) it may rise to 1 + n / N in
the terms of here. For shares of labels cov / var cannot exceed 1 in the whole (P(judge and people) - P(judge) P(people) is at
most P(judge) (1 - P(judge))), so that what is clipped here is the sample's noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.base import Cell, Estimate, LabelMetrics, Record, Table
from benchmarks.stats.intervals import estimate, resample
from benchmarks.text.answer_text import visible_answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.int64]

FEWEST = 10
"""With fewer labels by people in a condition that a figure needs, the figure is n/a."""

NO_LABEL = -1
"""Code of an answer that was looked at and got no label."""

NOT_SEEN = -2
"""Code of an answer that was not looked at."""


@dataclass(frozen=True, slots=True)
class CorrectedEstimates:
    """One figure three times: by the judge on all answers, corrected, and by people on the sample alone.

    The ``n`` of the last two counts the answers that people looked at in the conditions that the figure needs.
    """

    judge: Estimate
    corrected: Estimate
    people: Estimate


# --- the method, on arrays -----------------------------------------------------------------------


def group_sums(groups: Codes, conditions: Codes, judged: Codes, labelled: Codes, shape: tuple[int, int, int]) -> Array:
    """Everything that the estimates need of each group, as sums over its answers.

    The first four are index arrays of shape (answers,): group, condition, the judge's label and people's, each a label's index
    or NO_LABEL, people's also NOT_SEEN. ``shape`` is the number of groups, conditions and labels. The result has shape
    (groups, conditions, 3 + 3 * labels); see :class:`_Totals`.
    """
    import numpy as np

    count, kinds, labels = shape
    hot = np.concatenate([np.eye(labels), np.zeros((1, labels))])
    seen = (labelled != NOT_SEEN).astype(float)
    by_judge = hot[judged]
    by_people = hot[np.where(labelled < 0, NO_LABEL, labelled)]
    agree = (by_judge * by_people).sum(-1)
    cells = np.column_stack([np.ones(len(groups)), seen, agree, by_judge, seen[:, None] * by_judge, by_people])
    sums = np.zeros((count, kinds, cells.shape[1]))
    np.add.at(sums, (groups, conditions), cells)
    return sums


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums over groups, shape (..., conditions) and, of labels, (..., conditions, labels)."""

    answers: Array
    seen: Array
    agree: Array
    by_judge: Array
    by_judge_seen: Array
    by_people: Array

    @classmethod
    def of(cls, sums: Array) -> _Totals:
        labels = (sums.shape[-1] - 3) // 3
        one, two = 3 + labels, 3 + 2 * labels
        return cls(sums[..., 0], sums[..., 1], sums[..., 2], sums[..., 3:one], sums[..., one:two], sums[..., two:])

    def rectified(self) -> Array:
        """The counts of labels people would have given all answers, shape (..., conditions, labels); nan where nobody looked.

        A share that comes out below 0, as that of a label which nearly never occurs can, is set to 0.
        """
        people, sample, every = (
            _shares(self.by_people, self.seen),
            _shares(self.by_judge_seen, self.seen),
            _shares(self.by_judge, self.answers),
        )
        moved = people + self.tuned()[..., None] * (every - sample)
        counts: Array = moved.clip(0) * self.answers[..., None]
        return counts

    def tuned(self) -> Array:
        """Lambda per condition, shape (..., conditions), in [0, 1]: the one that makes the summed variance of its shares least.

        The judge's variance is over all answers, the covariance with people over the sample (PPI++, proposition 2,
        for shares).
        """
        import numpy as np

        people, sample = _shares(self.by_people, self.seen), _shares(self.by_judge_seen, self.seen)
        every = _shares(self.by_judge, self.answers)
        together = _ratio(self.agree, self.seen) - (people * sample).sum(-1)
        spread = every.sum(-1) - (every**2).sum(-1)
        tuned = _ratio(together, np.where(spread > 1e-12, spread, 0))
        return np.where(np.isnan(tuned), 0.0, tuned).clip(0, 1)


def correct(
    sums: Array, figures: LabelMetrics, *, resamples: int, seed: int, fewest: int = FEWEST
) -> dict[str, CorrectedEstimates]:
    """Each figure by the judge, corrected, and by people alone, with 95% percentile intervals.

    ``sums`` are as :func:`group_sums` gives them, for the figures' conditions and labels in their order. Groups with labels by
    people and groups without are drawn separately, so that a resample has as many labelled examples as there are.
    """
    totals = _Totals.of(sums.sum(0))
    drawn = _Totals.of(_draws(sums, resamples, seed))
    estimates: dict[str, CorrectedEstimates] = {}
    for name, figure in figures.of.items():
        needed = needed_conditions(figure, figures)
        unjudged = [figures.conditions[i] for i in needed if not totals.by_judge[i].any()]
        unseen = [figures.conditions[i] for i in needed if totals.seen[i] < fewest]
        n = int(totals.seen[needed].sum())
        no_judge = f"the judge has labelled no answer under {', '.join(unjudged)}" if unjudged else ""
        no_people = f"people looked at fewer than {fewest} answers under {', '.join(unseen)}" if unseen else ""
        estimates[name] = CorrectedEstimates(
            _estimate(figure, totals.by_judge, drawn.by_judge, int(totals.by_judge[needed].sum()), no_judge),
            _estimate(figure, totals.rectified(), drawn.rectified(), n, no_judge or no_people),
            _estimate(figure, totals.by_people, drawn.by_people, n, no_people),
        )
    return estimates


def needed_conditions(figure: Callable[[Array], Array], figures: LabelMetrics) -> list[int]:
    """The indices of the conditions that a figure is made of: without whose counts it changes or is undefined."""
    import numpy as np

    # Uneven counts, so that no figure stays the same by accident.
    counts = np.random.default_rng(0).uniform(1, 2, (len(figures.conditions), len(figures.labels)))
    without = np.stack([counts] * len(figures.conditions))
    without[np.arange(len(without)), np.arange(len(without))] = 0
    whole, parts = np.asarray(figure(counts)), np.asarray(figure(without))
    return [i for i in range(len(without)) if parts[i] != whole]


def _estimate(figure: Callable[[Array], Array], counts: Array, drawn: Array, n: int, missing: str) -> Estimate:
    import numpy as np

    if missing:
        return Estimate(None, n=n, reason=missing)
    filled, filled_drawn = np.nan_to_num(counts), np.nan_to_num(drawn)
    found = estimate(float(figure(filled)), np.asarray(figure(filled_drawn)), n)
    if found.value is None or found.low is None or found.high is None:
        return found
    # What is imagined moves the draws alone, so that a share of 0 or 1 would lie outside its own interval.
    return replace(found, low=min(found.low, found.value), high=max(found.high, found.value))


def _draws(sums: Array, resamples: int, seed: int) -> Array:
    """Resampled totals of ``sums``, shape (resamples, conditions, cells)."""
    import numpy as np

    seen = sums[:, :, 1].any(-1)
    drawn = resample(sums[seen], resamples, seed)
    others = sums[~seen]
    if not len(drawn):
        return drawn
    if len(others):
        more = resample(others, resamples, seed + 1)
        drawn = drawn + (more if len(more) else others.sum(0))
    return drawn + _imagined(drawn.shape, np.random.default_rng(seed + 2))


def _imagined(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Half a labelled answer more for each label of each condition, at random; in half of it the judge is right.

    A disagreement that a small sample happens not to show is not impossible, but the bootstrap alone would take it to be:
    intervals of rare labels would be too narrow. This is what Jeffreys' prior adds to the Bayesian bootstrap (Rubin
    1981). Estimates have no part in it.
    """
    import numpy as np

    labels = (shape[-1] - 3) // 3
    prior = 0.5 * (0.5 * np.eye(labels) + 0.5 / labels)
    # By people's label, then the judge's.
    pairs = random.gamma(prior, size=(*shape[:-1], labels, labels))
    cells = np.zeros(shape)
    cells[..., 1], cells[..., 2] = pairs.sum((-1, -2)), np.trace(pairs, axis1=-2, axis2=-1)
    cells[..., 3 + labels : 3 + 2 * labels], cells[..., 3 + 2 * labels :] = pairs.sum(-2), pairs.sum(-1)
    return cells


def _shares(counts: Array, whole: Array) -> Array:
    return _ratio(counts, whole[..., None])


def _ratio(part: Array, whole: Array) -> Array:
    import numpy as np

    part, whole = np.broadcast_arrays(part, whole)
    ratio: Array = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return ratio


# --- of records ----------------------------------------------------------------------------------


def corrected_table(
    runs: Mapping[str, Sequence[Record]], judge: str, human: str, figures: LabelMetrics, *, resamples: int, seed: int
) -> Table:
    """Every figure by ``judge``, corrected by the labels under ``human``, and by those alone; a row a run and figure.

    People's labels must be on a random sample of the answers of each condition (:func:`judges.human_labels.sample`). An answer
    that the judge could not label and people could counts by people's label; one that people could not label counts as no
    answer of any label, as an unparsed answer does everywhere. Empty answers are left out: there is nothing to label.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    lost: Counter[str] = Counter()
    for run, records in runs.items():
        sums = _sums(records, judge, human, figures, lost)
        for name, found in correct(sums, figures, resamples=resamples, seed=seed).items():
            rows.append((f"{run} / {name}", (found.judge, found.corrected, found.people, found.people.n)))
    notes = [
        f"corrected: what {human} would have said of all answers, from {judge} on all of them and {human} on a random sample, by "
        "prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023; Zrnic 2024).",
        "Intervals: 95%, percentile bootstrap over examples. They hold where the sample is random within each condition.",
        *(f"{what}: {count}." for what, count in lost.items() if count),
    ]
    columns = (judge, "corrected", f"{human} alone", "labelled by people")
    return Table("corrected", f"Figures by {judge}, corrected by {human}", columns, tuple(rows), tuple(notes))


def _sums(records: Sequence[Record], judge: str, human: str, figures: LabelMetrics, lost: Counter[str]) -> Array:
    import numpy as np

    condition = {name: i for i, name in enumerate(figures.conditions)}
    code = {name: i for i, name in enumerate(figures.labels)}
    groups: dict[str, int] = {}
    found: list[tuple[int, int, int, int]] = []
    for record in records:
        if (
            record.instance.condition not in condition
            or record.answer is None
            or not visible_answer(record.answer.text)
        ):
            continue
        by_judge, by_people = _code(record, judge, code), _code(record, human, code)
        if by_judge == NOT_SEEN:
            lost[f"Labels by {human} that are not used, since {judge} has not judged the answer"] += (
                by_people != NOT_SEEN
            )
            continue
        lost[f"Answers with a label by {human} and none that {judge} could give; they count by {human}"] += (
            by_judge == NO_LABEL and by_people >= 0
        )
        lost[f"Answers with a label by {judge} and none that {human} could give; they count as unlabelled"] += (
            by_judge >= 0 and by_people == NO_LABEL
        )
        group = groups.setdefault(record.instance.group, len(groups))
        found.append((group, condition[record.instance.condition], by_judge, by_people))
    group_of, condition_of, judged, labelled = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return group_sums(group_of, condition_of, judged, labelled, (len(groups), len(condition), len(code)))


def _code(record: Record, judge: str, code: Mapping[str, int]) -> int:
    outcome = record.outcome(judge)
    if outcome in ("pending", "error"):
        return NOT_SEEN
    return code.get(str(record.verdicts[judge].label), NO_LABEL) if outcome == "labelled" else NO_LABEL
