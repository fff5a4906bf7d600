"""A run of 100,000 instances through the real command line: whether memory grows, and what a resume costs.

Run it by hand: ``python -m tests.performance.large_run [INSTANCES]``. It prints, and asserts nothing. The policy backend
answers at once, so what is seen is the engine's and the store's. A resume is timed from its start to the worker's first
request, for this run with its last eight instances still to be answered and for a run of eight in all; the difference is
what the finished answers cost. The peak of memory of ``show``, ``export`` and ``compare`` follows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from benchmarks.build import BuildWriter
from benchmarks.cmc_bench.cmc_instances import CORRECT_SOURCES, InstanceDraft, single_source_drafts
from benchmarks.vocabulary import Media
from tests.support.command import Rashomon, children_of

EXAMPLE = 8  # instances: the four conditions, and each source alone
TIMES = 3


def build(out: Path, examples: int) -> None:
    """Write a build of CMC-Bench with ``examples`` examples but no images, which policies do not read."""
    images = {right: Media(f"{number:064x}", ".png") for number, right in enumerate((True, False))}
    with BuildWriter(out) as writer:
        for number in range(examples):
            group = f"factual-{number:012x}"
            four = []
            for condition, correct in CORRECT_SOURCES.items():
                image, text = correct in ("both", "image"), correct in ("both", "text")
                references = {"image": str(number + (0 if image else 1)), "text": str(number + (0 if text else 2))}
                content = (
                    f"What is the value of bar {number}?",
                    images[image],
                    f"The value is {references['text']}. " * 10,
                )
                strata = {"type": "factual", "source": "chartqa"}
                four.append(
                    InstanceDraft(f"{group}/{condition}", group, condition, *content, references, correct, strata)
                )
            for draft in [*four, *single_source_drafts(four)]:
                writer.add_row(draft.to_row())
        writer.finish({"benchmark": "cmc-bench"})


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes, or 0 if it has ended."""
    process = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return int(process.stdout.strip() or 0) * 1024


def run(rashomon: Rashomon, folder: Path, *arguments: str | Path) -> list[tuple[int, int]]:
    """Run a command to its end; (answers, bytes of the worker) of every quarter of a second in which there was a worker."""
    seen = []
    process = rashomon.start(*arguments, "--display", "none")
    while process.poll() is None:
        time.sleep(0.25)
        if (folder / "run.sqlite").exists() and (workers := children_of(process.pid)):
            done, size = read_summary(folder).done, resident(workers[0])
            if done and size:
                seen.append((done, size))
    assert process.returncode == 0, process.communicate()
    process.communicate()
    return seen


def unfinish(folder: Path) -> None:
    """Set the answers of the last example aside, as a rerun does with those of a condition."""
    with RunStore.open(folder) as store, store._transaction():
        ((count,),) = store._rows("SELECT count(*) FROM instance")
        last = [count - EXAMPLE]
        answers = store._ids("SELECT id FROM generation WHERE accepted AND instance >= ?", last)
        done = store._ids("SELECT ordinal FROM instance WHERE done AND ordinal >= ?", last)
        for (digest,) in store._rows(
            "SELECT v.digest FROM verdict v JOIN generation g ON g.id = v.generation "
            "WHERE v.accepted AND g.accepted AND g.instance >= ?",
            last,
        ):
            store._count("verdict", digest, -1)
        store._change("generation", answers, accepted=0, counted=(True, False))
        store._change("instance", done, done=0)
        store._recount()


def first_request(rashomon: Rashomon, *arguments: str | Path) -> float:
    """Seconds from the start of a command to its worker's first request."""
    calls = rashomon.home / "calls"
    calls.unlink(missing_ok=True)
    began = time.perf_counter()
    process = rashomon.ordered(calls=str(calls)).start(*arguments, "--display", "none")
    while not calls.exists() and process.poll() is None:
        time.sleep(0.002)
    took = time.perf_counter() - began
    process.communicate()
    assert process.returncode == 0
    return took


def timed(arguments: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and the peak of memory in MiB of a command in a process of its own."""
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, '-m', 'app.main', *sys.argv[1:]], stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    began = time.perf_counter()
    process = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    took = time.perf_counter() - began
    code, processor, peak = process.stdout.split()
    assert code == "0", process.stderr
    return took, float(processor), int(peak) / (2**20 if sys.platform == "darwin" else 2**10)


def main(count: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_STATE_HOME"] = f"{scratch}/state"  # the commands', so that their runs are this process's own
        rashomon = Rashomon(Path(scratch))
        times: dict[tuple[str, str], list[float]] = defaultdict(list)
        for name, instances in (("small", EXAMPLE), ("large", count)):
            data, folder = Path(scratch) / name, rashomon.workspace / "runs" / name
            build(data, instances // EXAMPLE)
            spec = ("--benchmark", "cmc-bench", "--model", "policy:uniform", "--data", data, "--name", name)
            began = time.perf_counter()
            seen = run(rashomon, folder, "batch", *spec)
            took = time.perf_counter() - began
            for how, arguments in (("resume", ("resume", name)), ("the same command", ("batch", *spec))):
                for _ in range(TIMES):
                    unfinish(folder)
                    times[name, how].append(first_request(rashomon, *arguments))
        print(f"{count} instances planned, answered, judged and durable: {took:.0f} s")
        fifth = next(size for done, size in seen if done >= count / 5)
        done, last = seen[-1]
        print(
            f"memory of the worker: {fifth / 2**20:.1f} MiB at {count // 5} answers, {last / 2**20:.1f} MiB at {done}: "
            f"{last / fifth:.3f} times; {max(size for _, size in seen) / 2**20:.1f} MiB at most"
        )
        for how in ("resume", "the same command"):
            small, large = (statistics.median(times[name, how]) for name in ("small", "large"))
            print(
                f"{how}, to the first request (median of {TIMES}): {large:.2f} s, {large - small:.2f} s more than "
                f"with {EXAMPLE} instances ({small:.2f} s); at most {max(times['large', how]):.2f} s"
            )
        copy = rashomon.workspace / "runs" / "copy"
        shutil.copytree(rashomon.workspace / "runs" / "large", copy)
        for command in (
            ["show", "large"],
            ["export", "large", "--out", f"{scratch}/export"],
            ["compare", "large", "copy"],
        ):
            took, processor, peak = timed(["--workspace", str(rashomon.workspace), *command])
            print(f"{command[0]}: {took:.1f} s, {processor:.1f} s of the processor, {peak:.0f} MiB at most", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
