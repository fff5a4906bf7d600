"""Building blocks of the tables: a run's labels by judge, and a table while it is filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import Answers
from benchmarks.clash.constants import CONDITIONS
from benchmarks.clash.counts import ClashCounts, counts_per_example, instance_arrays, tally
from benchmarks.clash.metrics import LabelRate
from benchmarks.failure_table import OUTCOMES
from benchmarks.stats.intervals import estimate, resample
from benchmarks.vocabulary import Cell, Estimate, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_LEFT_OUT = {
    "undecided": "undecided by the judge",
    "judge-failed": "not labelled by the judge",
    "error": "in error",
    "pending": "pending",
}


class TableRun:
    """The answers of one run, and their labels by judge."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.instances = instance_arrays(answers)
        self.judged: dict[str, set[str]] = {}
        """The conditions in which each judge, by its id, has seen an answer."""
        for kind in answers.kinds:
            for judge in kind.verdicts:
                self.judged.setdefault(judge, set()).add(kind.condition)
        self._tallies: dict[str, ClashCounts] = {}

    def labels_by(self, judge: str) -> ClashCounts:
        """Return the labels of ``judge``."""
        if judge not in self._tallies:
            self._tallies[judge] = tally(self.answers, self.instances, judge)
        return self._tallies[judge]

    def newest_version(self, name: str) -> str:
        """Return the newest version of judge ``name`` that has labels; ``name`` if there is none."""
        ids = [judge for judge in self.judged if judge.rpartition("@")[0] == name]
        return max(ids, key=lambda judge: (len(judge), judge), default=name)

    def select_judge(self, judge: str, *conditions: str) -> str:
        """Return the judge to use for these conditions: ``judge``, or ``strict`` if only that one has labels there."""
        strict_judge = self.newest_version("strict")
        return (
            strict_judge
            if self._has_labels(strict_judge, conditions) and not self._has_labels(judge, conditions)
            else judge
        )

    def select(self, *conditions: str, spatial: bool = False) -> Mask:
        """Return a mask of the records under these conditions, spatial or not; shape (records,)."""
        of_kind: Mask = (self.instances.change == "spatial") == spatial
        return of_kind & np.isin(self.instances.condition, [CONDITIONS.index(condition) for condition in conditions])

    def _has_labels(self, judge: str, conditions: Iterable[str]) -> bool:
        return not self.judged.get(judge, set()).isdisjoint(conditions)


