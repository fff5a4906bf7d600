"""Results beside those of rules that look at no source: rows of the main table, gains, and what they say of a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers
from benchmarks.protocols.repeats import REPEAT
from benchmarks.stats.clusters import Clusters
from benchmarks.stats.intervals import INTERVALS, difference_estimate, effective_size, span, student_cdf
from benchmarks.stats.paired_tests import difference_p, holm, paired_p
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
_ROW_NOTES = {
    BLIND: "the best rule that looks at no source, fitted and chosen on other clusters.",
    CHANCE: "the expectation of guessing.",
}
_GAINS_NOTE = (
    "Closed questions whose answers count. Without looking: the best rule that looks at no source, fitted and chosen on other "
    "clusters. Gain over blind: over that rule, paired by question, or over guessing where that is better; a model is shown to "
    "use its sources if the interval lies above 0. Open questions are not judged here."
)
_OTHER_READING = " (official)"
"""The end of the label of a row that reads the answers of another row in another way."""
_LEVEL = 0.05
_UNIT = 2.0**-30  # sums of so round numbers have no rounding errors


@dataclass(frozen=True, slots=True)
class Gain:
    """A run's right answers to closed questions beside those of the best blind rule, and of guessing.

    Attributes:
        gain: What it has over the better one of these two: paired by question over a rule, and over guessing less a known share.
        p: The two-sided p of no gain.
        silent: The number of answers that choose no option, of ``answers`` in all.
        by_task: Of the gain over all tasks, that of each task by name.
    """

    right: Estimate
    blind: Estimate
    chance: float
    gain: Estimate
    p: float
    silent: int
    answers: int
    by_task: Mapping[str, Gain] = field(default_factory=dict)

    @property
    def shown_in(self) -> list[str]:
        """The tasks in which a gain is significant, by Holm's correction for the number of tasks."""
        corrected = holm([gain.p for gain in self.by_task.values()])
        tests = zip(self.by_task.items(), corrected, strict=True)
        return [task for (task, gain), p in tests if p is not None and p <= _LEVEL and (gain.gain.value or 0) > 0]

    def doubt(self, label: str) -> str:
        """Return that the run ``label`` is not shown to use its sources, or only in some tasks; empty if it is."""
        if self.gain.low is not None and self.gain.low > 0:
            return ""
        value, low, high = (f"{100 * (end or 0.0):+.1f}" for end in (self.gain.value, self.gain.low, self.gain.high))
        interval = "all on one page" if self.gain.low is None else f"{span(low, high)} at 95%"
        points = f"{value} points; {interval}"
        if tasks := self.shown_in:
            return (
                f"{label} is shown to use its sources only in {', '.join(tasks)}, not over all its {self.gain.n:,} closed "
                f"questions ({points})."
            )
        if 2 * self.silent > self.answers:
            return (
                f"{label} chooses an option in {self.answers - self.silent:,} of {self.answers:,} answers to closed questions: "
                "too few to tell whether it uses its sources."
            )
        rule, share = "the best rule that looks at no source", self.blind.value or 0.0
        if share <= self.chance:
            rule, share = "guessing", self.chance
        is_below = self.right.high is not None and self.right.high < self.chance
        below = ", which is below guessing" if is_below else ""
        silent = f" {self.silent:,} of {self.answers:,} answers choose no option." if self.silent else ""
        return (
            f"{label} is not shown to use its sources on its {self.gain.n:,} closed questions: it is right on "
            f"{self.right.value:.1%}{below}, {rule} on {share:.1%} ({points}).{silent}"
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
    scores = answers.scores(lambda kind: benchmark.counted_score(kind, judge) if kind.condition in counted else None)
    closed = ~np.isnan(answers.blind.blind)
    if task is not None:
        closed &= answers.blind.task == task
    counts = closed & ~np.isnan(scores)
    if not counts.any():
        return None
    clusters, right = answers.clusters.at(counts), scores[counts]
    blind, chance = answers.blind.blind[counts], answers.blind.chance[counts]
    gain, p = (
        _over_rule(clusters, right - blind) if blind.sum() > chance.sum() else _over_chance(clusters, right, chance)
    )
    silent = closed & answers.mask(lambda kind: kind.condition in counted and benchmark.chooses_none(kind, judge))
    by_task: dict[str, Gain] = {}
    for place, (name, _) in enumerate(answers.blind.tasks if task is None else ()):
        of_task = gain_over_blind(benchmark, answers, judge, task=place, conditions=conditions)
        by_task |= {} if of_task is None else {name: of_task}
    return Gain(
        right=clusters.mean(right),
        blind=clusters.mean(blind),
        chance=float(chance.mean()),
        gain=gain,
        p=p,
        silent=int(silent.sum()),
        answers=int((counts | silent).sum()),
        by_task=by_task,
    )


def _over_chance(clusters: Clusters, right: Array, chance: Array) -> tuple[Estimate, float]:
    """Return the share of right answers less that of guessing, which is known, and the two-sided p of no difference.

    The interval is that of the share, Wilson's over clusters; p inverts it.
    """
    share, known = clusters.mean(right), float(chance.mean())
    assert share.value is not None
    value = share.value - known
    if share.low is None or share.high is None:
        return Estimate(value, n=share.n), 1.0
    sizes = clusters.sums(np.ones(len(right)))
    deviations = clusters.sums(right) - share.value * sizes
    variance = float((deviations**2).sum()) / len(right) ** 2
    size = effective_size(share.value, variance, clusters.own_count, len(right))
    t = abs(value) / np.sqrt(known * (1 - known) / size)
    return Estimate(value, share.low - known, share.high - known, share.n), 2 * (
        1 - student_cdf(t, clusters.own_count - 1)
    )


def _over_rule(clusters: Clusters, lead: Array) -> tuple[Estimate, float]:
    """Return the mean of paired differences with its interval, and the two-sided p of none.

    Where the rule has shares of an answer, since it does not choose, the interval is by the differences' own variance.
    """
    sums = clusters.sums(lead)
    if np.array_equal(lead, np.rint(lead)):
        difference = clusters.difference(lead)
        assert difference is not None
        return difference.estimate, paired_p(sums, difference)
    value, count = float(lead.mean()), clusters.own_count
    variance = float(((sums - value * clusters.sums(np.ones(len(lead)))) ** 2).sum()) / len(lead) ** 2
    return difference_estimate(value, variance, count, len(lead)), difference_p(value, variance, count, sums)


def without_looking_table(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str) -> Table | None:
    """Return each run beside guessing and the best blind rule, over all tasks and by task; None without closed questions."""
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for run, answers in runs.items():
        if (gain := gain_over_blind(benchmark, answers, judge)) is None:
            continue
        assert answers.blind is not None
        rules = dict(answers.blind.tasks)
        by_task = [(f"{run} / {name}", of_task, rules[name]) for name, of_task in gain.by_task.items()]
        looks_at = by_task[0][2] if len(by_task) == 1 else ""
        for label, of, rule in ((run, gain, looks_at), *(by_task if len(by_task) > 1 else ())):
            chance = Estimate(of.chance, n=of.gain.n)
            rows.append((label, (of.gain.n, of.right, chance, of.blind, of.gain, rule)))
    title = "Beside rules that look at no source"
    return Table(NAME, title, _COLUMNS, tuple(rows), (_GAINS_NOTE, INTERVALS)) if rows else None


def not_shown(benchmark: Benchmark, runs: Mapping[str, Answers], judge: str) -> list[str]:
    """Return a sentence on each run that is not shown to use its sources, or only in some tasks."""
    gains = ((run, gain_over_blind(benchmark, answers, judge)) for run, answers in runs.items())
    return [sentence for run, gain in gains if gain is not None and (sentence := gain.doubt(run))]


def with_blind_rows(
    main: Table, benchmark: Benchmark, runs: Mapping[str, Answers], judge: str, tables: Tables
) -> Table:
    """Return the main table with rows of the best blind rule and of guessing, where it has closed questions.

    They are what ``tables``, the benchmark's own, make of answers that are right as often as these rules. A cell that depends on
    which wrong answer they give is n/a. The best rule has no row where its task has conditions with different right answers,
    which a column of one condition is only a part of. Runs with the same questions share their rows.
    """
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    by_questions: dict[Hashable, str] = {}
    for run, answers in runs.items():
        if answers.blind is not None:
            by_questions.setdefault(_questions(answers), run)
    for run in by_questions.values():
        parted = parted_conditions(benchmark, runs[run])
        answers, suffix = runs[run], "" if len(by_questions) == 1 else f", {run}"
        assert answers.blind is not None
        is_parted = answers.mask(lambda kind: kind.condition in parted)  # noqa: B023
        for name, share in ((BLIND, np.where(is_parted, np.nan, answers.blind.blind)), (CHANCE, answers.blind.chance)):
            rows += _rows_of(f"{name}{suffix}", benchmark, answers, share, judge, tables, exact=name == CHANCE)
    notes = [f"{name}: {note}" for name, note in _ROW_NOTES.items() if any(label.startswith(name) for label, _ in rows)]
    note = " ".join([*notes, "Open questions count as wrong."])
    return replace(main, rows=(*main.rows, *rows), notes=(*main.notes, note)) if rows else main


def parted_conditions(benchmark: Benchmark, answers: Answers) -> frozenset[str]:
    """Return the conditions that share a task with others whose right answers have another label.

    A rule that always gives one of these labels is right on all of one condition, which says nothing of the task.
    """
    assert answers.blind is not None
    of_task: dict[int, set[str]] = {}
    for kind, task in np.unique(np.stack([answers.kind, answers.blind.task]), axis=1).T.tolist():
        if task >= 0 and (condition := answers.kinds[kind].condition) in benchmark.counted_conditions:
            of_task.setdefault(task, set()).add(condition)
    return frozenset(
        condition
        for conditions in of_task.values()
        if len({tuple(_right_and_wrong(benchmark, name)[0]) for name in conditions}) > 1
        for condition in conditions
    )


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
