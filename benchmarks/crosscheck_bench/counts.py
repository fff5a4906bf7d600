"""Counts of answers by sample, strategy and task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.crosscheck_bench.constants import CONDITIONS
from benchmarks.crosscheck_bench.metrics import TASK_KEYS
from benchmarks.failure_table import OUTCOMES, OutcomeReader
from benchmarks.vocabulary import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CrossCheckCounts:
    """The counts of one run under one judge.

    ``counts`` has shape (samples, conditions, tasks, 2): correct answers, and all answers. Labelled and unparsed
    answers are counted; an unparsed one (empty, or nothing but reasoning) is not correct. ``present``, shape (samples,
    conditions, tasks), marks the questions that are part of the run. ``outcomes`` counts the records by
    ``failure_table.OUTCOMES``, shape (conditions, outcomes).
    """

    counts: NDArray[np.int64]
    present: NDArray[np.bool_]
    outcomes: NDArray[np.int64]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions under which the run has any question."""
        return tuple(name for i, name in enumerate(CONDITIONS) if self.present[:, i].any())

    def complete(self) -> NDArray[np.bool_]:
        """Return a mask of the samples with a counted answer under every condition of the run; shape (samples,)."""
        conditions = [CONDITIONS.index(name) for name in self.conditions]
        complete: NDArray[np.bool_] = (self.counts[..., 1][:, conditions].sum(-1) > 0).all(-1)
        return complete


def count_answers(records: Sequence[Record], read: OutcomeReader) -> CrossCheckCounts:
    """Return the counts of ``records`` as ``read`` judges them; records of an unknown task or condition are left out."""
    countable = [
        r for r in records if r.instance.condition in CONDITIONS and r.instance.strata.get("task") in TASK_KEYS
    ]
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in countable))}
    counts = np.zeros((len(groups), len(CONDITIONS), len(TASK_KEYS), 2), dtype=np.int64)
    is_prompted = np.zeros(counts.shape[:-1], dtype=np.bool_)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    for record in countable:
        condition = CONDITIONS.index(record.instance.condition)
        place = groups[record.instance.group], condition, TASK_KEYS.index(record.instance.strata["task"])
        is_prompted[place] = True
        outcome, right = read(record)
        outcomes[condition, OUTCOMES.index(outcome)] += 1
        if outcome in ("labelled", "unparsed"):
            counts[place] += (right, 1)
    return CrossCheckCounts(counts, is_prompted, outcomes)
