"""The interface while a run of 100,000 instances answers 100 a second, in a workspace of 5,000 runs: how late it is.

Run it by hand: ``python -m tests.performance.tui_lag [INSTANCES] [SECONDS] [RUNS]``. It prints, and asserts nothing. A process
of its own commits the answers, one commit each, and holds the run's lock as a worker does; half of the instances are answered
before. The lag is how much later than asked a sleep of 10 ms ends in the interface's loop; the same without the interface
tells what the machine itself adds. The time that the thread computed in between is what a busy machine adds nothing to.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.engine.run_plan import create_run
from app.run_spec import BatchSpec
from app.store.file_locks import FileLock
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.tui.tui_app import RashomonApp
from benchmarks.vocabulary import Instance, Record
from judges.cmc_rules.cmc_match_judge import Match
from tests.support.runs import instances, says
from tests.support.tui_stage import screen_text

RUN = "large"
RATE = 100  # answers a second
EXAMPLES_AT_ONCE = 1000


def many(count: int) -> Iterator[Instance]:
    """Yield ``count`` instances lazily."""
    six = instances(1)
    for number in range(count):
        base = six[number % 6]
        group = f"factual-{number // 6:06d}"
        yield Instance(
            id=f"{group}/{base.condition}",
            group=group,
            condition=base.condition,
            question=base.question,
            parts=base.parts,
            references=base.references,
            strata=base.strata,
        )


def answer(store: RunStore, count: int, at_once: int) -> Iterator[int]:
    """Answer ``count`` pending instances, ``at_once`` in a commit; yields after each commit."""
    match, replies = Match(), itertools.cycle(["12", "15", "neither", "18"])
    waiting = itertools.islice(store.pending(), count)
    done = 0
    while chunk := list(itertools.islice(waiting, at_once)):
        answers = []
        for pending in chunk:
            generation = says(f"The answer is {next(replies)}.")(pending.instance)
            verdict = match.judge(Record(pending.instance, (generation,)))
            condition = pending.instance.condition
            answers.append(NewAnswer(pending.ordinal, condition, 0, "digest", generation, True, (verdict,)))
        store.commit(answers)
        done += len(chunk)
        yield done


def plan(workspace: Workspace, name: str, count: int) -> Path:
    """Create a run of ``count`` unanswered instances."""
    (spec,) = BatchSpec(benchmark="cmc-bench", model=("policy:uniform",), name=name).runs()
    workspace.make()
    create_run(
        workspace,
        spec,
        workspace.runs_folder / name,
        {**spec.identity(), "device": "cpu"},
        list(many(count)),
        data=None,
    )
    return workspace.runs_folder / name


def stream(folder: Path, seconds: float) -> None:
    """Commit answers at the rate, as a worker does, holding the run's lock."""
    with FileLock(folder / "lock") as lock, RunStore.open(folder) as store:
        assert lock.acquire("process 1")
        store.use_engine({"engine": "policy"})
        store.set_meta("state", {"state": "running", "note": "", "pid": 1})
        print("ready", flush=True)
        began = time.monotonic()
        for done in answer(store, int(seconds * RATE), 1):
            time.sleep(max(0.0, began + done / RATE - time.monotonic()))
        took = time.monotonic() - began
        print(f"{done / took:.0f} answers a second for {took:.0f} s")


async def lags(seconds: float) -> list[tuple[float, float]]:
    """Return how late sleeps of 10 ms end and how long this thread computed during each, in milliseconds."""
    delays, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began, computed = time.perf_counter(), time.thread_time()
        await asyncio.sleep(0.01)
        delays.append((1000 * (time.perf_counter() - began) - 10, 1000 * (time.thread_time() - computed)))
    return delays


def report(what: str, delays: list[tuple[float, float]]) -> None:
    print(what)
    for kind, values in zip(("late", "computing"), zip(*delays, strict=True), strict=True):
        cuts = statistics.quantiles(values, n=100)
        print(f"  {kind:<10} p50 {cuts[49]:.1f} ms, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f}, at most {max(values):.1f}")


async def watch(workspace: Workspace, seconds: float) -> None:
    """Open the interface, look at the list, at the run and at its answers, scroll; print the lags."""
    began = time.perf_counter()
    app = RashomonApp(workspace)
    async with app.run_test(size=(120, 40)) as pilot:
        print(f"first paint: {time.perf_counter() - began:.2f} s")
        while RUN not in screen_text(app):
            await pilot.pause(0.01)
        print(f"first runs on display: {time.perf_counter() - began:.2f} s")
        while not app.snapshot.complete:
            await pilot.pause(0.01)
        print(f"all {len(app.snapshot.runs):,} runs listed: {time.perf_counter() - began:.2f} s")
        report("the list of runs", await lags(seconds / 3))
        await pilot.press("slash", *RUN, "enter", "enter")
        while "Newest answer: " not in screen_text(app):
            await pilot.pause(0.01)
        report("the run", await lags(seconds / 3))

        async def keys() -> None:
            for key in itertools.cycle("jjjkkk"):
                await pilot.press(key)

        began = time.perf_counter()
        await pilot.press("s")
        while "text says" not in screen_text(app):
            await pilot.pause(0.01)
        print(f"the answers: {time.perf_counter() - began:.2f} s")
        pressing: asyncio.Task[Any] = asyncio.create_task(keys())
        report("the answers, with keys pressed all the time", await lags(seconds / 3))
        pressing.cancel()
        await pilot.press("escape", "escape", "escape")
        pressing = asyncio.create_task(keys())
        report("the list, with keys pressed all the time", await lags(seconds / 3))
        pressing.cancel()
        opened = time.perf_counter()
        await pilot.press("s")
        while "How many" not in screen_text(app):
            await pilot.pause(0.01)
        print(f"samples on display: {time.perf_counter() - opened:.2f} s")
        pressing = asyncio.create_task(keys())
        report("its samples, with keys pressed all the time", await lags(seconds / 3))
        pressing.cancel()


def main(count: int, seconds: float, runs: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Workspace(Path(scratch))
        small = plan(workspace, "small", 60)
        with RunStore.open(small) as store:
            store.use_engine({"engine": "policy"})
            for _ in answer(store, 60, 30):
                pass
        for number in range(runs - 2):
            shutil.copytree(small, small.with_name(f"small-{number:05d}"))
        folder = plan(workspace, RUN, count)
        with RunStore.open(folder) as store:
            store.use_engine({"engine": "policy"})
            for _ in answer(store, count // 2, EXAMPLES_AT_ONCE):
                pass
        print(f"{count:,} instances, half of them answered, in a workspace of {runs:,} runs")
        report("no interface", asyncio.run(lags(seconds / 3)))
        writer = subprocess.Popen(
            [sys.executable, "-m", "tests.performance.tui_lag", "stream", str(folder), str(seconds * 1.5)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        report("no interface, but the run", asyncio.run(lags(seconds / 3)))
        asyncio.run(watch(workspace, seconds))
        print(writer.communicate()[0].strip())


if __name__ == "__main__":
    if sys.argv[1:2] == ["stream"]:
        stream(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        values = [*map(float, sys.argv[1:]), *(100_000, 30, 5_000)[len(sys.argv) - 1 :]]
        main(int(values[0]), values[1], int(values[2]))
