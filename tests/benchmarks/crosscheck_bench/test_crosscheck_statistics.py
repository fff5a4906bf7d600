"""CrossCheck-Bench's samples by task, level and capability (Figure 4)."""

from __future__ import annotations

from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.crosscheck_bench.crosscheck_statistics import statistics_tables
from tests.support.data.crosscheck_bench import make_sample


def test_samples_are_counted_by_task_within_their_level_and_by_capability() -> None:
    samples = [make_sample(task, number) for task in ("LD", "SPU", "SPU", "BC*") for number in (0, 1)]
    tasks, capabilities = statistics_tables(samples)
    counts = dict(tasks.rows)
    assert len(counts) == len(TASKS)
    assert {label: cells for label, cells in counts.items() if cells != (0,)} == {
        "L1 Perception, 2 samples / LD": (2,),
        "L2 Integration, 4 samples / SPU": (4,),
        "L3 Reasoning, 2 samples / BC*": (2,),
    }
    assert {label.rpartition(" ")[2]: cells for label, cells in capabilities.rows} == {
        "A1": (0, 6),
        "A2": (0, 0),
        "A3": (2, 4),
        "A4": (0, 2),
        "A5": (0, 0),
        "A6": (0, 2),
        "A7": (0, 2),
    }
