"""Scores of the best blind rule, and of guessing, beside the answers of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.audit import Audit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class BlindScores:
    """The scores of rules that look at no source, nan for a question that is open or not audited.

    Attributes:
        blind: That of the best blind rule on each record, shape (records,); see :class:`benchmarks.audit.Audit`.
        chance: That of guessing, shape (records,).
        task: The index in ``tasks`` of each record's task, -1 for an open question, -2 for a closed one that is not audited;
            shape (records,).
        tasks: The names of the tasks, and what the best rule of each looks at.
    """

    blind: NDArray[np.float64]
    chance: NDArray[np.float64]
    task: NDArray[np.int64]
    tasks: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, audit: Audit, task_of: Mapping[str, str], records: Iterable[str]) -> BlindScores:
        """Return the scores of ``records``, by the ids of their instances; ``task_of`` has the tasks of closed questions."""
        import numpy as np

        number = {task.task: place for place, task in enumerate(audit.tasks)}
        rows = [
            (audit.blind[name], audit.chance[name], number[task_of[name]])
            if name in audit.blind
            else (np.nan, np.nan, -2 if name in task_of else -1)
            for name in records
        ]
        blind, chance, task = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        best = (next((rule for rule in task.rules if not rule.reads_source), None) for task in audit.tasks)
        tasks = tuple((task.task, rule.looks_at if rule else "") for task, rule in zip(audit.tasks, best, strict=True))
        return cls(blind, chance, task.astype(np.int64), tasks)

    def at(self, positions: NDArray[np.int64]) -> BlindScores:
        """Return the scores of the records at these positions."""
        return BlindScores(self.blind[positions], self.chance[positions], self.task[positions], self.tasks)