class TableBuilder:
    """A table under construction; tracks the answers and judges behind its rows for the notes.

    ``judge`` is the requested judge.
    """

    def __init__(self, judge: str, resamples: int, seed: int) -> None:
        self.rows: list[tuple[str, tuple[Cell, ...]]] = []
        self._judge = judge
        self._resamples = resamples
        self._seed = seed
        self._used: dict[int, tuple[ClashCounts, Mask]] = {}
        self._others: dict[str, str] = {}

    def add(
        self, label: str, counts: ClashCounts, where: Mask, columns: Iterable[LabelRate], flags: Mask | None = None
    ) -> tuple[Estimate, ...]:
        """Add a row of metrics over the answers in ``where``; ``flags`` override those of the counts."""
        cells = self.cells(counts, where, columns, flags)
        self.rows.append((label, cells))
        return cells

    def cells(
        self, counts: ClashCounts, where: Mask, columns: Iterable[LabelRate], flags: Mask | None = None
    ) -> tuple[Estimate, ...]:
        """Return the metrics of :meth:`add`, with bootstrap deviation and 95% interval over samples."""
        used_counts = self._used.setdefault(id(counts), (counts, np.zeros_like(where)))[1]
        used_counts |= where
        instances, selected = counts.instances, where & counts.counted
        answered_mask = np.ones((int(selected.sum()), 1), dtype=np.bool_)
        marks = np.hstack([(counts.flags if flags is None else flags)[selected], answered_mask])
        per_example = counts_per_example(instances.example[selected], instances.condition[selected], marks)
        totals, draws = per_example.sum(0).astype(np.float64), resample(per_example, self._resamples, self._seed)
        conditions = {CONDITIONS[i] for i in set(instances.condition[where].tolist())}
        return tuple(_estimate(rate, totals, draws, _why_undefined(rate, conditions, counts.judge)) for rate in columns)

    def judge_labels(self, label: str, run: TableRun, judge: str) -> ClashCounts:
        """Return the labels of ``judge`` for the run ``label``, and note a judge other than the requested one."""
        if judge != self._judge:
            self._others[label] = judge
        return run.labels_by(judge)

    def table(self, name: str, title: str, columns: Iterable[str], *notes: str) -> Table:
        """Return the finished table, in percent, with its notes."""
        all_notes = [*self._spread(), *notes, *self._labels(), *self._missing()]
        return Table(
            name, title, tuple(columns), tuple(self.rows), tuple(all_notes), percent=True, judges=self._judges()
        )

    def _judges(self) -> tuple[str, ...] | None:
        """Return the judges behind the rows; None if that is the requested judge."""
        judges = tuple(dict.fromkeys(judges.judge for judges, _ in self._used.values()))
        return None if set(judges) <= {self._judge} else judges

    def _spread(self) -> list[str]:
        cells = [cell for _, cells in self.rows for cell in cells if isinstance(cell, Estimate)]
        notes = []
        if any(cell.sd is not None for cell in cells):
            notes.append(f"±: standard deviation over {self._resamples:,} bootstrap resamples of the samples.")
        if any(cell.sd == 0 for cell in cells):
            notes.append("A deviation of 0 means that all answers agree, not that the metric is certain.")
        return notes

    def _labels(self) -> list[str]:
        """Return notes on rows by a judge other than the requested one, unless all rows are by it."""
        if len(self._judges() or ()) < 2:
            return []
        by_judge: dict[str, list[str]] = {}
        for run, judge in self._others.items():
            by_judge.setdefault(judge, []).append(run)
        return [other_judge_note(judge, of) for judge, of in by_judge.items()]

    def _missing(self) -> list[str]:
        by_judge: dict[str, Counter[str]] = {}
        for counts, where in self._used.values():
            missing_counts = by_judge.setdefault(counts.judge, Counter())
            for outcome, n in zip(OUTCOMES, np.bincount(counts.outcome[where], minlength=len(OUTCOMES)), strict=True):
                missing_counts[outcome] += int(n)
        notes = []
        for judge, missing_counts in by_judge.items():
            author = f" by {judge}" if len(by_judge) > 1 else ""
            if missing_counts["unparsed"]:
                notes.append(
                    f"Counted as Incorrect{author}, as in the paper: empty answers ({missing_counts['unparsed']:,})."
                )
            if any(missing_counts[outcome] for outcome in _LEFT_OUT):
                parts = (
                    f"{words} ({missing_counts[outcome]:,})"
                    for outcome, words in _LEFT_OUT.items()
                    if missing_counts[outcome]
                )
                notes.append(f"Left out{author}: {', '.join(parts)}.")
        return notes


def other_judge_note(judge: str, rows: Iterable[str]) -> str:
    """Return the note that ``rows`` use the labels of ``judge`` instead of the requested judge."""
    return f"Labelled by {judge}: {', '.join(rows)}."


def _estimate(rate: LabelRate, totals: NDArray[np.float64], draws: NDArray[np.float64], reason: str) -> Estimate:
    value, replicates = rate(totals[:, :-1], totals[:, -1]), rate(draws[..., :-1], draws[..., -1])
    n = sum(int(totals[CONDITIONS.index(condition), -1]) for condition in rate.conditions)
    result = estimate(float(value), replicates, n, reason=reason)
    return result if result.low is None else replace(result, sd=float(np.nanstd(replicates)))


def _why_undefined(rate: LabelRate, asked_of: set[str], judge: str) -> str:
    missing = [condition for condition in rate.conditions if condition not in asked_of]
    if missing:
        return f"nothing was asked under {', '.join(missing)}"
    return f"{judge} has labelled no answer under {' or '.join(rate.conditions)}"
