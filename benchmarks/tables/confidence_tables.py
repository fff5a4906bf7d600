"""Tables about confidence: calibration, detection of conflicts, preference strength, selective answering, and quantisation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.answers import AnswerKind, Answers
from benchmarks.base import Benchmark
from benchmarks.stats.calibration import (
    MIN_CLUSTERS,
    auroc_estimate,
    bin_count,
    brier_estimate,
    calibration_error_estimate,
    mean_estimate,
    reliability,
)
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import SHARE
from benchmarks.stats.selective_answering import conformal_threshold, smallest_risk
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

CONFIDENCE_TABLES = ("confidence", "calibration", "reliability", "preference", "selective", "quantisation")
"""The names of these tables, in their order."""

RISKS = (0.05, 0.1, 0.2)
"""The shares of wrong answers that the table "selective" allows for."""

_ALL = "all"
_CLOSE_TO_ONE = 0.999
_ROW = tuple[str, tuple[Cell, ...]]
_CONFIDENCE = (
    "Confidence: of an option, its share of all options' probability; of a generated answer, the geometric mean of its tokens' "
    "probabilities."
)
_FOLLOWS = {"image": "follows the image", "text": "follows the text"}


@dataclass(frozen=True)
class _Run:
    """The answers of a run with likelihoods, as these tables count them."""

    label: str
    answers: Answers
    benchmark: Benchmark
    judge: str

    def of(self, name: str) -> Array:
        """Return the confidences of one kind, nan where there is none."""
        values: Array = getattr(self.answers.confidence, name)
        return values

    @cached_property
    def labelled(self) -> Mask:
        return self.answers.mask(lambda kind: kind.outcome(self.judge) == "labelled")

    @cached_property
    def right(self) -> Array:
        """1 for each right answer; 0 also for those without a label."""
        import numpy as np

        def is_right(kind: AnswerKind) -> bool:
            labelled = kind.outcome(self.judge) == "labelled"
            return labelled and self.benchmark.correct(kind.condition, kind.label(self.judge))

        return self.answers.mask(is_right).astype(np.float64)

    def has_label(self, label: str) -> Array:
        """Return 1 for each answer with this label."""
        import numpy as np

        def has(kind: AnswerKind) -> bool:
            return kind.outcome(self.judge) == "labelled" and kind.label(self.judge) == label

        return self.answers.mask(has).astype(np.float64)

    @cached_property
    def judged(self) -> Mask:
        """Return the answers that have a confidence and a label."""
        import numpy as np

        judged: Mask = self.labelled & ~np.isnan(self.of("answer"))
        return judged

    def confident(self) -> tuple[Array, Array, Clusters]:
        """Return the confidences, the rightness and the clusters of the :attr:`judged` answers."""
        return self.of("answer")[self.judged], self.right[self.judged], self.answers.clusters.at(self.judged)

    def under(self, condition: str) -> Mask:
        """Return the records of a condition, or all of them."""
        return self.answers.mask(lambda kind: condition in (_ALL, kind.condition))

    def views(self) -> list[str]:
        """Return all conditions together, then each condition that there are answers of."""
        present = self.answers.count(lambda kind: kind.condition)
        return [_ALL, *(condition for condition in self.benchmark.conditions if condition in present)]

    @cached_property
    def conflict(self) -> tuple[Mask, Mask]:
        """Return the records whose sources disagree, and the others; those that show one source alone are neither."""
        conflicts, single = (
            self.benchmark.conflicts,
            {k.condition for k in self.answers.kinds if k.instance.single_source},
        )
        others = self.benchmark.without_conflict or tuple(set(self.benchmark.conditions) - set(conflicts))
        return (
            self.answers.mask(lambda kind: kind.condition in conflicts),
            self.answers.mask(lambda kind: kind.condition in others and kind.condition not in single),
        )


@dataclass(frozen=True)
class _Draw:
    resamples: int
    seed: int


def confidence_tables(
    runs: Mapping[str, Answers],
    judge: str,
    benchmark: Benchmark,
    *,
    resamples: int,
    seed: int,
    quantisations: Sequence[tuple[str, str]] = (),
) -> list[Table]:
    """Return the tables of the runs that have likelihoods; none if no run has.

    ``quantisations`` are pairs of runs of one model on the same instances, in the same order, with more and with fewer bits.
    """
    scored = [_Run(run, answers, benchmark, judge) for run, answers in runs.items() if answers.confidence is not None]
    if not scored:
        return []
    draw = _Draw(resamples, seed)
    by_label = {run.label: run for run in scored}
    pairs = [(by_label[more], by_label[less]) for more, less in quantisations if {more, less} <= by_label.keys()]
    pairs = [(more, less) for more, less in pairs if _same_instances(more, less)]
    without = [run for run in runs if run not in by_label]
    notes = (f"{', '.join(without)}: no likelihoods; answer again with --score likelihood.",) if without else ()
    tables = [
        _confidence(scored, draw, notes),
        _calibration(scored, draw, notes),
        _reliability(scored, notes),
        _preference(scored, draw, notes),
        _selective(scored, notes),
    ]
    if pairs:
        tables.append(_quantisation(pairs, draw))
    return [table for table in tables if table.rows]


def _confidence(runs: Sequence[_Run], draw: _Draw, notes: tuple[str, ...]) -> Table:
    import numpy as np

    present = {condition for run in runs for condition in run.views()}
    columns = tuple(condition for condition in runs[0].benchmark.conditions if condition in present)
    rows = []
    for run in runs:
        confidence = run.of("answer")
        known = ~np.isnan(confidence)
        rows.append(
            (
                run.label,
                tuple(
                    mean_estimate(
                        confidence[chosen],
                        run.answers.clusters.at(chosen),
                        resamples=draw.resamples,
                        seed=draw.seed,
                        within=SHARE,
                    )
                    for condition in columns
                    for chosen in [known & run.under(condition)]
                ),
            )
        )
    title = "Mean confidence in the answers, by condition"
    return Table("confidence", title, columns, tuple(rows), (_CONFIDENCE, *notes), judges=(), chart="confidence")


def _calibration(runs: Sequence[_Run], draw: _Draw, notes: tuple[str, ...]) -> Table:
    rows: list[_ROW] = []
    for run in runs:
        for view in run.views():
            chosen = run.judged & run.under(view)
            confidence, right, clusters = run.of("answer")[chosen], run.right[chosen], run.answers.clusters.at(chosen)
            count = clusters.count
            if not count:
                continue
            error: Estimate = Estimate(None, n=len(clusters), reason=_too_few(count))
            chance: Cell = error
            if count >= MIN_CLUSTERS:
                error, by_chance = calibration_error_estimate(
                    confidence, right, clusters, bin_count(count), resamples=draw.resamples, seed=draw.seed
                )
                chance = Estimate(by_chance, n=len(clusters))
            cells = (
                len(clusters),
                _share(right, clusters),
                mean_estimate(confidence, clusters, resamples=draw.resamples, seed=draw.seed, within=SHARE),
                error,
                chance,
                brier_estimate(confidence, right, clusters, resamples=draw.resamples, seed=draw.seed),
                auroc_estimate(confidence, right, clusters),
            )
            rows.append((f"{run.label} / {view}", (*cells, *(_detection(run) if view == _ALL else (None, None)))))
    columns = (
        *("answers", "right", "confidence", "ECE", "ECE by chance", "Brier", "AUROC right"),
        *("AUROC doubt", "AUROC abstention"),
    )
    about = (
        _CONFIDENCE,
        "ECE: |share right - confidence|, averaged over bins with equally many answers; 0 is calibrated. By chance: what a "
        "calibrated model would show with these answers. Brier: squared difference of confidence and rightness; 0.25 for a coin.",
        "AUROC: how well a number tells two kinds of answers apart; 0.5 is chance. Right: confidence, right from wrong answers. "
        "Doubt (1 - confidence), abstention (its odds): conditions with a conflict from those without.",
    )
    return Table("calibration", "How far confidence can be trusted", columns, tuple(rows), (*about, *notes))


def _detection(run: _Run) -> tuple[Estimate, Estimate]:
    """Return how well doubt, and the odds of an abstention, tell conflicts from other conditions."""
    import numpy as np

    conflict, other = run.conflict
    areas = []
    for score in (-run.of("answer"), run.of("abstention")):
        chosen = (conflict | other) & ~np.isnan(score)
        if not (chosen & conflict).any() or not (chosen & other).any():
            areas.append(Estimate(None, n=int(chosen.sum()), reason="needs conditions with and without a conflict"))
        else:
            areas.append(
                auroc_estimate(score[chosen], conflict[chosen].astype(np.float64), run.answers.clusters.at(chosen))
            )
    return areas[0], areas[1]


def _reliability(runs: Sequence[_Run], notes: tuple[str, ...]) -> Table:
    rows: list[_ROW] = []
    for run in runs:
        confidence, right, clusters = run.confident()
        count = clusters.count
        if count < MIN_CLUSTERS:
            missing = Estimate(None, n=len(clusters), reason=f"{run.label}: {_too_few(count)}")
            rows.append((f"{run.label} / {_ALL}", (missing, missing, len(clusters))))
            continue
        for number, bin_ in enumerate(reliability(confidence, right, clusters, bin_count(count)), 1):
            rows.append((f"{run.label} / bin {number}", (Estimate(bin_.confidence, n=bin_.n), bin_.accuracy, bin_.n)))
    about = (
        "Bins of equally many answers, from the least confident ones; equal confidences share a bin. On the diagonal, confidence "
        "is the share of right answers; below it, the model is too sure.",
    )
    columns = ("confidence", "right", "answers")
    return Table(
        "reliability", "Right answers by confidence", columns, tuple(rows), (*about, *notes), chart="reliability"
    )


def _preference(runs: Sequence[_Run], draw: _Draw, notes: tuple[str, ...]) -> Table:
    import numpy as np

    behaviours = runs[0].benchmark.behaviours
    label_of = {
        source: label for source, words in _FOLLOWS.items() for label, what in behaviours.items() if what == words
    }
    rows: list[_ROW] = []
    for run in runs:
        preference = run.of("preference")
        known = ~np.isnan(preference)
        for condition in run.views()[1:]:
            chosen = known & run.under(condition)
            clusters = run.answers.clusters.at(chosen)
            reason = "the image's and the text's value are equal, or one is missing or without tokens"
            cells: list[Cell] = [
                mean_estimate(preference[chosen], clusters, resamples=draw.resamples, seed=draw.seed, reason=reason),
                _share((preference[chosen] > 0).astype(np.float64), clusters, reason),
            ]
            counted = run.labelled & run.under(condition)
            for label in label_of.values():
                cells.append(_share(run.has_label(label)[counted], run.answers.clusters.at(counted)))
            if chosen.any():
                rows.append((f"{run.label} / {condition}", (*cells, int(chosen.sum()))))
    columns = (
        *("log-odds, image : text", "prefers the image"),
        *(f"labelled {label}" for label in label_of.values()),
        "answers",
    )
    about = (
        "Log-odds: logprob of the image's value less that of the text's, in nats, after the answer's words before the "
        "value that it states, or as its beginning; above 0, the image's is likelier. Longer values are less likely. "
        "Conditions with equal values or one source have none.",
    )
    return Table(
        "preference", "Preference between image and text", columns, tuple(rows), (*about, *notes), chart="preference"
    )


def _selective(runs: Sequence[_Run], notes: tuple[str, ...]) -> Table:
    rows: list[_ROW] = []
    for run in runs:
        confidence, right, clusters = run.confident()
        count = clusters.count
        for risk in RISKS if count else ():
            threshold = conformal_threshold(confidence, 1 - right, clusters.own, risk)
            answered = confidence > threshold.above
            above = _threshold(threshold.above, len(clusters))
            if smallest_risk(count) > risk:
                above = Estimate(
                    None, n=len(clusters), reason=f"a risk of {risk:.0%} needs {round(1 / risk) - 1} clusters"
                )
            rows.append(
                (
                    f"{run.label} / at most {risk:.0%} wrong",
                    (
                        above,
                        _share(answered.astype(float), clusters),
                        _share((answered & (right == 0)).astype(float), clusters),
                        _share(right[answered], clusters.at(answered), "no answer is above the threshold"),
                    ),
                )
            )
    about = (
        "Answers are given above this confidence, and withheld below. For new examples like these, the expected share of "
        "questions that are answered wrongly is at most that of the row (conformal risk control, Angelopoulos et al. 2022); of "
        "the answered ones alone, more can be wrong. The shares are of the answers that the threshold was chosen by.",
    )
    columns = ("confidence above", "answered", "answered wrongly", "right of the answered")
    return Table("selective", "When to answer", columns, tuple(rows), (*about, *notes))


def _quantisation(pairs: Sequence[tuple[_Run, _Run]], draw: _Draw) -> Table:
    import numpy as np

    rows: list[_ROW] = []
    for more, less in pairs:
        for view in more.views():
            under = more.under(view)
            cells: list[Cell] = []
            for name in ("answer", "preference"):
                before, after = more.of(name), less.of(name)
                chosen = under & ~np.isnan(before) & ~np.isnan(after)
                clusters = more.answers.clusters.at(chosen)
                means = [
                    mean_estimate(values[chosen], clusters, resamples=draw.resamples, seed=draw.seed)
                    for values in ((before, after, after - before) if name == "answer" else (after - before,))
                ]
                cells += means
                if name == "answer":
                    cells.append(int(chosen.sum()))
            rows.append((f"{more.label} to {less.label} / {view}", tuple(cells)))
    columns = ("confidence before", "after", "change", "answers", "change of log-odds, image : text")
    about = ("Changes are of the same instances in both runs, with intervals of paired differences.",)
    return Table("quantisation", "Confidence with fewer bits", columns, tuple(rows), about, judges=())


def _threshold(confidence: float, n: int) -> Cell:
    """Return a threshold as a cell; close to 1, as its distance from there."""
    if confidence == -math.inf:
        return "any"
    return f"1 - {1 - confidence:.1e}" if confidence > _CLOSE_TO_ONE else Estimate(confidence, n=n)


def _same_instances(run: _Run, other: _Run) -> bool:
    """Return whether two runs have the same examples under the same conditions, in the same order."""
    import numpy as np

    conditions = run.benchmark.conditions
    first, second = (
        side.answers.codes(lambda kind: conditions.index(kind.condition)) if len(side.answers) else np.zeros(0)
        for side in (run, other)
    )
    return np.array_equal(run.answers.group, other.answers.group) and np.array_equal(first, second)


def _share(hits: Array, clusters: Clusters, reason: str = "no answers") -> Estimate:
    """Return a share of answers with the interval for answers that are correlated within clusters."""
    if not len(hits):
        return Estimate(None, reason=reason)
    return clusters.mean(hits)


def _too_few(clusters: int) -> str:
    return f"{clusters} clusters; a calibration curve needs {MIN_CLUSTERS}"
