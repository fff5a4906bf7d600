"""What the tables are made with: a run's answers by judge, and a table while it is filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Cell, Estimate, Record, Table
from benchmarks.clash.constants import CONDITIONS
from benchmarks.clash.counts import ClashCounts, asked, per_example, tally
from benchmarks.clash.metrics import LabelRate
from benchmarks.failure_table import OUTCOMES
from benchmarks.stats.intervals import estimate, resample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_LEFT_OUT = {"judge-failed": "not labelled by the judge", "error": "in error", "pending": "pending"}


class TableRun:
    """The records of one run, and what each judge says of them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.asked = asked(records)
        self.judged: dict[str, set[str]] = {}
        """The conditions of which each judge, by its id, has looked at an answer."""
        for record in records:
            for judge in record.verdicts:
                self.judged.setdefault(judge, set()).add(record.instance.condition)
        self._tallies: dict[str, ClashCounts] = {}

    @cached_property
    def answered(self) -> Mask:
        """Which records have an answer; shape (records,)."""
        return np.array([r.answer is not None and r.answer.finish_reason != "error" for r in self.records], np.bool_)

    @cached_property
    def cut(self) -> Mask:
        """Which answers ended at the token limit; shape (records,)."""
        return np.array([r.answer is not None and r.answer.finish_reason == "length" for r in self.records], np.bool_)

    def by(self, judge: str) -> ClashCounts:
        """What ``judge`` says."""
        if judge not in self._tallies:
            self._tallies[judge] = tally(self.records, self.asked, judge)
        return self._tallies[judge]

    def newest(self, name: str) -> str:
        """The id of the newest version of the judge called ``name`` that has labelled; the name if none has."""
        ids = [judge for judge in self.judged if judge.rpartition("@")[0] == name]
        return max(ids, key=lambda judge: (len(judge), judge), default=name)

    def whose(self, judge: str, *conditions: str) -> str:
        """The judge whose labels stand for these conditions: ``judge``, or ``strict`` where it has looked at none of them."""
        strict = self.newest("strict")
        return strict if self._looked(strict, conditions) and not self._looked(judge, conditions) else judge

    def under(self, *conditions: str, spatial: bool = False) -> Mask:
        """Which records are under one of these conditions: the spatial conflicts, or all others; shape (records,)."""
        of_kind: Mask = (self.asked.change == "spatial") == spatial
        return of_kind & np.isin(self.asked.condition, [CONDITIONS.index(condition) for condition in conditions])

    def _looked(self, judge: str, conditions: Iterable[str]) -> bool:
        return not self.judged.get(judge, set()).isdisjoint(conditions)


