"""Counts of answers by sample, strategy and task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.answers import AnswerKind, Answers, number_groups
from benchmarks.crosscheck_bench.constants import CONDITIONS
from benchmarks.crosscheck_bench.metrics import TASK_KEYS
from benchmarks.failure_table import OUTCOMES, OutcomeReader

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


def count_answers(
    answers: Answers, read: OutcomeReader, of: Callable[[AnswerKind], bool] = lambda kind: True
) -> CrossCheckCounts:
    """Return the counts of the answers ``of`` some kinds, as ``read`` judges them.

    Answers of an unknown task or condition are left out.
    """
    places = np.full((len(answers.kinds), 4), -1, dtype=np.int64)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    for number, (kind, size) in enumerate(zip(answers.kinds, answers.sizes.tolist(), strict=True)):
        if of(kind) and kind.condition in CONDITIONS and kind.strata.get("task") in TASK_KEYS:
            outcome, right = read(kind)
            condition = CONDITIONS.index(kind.condition)
            outcomes[condition, OUTCOMES.index(outcome)] += size
            is_counted = outcome in ("labelled", "unparsed")
            places[number] = condition, TASK_KEYS.index(kind.strata["task"]), is_counted, right and is_counted
    countable = (places[:, 0] >= 0)[answers.kind]
    samples, sample = number_groups(answers.group[countable])
    condition_of, task_of, counted, right_of = places[answers.kind[countable]].T
    counts = np.zeros((samples, len(CONDITIONS), len(TASK_KEYS), 2), dtype=np.int64)
    is_prompted = np.zeros(counts.shape[:-1], dtype=np.bool_)
    is_prompted[sample, condition_of, task_of] = True
    np.add.at(counts, (sample, condition_of, task_of), np.column_stack([right_of, counted]))
    return CrossCheckCounts(counts, is_prompted, outcomes)
