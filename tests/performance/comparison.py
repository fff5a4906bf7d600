"""Twenty runs of 3,768 instances, from disk: every table with 1,000 resamples, the comparison, the decision; seconds and memory.

Run it by hand: ``python -m tests.performance.comparison [ROUNDS] [RUNS] [EXAMPLES]``, by default 5, 20 and 471 of eight
instances. It prints, and asserts nothing. The runs hold the answers of made-up models that say mostly the same, labelled by
``match``. Each figure is of a process of its own, with its start; a round runs each command, every one first in turn, and
medians and ranges of the rounds are printed.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance
from tests.performance.large_run import EXAMPLE, build, timed
from tests.performance.measuring import rotated, spread, whole_numbers
from tests.support.runs import make_run

COMMANDS = {
    "every table": ("show",),
    "the comparison": ("compare",),
    "the comparison, grouped, with every flip": ("compare", "--group-by", "quantization", "--flips"),
    "the decision": ("recommend",),
    "tables and figures as files": ("export", "--format", "csv,md,latex,pdf", "--out", "{out}/export"),
    "the comparison as files": ("compare", "--format", "csv,md,latex,pdf", "--out", "{out}/comparison"),
}


def answering(run: int) -> Callable[[Instance], Generation]:
    """Return a function that answers for a run: mostly as the other runs do, on a tenth of the instances differently."""

    def answer(instance: Instance) -> Generation:
        usual, own = random.Random(instance.id), random.Random(f"{run} {instance.id}")
        chosen = own if own.random() < 0.1 else usual
        value = chosen.choice([*(values[0] for values in instance.references.values()), "I cannot tell", "99999"])
        return Generation(
            f"{instance.id}#0", f"It is {value}.", "stop", (1, 2, 3), 300, 3, 0.2, 0.1 + run / 100, 10**9 * run
        )

    return answer


def main(rounds: int, runs: int, examples: int) -> None:
    """Print the figures."""
    costs: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        workspace, data = Workspace(Path(scratch) / "workspace"), Path(scratch) / "data"
        build(data, examples)
        items = list(get_benchmark("cmc-bench").instances(Build.open(data), "paper"))
        for number in range(1, runs + 1):
            make_run(workspace, f"run-{number}", items, answering(number), data=data)
        names = [f"run-{number}" for number in range(1, runs + 1)]
        for number in range(rounds):
            for what, (command, *options) in rotated(list(COMMANDS.items()), number):
                filled = [option.format(out=f"{scratch}/{number}") for option in options]
                costs[what].append(timed(["--workspace", str(workspace.path), command, *names, *filled]))
    print(f"{runs} runs of {EXAMPLE * examples} instances, {rounds} rounds")
    for what in COMMANDS:
        seconds, processor, peaks = zip(*costs[what], strict=True)
        print(
            f"{what}: {spread(seconds, ' s')}, of the processor {spread(processor, ' s')}, {max(peaks):.0f} MiB at most"
        )


if __name__ == "__main__":
    first, *others = whole_numbers([5, 20, 471])
    main(first, *others[:2])