class TableData:
    """A table while it is filled; it remembers which answers its rows rest on, and whose labels, for the notes.

    ``judge`` is the one that is asked for.
    """

    def __init__(self, judge: str, resamples: int, seed: int) -> None:
        self.rows: list[tuple[str, tuple[Cell, ...]]] = []
        self._judge = judge
        self._resamples = resamples
        self._seed = seed
        self._used: dict[int, tuple[ClashCounts, Mask]] = {}
        self._others: dict[str, str] = {}

    def add(
        self, label: str, found: ClashCounts, where: Mask, columns: Iterable[LabelRate], flags: Mask | None = None
    ) -> tuple[Estimate, ...]:
        """A row of figures over the answers in ``where``; ``flags`` of shape (records, labels) are others than found's."""
        cells = self.cells(found, where, columns, flags)
        self.rows.append((label, cells))
        return cells

    def cells(
        self, found: ClashCounts, where: Mask, columns: Iterable[LabelRate], flags: Mask | None = None
    ) -> tuple[Estimate, ...]:
        """The figures of :meth:`add`, each with its bootstrap deviation and 95% interval over samples."""
        used = self._used.setdefault(id(found), (found, np.zeros_like(where)))[1]
        used |= where
        of, kept = found.asked, where & found.counted
        answered = np.ones((int(kept.sum()), 1), dtype=np.bool_)
        marks = np.hstack([(found.flags if flags is None else flags)[kept], answered])
        counts = per_example(of.example[kept], of.condition[kept], marks)
        totals, draws = counts.sum(0).astype(np.float64), resample(counts, self._resamples, self._seed)
        asked_of = {CONDITIONS[i] for i in set(of.condition[where].tolist())}
        return tuple(_estimate(rate, totals, draws, _why_undefined(rate, asked_of, found.judge)) for rate in columns)

    def labelled(self, label: str, run: TableRun, judge: str) -> ClashCounts:
        """What ``judge`` says of the run called ``label``; the notes tell whose rows rest on another than the others."""
        if judge != self._judge:
            self._others[label] = judge
        return run.by(judge)

    def table(self, name: str, title: str, columns: Iterable[str], *notes: str) -> Table:
        """What was filled in, its figures shown in percent, with what its notes must tell."""
        told = [*self._spread(), *notes, *self._labels(), *self._missing()]
        return Table(name, title, tuple(columns), tuple(self.rows), tuple(told), percent=True, judges=self._judges())

    def _judges(self) -> tuple[str, ...] | None:
        """Those that a row rests on; None where that is the one asked for."""
        found = tuple(dict.fromkeys(found.judge for found, _ in self._used.values()))
        return None if set(found) <= {self._judge} else found

    def _spread(self) -> list[str]:
        cells = [cell for _, cells in self.rows for cell in cells if isinstance(cell, Estimate)]
        told = []
        if any(cell.sd is not None for cell in cells):
            told.append(f"±: standard deviation over {self._resamples:,} bootstrap resamples of the samples.")
        if any(cell.sd == 0 for cell in cells):
            told.append("A deviation of 0 means that all answers agree, not that the figure is certain.")
        return told

    def _labels(self) -> list[str]:
        """Which rows rest on another judge than the one asked for, where not all of them do: ``judges`` tells that."""
        if len(self._judges() or ()) < 2:
            return []
        by_judge: dict[str, list[str]] = {}
        for run, judge in self._others.items():
            by_judge.setdefault(judge, []).append(run)
        return [instead(judge, of) for judge, of in by_judge.items()]

    def _missing(self) -> list[str]:
        lost: dict[str, Counter[str]] = {}
        for found, where in self._used.values():
            counted = lost.setdefault(found.judge, Counter())
            for outcome, n in zip(OUTCOMES, np.bincount(found.outcome[where], minlength=len(OUTCOMES)), strict=True):
                counted[outcome] += int(n)
        notes = []
        for judge, counted in lost.items():
            whose = f" by {judge}" if len(lost) > 1 else ""
            if counted["unparsed"]:
                notes.append(f"Counted as Incorrect{whose}, as in the paper: empty answers ({counted['unparsed']:,}).")
            if any(counted[outcome] for outcome in _LEFT_OUT):
                each = (f"{words} ({counted[outcome]:,})" for outcome, words in _LEFT_OUT.items() if counted[outcome])
                notes.append(f"Left out{whose}: {', '.join(each)}.")
        return notes


def instead(judge: str, rows: Iterable[str]) -> str:
    """The note that ``rows`` rest on the labels of ``judge``, which is not the one that was asked for."""
    return f"Labelled by {judge}: {', '.join(rows)}."


def _estimate(rate: LabelRate, totals: NDArray[np.float64], draws: NDArray[np.float64], reason: str) -> Estimate:
    value, replicates = rate(totals[:, :-1], totals[:, -1]), rate(draws[..., :-1], draws[..., -1])
    n = sum(int(totals[CONDITIONS.index(condition), -1]) for condition in rate.conditions)
    made = estimate(float(value), replicates, n, reason=reason)
    return made if made.low is None else replace(made, sd=float(np.nanstd(replicates)))


def _why_undefined(rate: LabelRate, asked_of: set[str], judge: str) -> str:
    missing = [condition for condition in rate.conditions if condition not in asked_of]
    if missing:
        return f"nothing was asked under {', '.join(missing)}"
    return f"{judge} has labelled no answer under {' or '.join(rate.conditions)}"
