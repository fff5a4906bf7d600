"""Twenty runs of 3,768 instances, from disk: every table with 1,000 resamples, the comparison, the decision; seconds and memory.

Run it by hand: ``python -m tests.performance.comparison [RUNS] [EXAMPLES]``. It prints, and asserts nothing. The runs hold the
answers of made-up models that say mostly the same, labelled by ``match``. Each figure is of a process of its own, with its start.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance
from tests.performance.large_run import EXAMPLE, build, timed
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


def main(runs: int, examples: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        workspace, data = Workspace(Path(scratch) / "workspace"), Path(scratch) / "data"
        build(data, examples)
        items = list(get_benchmark("cmc-bench").instances(Build.open(data), "paper"))
        for number in range(1, runs + 1):
            make_run(workspace, f"run-{number}", items, answering(number), data=data)
        print(f"{runs} runs of {EXAMPLE * examples} instances")
        names = [f"run-{number}" for number in range(1, runs + 1)]
        for what, (command, *options) in COMMANDS.items():
            filled = [option.format(out=scratch) for option in options]
            took, processor, peak = timed(["--workspace", str(workspace.path), command, *names, *filled])
            print(f"{what}: {took:.1f} s, {processor:.1f} s of the processor, {peak:.0f} MiB at most", flush=True)


if __name__ == "__main__":
    counts = [int(word) for word in sys.argv[1:]]
    main(*(counts or [20, 471]))
