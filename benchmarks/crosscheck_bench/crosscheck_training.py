"""Training rows of CrossCheck-Bench: the fine-tuning set of CSFT (Table 3)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.training_rows import TrainingOptions, TrainingRow
from benchmarks.vocabulary import Instance, digest

PAIRS = 500
"""The question-answer pairs of CSFT. The paper's are not published, nor how they were chosen."""

CAPABILITIES = ("A5", "A6", "A7")
"""The capabilities of Table 3, which CSFT is to teach."""


def training_rows(instances: Iterable[Instance], options: TrainingOptions) -> Iterator[TrainingRow]:
    """Yield the questions of tasks that need A5, A6 or A7, under the plain prompt: at most 500, or ``options.limit``.

    They are drawn from the tasks in turn, so that no task is most of them.
    """
    by_task: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        task = TASKS[instance.strata["task"]]
        if instance.condition == "vanilla" and not set(CAPABILITIES).isdisjoint(task.capabilities):
            by_task[task.key].append(instance)
    queues = [
        deque(sorted(by_task[task], key=lambda instance: digest([options.seed, "pair", instance.group])))
        for task in TASKS
        if task in by_task
    ]
    for _ in range(options.limit or PAIRS):
        queues = [queue for queue in queues if queue]
        if not queues:
            return
        chosen = queues[0].popleft()
        queues.append(queues.pop(0))
        kind = "conflict" if chosen.strata.get("conflict") else "no conflict"
        yield TrainingRow(chosen, chosen.references["answer"][0], "conflict" if kind == "conflict" else "no conflict")
