"""Results beside those of rules that look at no source: rows of the main table, gains, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.repeats import REPEAT
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, span
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.base import Benchmark

    Array = NDArray[np.float64]
    Tables = Callable[[Mapping[str, Answers]], list[Table]]

NAME = "without-looking"
BLIND, CHANCE = "without looking (ours)", "chance (ours)"
"""The rows of the best blind rule, and of guessing, which are computed here and are no paper's."""

_COLUMNS = ("answers", "right", "chance", "without looking", "gain over blind", "the best rule looks at")
_ROWS_NOTE = (
    f"{BLIND}: the best rule that looks at no source, fitted and chosen on other clusters. {CHANCE}: the expectation of "
    "guessing. Open questions count as wrong in both."
)
_GAINS_NOTE = (
    "Closed questions whose answers count. Without looking: the best rule that looks at no source, fitted and chosen on other "
    "clusters. Gain over blind: over that rule, or over guessing where that is better, paired by question; a model is shown to "
    "use its sources if the interval lies above 0."
)
_OTHER_READING = " (official)"
"""The end of the label of a row that reads the answers of another row in another way."""
_UNIT = 2.0**-30  # sums of so round numbers have no rounding errors


@dataclass(frozen=True, slots=True)
class Gain:
    """A run's right answers to closed questions beside those of the best blind rule, and of guessing.

    ``gain`` is over the better one of these two, paired by question.
    """

    right: Estimate
    blind: Estimate
    chance: float
    gain: Estimate

    def not_shown_sentence(self, label: str) -> str:
        """Return that the run ``label`` is not shown to use its sources; empty if its gain is significant."""
        if self.gain.low is not None and self.gain.low > 0:
            return ""
        rule, share = "the best rule that looks at no source", self.blind.value or 0.0
        if share < self.chance:
            rule, share = "guessing", self.chance
        value, low, high = (f"{100 * (end or 0.0):+.1f}" for end in (self.gain.value, self.gain.low, self.gain.high))
        interval = "all on one page" if self.gain.low is None else f"{span(low, high)} at 95%"
        return (
            f"{label} is not shown to use its sources: it is right on {self.right.value:.1%} of {self.gain.n:,} closed "
            f"questions, {rule} on {share:.1%} ({value} points; {interval})."
        )


def gain_over_blind(
    benchmark: Benchmark,
    answers: Answers,
    judge: str,
    *,
    task: int | None = None,
    conditions: Collection[str] | None = None,
) -> Gain | None:
    """Return a run's gain over rules that look at no source; None without a closed question that counts.

    It is over all tasks or one, and over all conditions in which an answer is right or wrong by itself, or some of them.
    """
    if answers.blind is None:
        return None
    counted = benchmark.counted_conditions
    counted = counted if conditions is None else counted.intersection(conditions)
    of_kind = [
        np.nan if kind.condition not in counted or (points := benchmark.counted_score(kind, judge)) is None else points
        for kind in answers.kinds
    ]
    scores = np.array(of_kind, dtype=np.float64)[answers.kind]
    counts = ~np.isnan(scores) & ~np.isnan(answers.blind.blind)
    if task is not None:
        counts &= answers.blind.task == task
    if not counts.any():
        return None
    clusters, right = answers.clusters.at(counts), scores[counts]
    blind, chance = answers.blind.blind[counts], answers.blind.chance[counts]
    difference = clusters.difference(right - (chance if blind.sum() < chance.sum() else blind))
    assert difference is not None
    return Gain(clusters.mean(right), clusters.mean(blind), float(chance.mean()), difference.estimate)


def without_looking_table(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str) -> Table | None:
    """Return each run beside guessing and the best blind rule, over all tasks and by task; None without closed questions."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        if (gain := gain_over_blind(benchmark, answers, judge)) is None:
            continue
        assert answers.blind is not None
        tasks = [(place, *task) for place, task in enumerate(answers.blind.tasks)]
        by_task = [
            (f"{run} / {name}", gain_of_task, looks_at)
            for place, name, looks_at in tasks
            if (gain_of_task := gain_over_blind(benchmark, answers, judge, task=place)) is not None
        ]
        looks_at = by_task[0][2] if len(by_task) == 1 else ""
        for label, of, rule in ((run, gain, looks_at), *(by_task if len(by_task) > 1 else ())):
            chance = Estimate(of.chance, n=of.gain.n)
            rows.append((label, (of.gain.n, of.right, chance, of.blind, of.gain, rule)))
    title = "Beside rules that look at no source"
    return Table(NAME, title, _COLUMNS, tuple(rows), (_GAINS_NOTE, INTERVALS)) if rows else None


def not_shown(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str) -> list[str]:
    """Return a sentence on each run that is not shown to use its sources."""
    gains = ((run, gain_over_blind(benchmark, answers, judge)) for run, answers in runs.items())
    return [sentence for run, gain in gains if gain is not None and (sentence := gain.not_shown_sentence(run))]


def with_blind_rows(
    main: Table, benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, tables: Tables
) -> Table:
    """Return the main table with rows of the best blind rule and of guessing, where it has closed questions.

    They are what ``tables``, the benchmark's own, make of answers that are right as often as these rules. A cell that depends on
    which wrong answer they give is n/a. Runs with the same questions share their rows.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    by_questions: dict[Hashable, str] = {}
    for run, answers in runs.items():
        if answers.blind is not None:
            by_questions.setdefault(_questions(answers), run)
    for run in by_questions.values():
        answers, suffix = runs[run], "" if len(by_questions) == 1 else f", {run}"
        assert answers.blind is not None
        for name, share in ((BLIND, answers.blind.blind), (CHANCE, answers.blind.chance)):
            rows += _rows_of(f"{name}{suffix}", benchmark, answers, share, judge, tables, exact=name == CHANCE)
    return replace(main, rows=(*main.rows, *rows), notes=(*main.notes, _ROWS_NOTE)) if rows else main


