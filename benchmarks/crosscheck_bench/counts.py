"""Records counted: what was asked under which strategy and task, and whether the answer is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.base import Record
from benchmarks.crosscheck_bench.constants import CONDITIONS
from benchmarks.crosscheck_bench.metrics import KEYS
from benchmarks.failure_table import OUTCOMES, Read

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CrossCheckCounts:
    """One run as it is read.

    ``counts`` has shape (samples, conditions, tasks, 2): answers that are right, and answers. Labelled and unparsed answers
    are counted, an unparsed one (empty, or nothing but reasoning) as not right. ``asked`` is which questions there are, of
    shape (samples, conditions, tasks). ``outcomes`` counts the records by ``failures.OUTCOMES``, shape (conditions, outcomes).
    """

    counts: NDArray[np.int64]
    asked: NDArray[np.bool_]
    outcomes: NDArray[np.int64]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Those that anything was asked under."""
        return tuple(name for i, name in enumerate(CONDITIONS) if self.asked[:, i].any())

    def complete(self) -> NDArray[np.bool_]:
        """Which samples have an answer that is counted under every one of the run's conditions; shape (samples,)."""
        under = [CONDITIONS.index(name) for name in self.conditions]
        whole: NDArray[np.bool_] = (self.counts[..., 1][:, under].sum(-1) > 0).all(-1)
        return whole


def tally(records: Sequence[Record], read: Read) -> CrossCheckCounts:
    """``records`` counted by ``read``; those of an unknown task or condition are left out."""
    known = [r for r in records if r.instance.condition in CONDITIONS and r.instance.strata.get("task") in KEYS]
    groups = {group: i for i, group in enumerate(dict.fromkeys(record.instance.group for record in known))}
    counts = np.zeros((len(groups), len(CONDITIONS), len(KEYS), 2), dtype=np.int64)
    asked = np.zeros(counts.shape[:-1], dtype=np.bool_)
    outcomes = np.zeros((len(CONDITIONS), len(OUTCOMES)), dtype=np.int64)
    for record in known:
        condition = CONDITIONS.index(record.instance.condition)
        place = groups[record.instance.group], condition, KEYS.index(record.instance.strata["task"])
        asked[place] = True
        outcome, right = read(record)
        outcomes[condition, OUTCOMES.index(outcome)] += 1
        if outcome in ("labelled", "unparsed"):
            counts[place] += (right, 1)
    return CrossCheckCounts(counts, asked, outcomes)
