"""Statistics of a build: samples by task and level, and by capability (Figure 4); how a model read stated facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.crosscheck_bench.crosscheck_constants import CAPABILITIES, LEVELS, STATED, TASKS
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.vocabulary import Table


def statistics_tables(samples: Sequence[CrossCheckSample], extraction: Mapping[str, Any] | None = None) -> list[Table]:
    """Return the statistics as tables to draw: ``tasks``, in a panel for each level, and ``capabilities``.

    With the manifest's ``extraction``, also ``extraction``: the values that the folder states, by what the model read.
    """
    counts = Counter(sample.task for sample in samples)
    totals = Counter(TASKS[sample.task].level for sample in samples)
    tasks = (
        (f"{task.level} {LEVELS[task.level]}, {totals[task.level]:,} samples / {key}", (counts[key],))
        for key, task in TASKS.items()
    )
    capabilities = []
    for capability in CAPABILITIES:
        alone = sum(counts[key] for key, task in TASKS.items() if task.capabilities == (capability,))
        needed = sum(counts[key] for key, task in TASKS.items() if capability in task.capabilities)
        capabilities.append((f"{sum(counts.values()):,} samples / {capability}", (alone, needed - alone)))
    return [
        Table("tasks", "Samples by level and task (Figure 4)", ("samples",), tuple(tasks), chart="counts"),
        Table(
            "capabilities",
            "Samples by the capabilities that they need (Figure 4)",
            ("alone", "with others"),
            tuple(capabilities),
            chart="counts",
        ),
        *([_extraction_table(extraction)] if extraction else []),
    ]


def _extraction_table(extraction: Mapping[str, Any]) -> Table:
    rows = (
        (f"{name}, {extraction[kind]['stated']:,} stated values / {outcome}", (extraction[kind][outcome],))
        for kind, name in (("image", "pictures"), ("text", "texts"))
        for outcome in STATED
    )
    return Table("extraction", "Stated values by what the model read", ("values",), tuple(rows), chart="counts")