def _questions(answers: Answers) -> Hashable:
    """Return what runs with the same closed questions have in common."""
    blind = answers.blind
    assert blind is not None
    return len(answers), blind.blind.tobytes(), blind.chance.tobytes(), blind.task.tobytes()


def _rows_of(
    name: str, benchmark: Benchmark, answers: Answers, share: Array, judge: str, tables: Tables, *, exact: bool
) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Yield the rows of the main table for answers that are right in a ``share`` of cases, shape (records,).

    ``exact`` shares are known, and have no intervals.
    """
    first, *others = [dict(tables({name: part})[0].rows) for part in _answered(benchmark, answers, share, judge)] or [
        {}
    ]
    for label, cells in first.items():
        if label.endswith(_OTHER_READING) and label.removesuffix(_OTHER_READING) in first:
            continue
        alternatives = [rows.get(label, cells) for rows in others]
        row = [_settled(cell, same) for cell, *same in zip(cells, *alternatives, strict=True)]
        if any(cell.value is not None for cell in row):
            yield label, tuple(replace(cell, low=None, high=None, sd=None) if exact else cell for cell in row)


def _settled(cell: Cell, others: Sequence[Cell]) -> Estimate:
    """Return a cell that is the same whichever wrong answer is given; else n/a."""
    if not isinstance(cell, Estimate):
        return Estimate(None, reason="it is no share")
    if any(not isinstance(other, Estimate) or other.value != cell.value for other in others):
        return Estimate(None, n=round(cell.n), reason="it depends on which wrong answer is given")
    return replace(cell, n=round(cell.n), missing=0)


def _answered(benchmark: Benchmark, answers: Answers, share: Array, judge: str) -> Iterator[Answers]:
    """Yield answers that are right in a ``share`` of cases, once with each label that a wrong one can have.

    A record counts as a right answer and as a wrong one, each with its weight; a rule answers it once, however often it is
    repeated. Conditions without a closed question are left out.
    """

    def is_asked(kind: AnswerKind) -> bool:
        return kind.condition in usable and kind.strata.get(REPEAT, "1") == "1"

    asked = {answers.kinds[kind].condition for kind in np.unique(answers.kind[~np.isnan(share)])}
    labels = {condition: _right_and_wrong(benchmark, condition) for condition in asked & benchmark.counted_conditions}
    usable = {condition for condition, of in labels.items() if all(of)}
    assert answers.blind is not None
    positions = np.flatnonzero(answers.mask(is_asked) & (answers.blind.task >= -1))  # else it is not audited
    part, right = answers.at(positions), np.round(np.nan_to_num(share[positions]) / _UNIT) * _UNIT
    twice = part.at(np.tile(np.arange(len(positions)), 2))
    twice = replace(twice, clusters=Clusters.of(twice.clusters.own, twice.clusters.shown), quality=None, blind=None)
    for number in range(max((len(labels[condition][1]) for condition in usable), default=0)):

        def labelled(kind: AnswerKind, place: int, number: int = number) -> AnswerKind:
            if kind.condition not in usable:
                return kind
            names = labels[kind.condition][place]
            return benchmark.with_label(kind, judge, names[min(number, len(names) - 1)])

        kinds = [labelled(kind, place) for place in (0, 1) for kind in part.kinds]
        kind = np.concatenate([part.kind, part.kind + len(part.kinds)]).astype(np.int32)
        weight = np.concatenate([right, 1 - right])
        answered = replace(twice, kinds=kinds, kind=kind, weight=weight, confidence=None)
        yield answered.at(np.flatnonzero(weight))


def _right_and_wrong(benchmark: Benchmark, condition: str) -> tuple[list[str], list[str]]:
    """Return the labels of right and of wrong answers under a condition."""
    right, wrong = ([label for label in benchmark.labels if benchmark.score(condition, label) == x] for x in (1, 0))
    return right, wrong
