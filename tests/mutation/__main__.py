"""`python -m tests.mutation`: the share of random faults that the tests find, for `make test` and for all tests.

    record            draw faults, and run tests in a copy where the places of faults report which test reaches them
    run               run each fault that is reached against the tests that reach it
    report            the shares, paired with those of an earlier selection of tests

Everything is kept in build/mutation, of the commit that the faults were drawn from; `run` goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.stats.intervals import wilson
from tests.mutation.faults import Fault, faults_of
from tests.mutation.reach import FOLDER, Reach, add_reports
from tests.support.command import ROOT

HOME = ROOT / "build" / "mutation"
DRAWN, RESULTS = HOME / "drawn.json", HOME / "results.jsonl"
PACKAGES = ("app", "benchmarks", "judges", "mlx_backends", "rashomon")
MOST_SECONDS = 120.0
"""CPU seconds, as recorded, of the tests that a fault is run against in each suite; the nearest and quickest come first."""
SUITES = ("make test", "left out of it since", "the rest")


def record(arguments: list[str], count: int, seed: int) -> int:
    """Run a module of Python's, pytest or one that calls it, in a copy with reports; return its exit code."""
    HOME.mkdir(parents=True, exist_ok=True)
    if not DRAWN.exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        every = all_faults(copied_tree("drawn", head.stdout.strip()))
        chosen = random.Random(seed).sample(every, count * 3 // 2)  # some places are not reached
        DRAWN.write_text(json.dumps({"commit": head.stdout.strip(), "faults": list(map(asdict, chosen))}), "utf-8")
    commit, faults = drawn()
    tree = copied_tree("recorded", commit)
    add_reports(tree, faults, HOME)
    environment = {**os.environ, FOLDER: str(HOME), "PYTEST_ADDOPTS": "-p tests.mutation.reach"}
    return subprocess.run([sys.executable, "-m", *arguments], cwd=tree, env=environment, check=False).returncode


def run(count: int, earlier: str, processes: int, only: str) -> None:
    """Run ``count`` of the reached faults against the tests that reach them; what is known already is not run again."""
    commit, faults = drawn()
    reach = Reach(HOME)
    fast, slow = collect("not slow", commit), collect("slow", commit)
    moved = slow & collect("not slow", earlier)
    suites = dict(zip(SUITES, (fast, moved, slow - moved), strict=True))
    suites = {only: suites[only]} if only else suites
    reached = [number for number in range(len(faults)) if reach.tests(number)]
    results = read_results()
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in reached[:count]:
        if not results[number].keys() >= suites.keys() and not any(results[number].values()):
            waiting.put(number)
    print(f"{len(reached)} of {len(faults)} faults are reached; {waiting.qsize()} of {count} to run")

    def work(place: int) -> None:
        tree = copied_tree(str(place), commit)
        while not waiting.empty():
            number = waiting.get()
            left = {suite: tests for suite, tests in suites.items() if suite not in results[number]}
            for suite, test in outcomes(number, faults[number], tree, left, reach):
                with RESULTS.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({"number": number, "suite": suite, "test": test}) + "\n")
                print(
                    f"{number} {faults[number].file}:{faults[number].line} {suite}: {test or 'not found'}", flush=True
                )

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(work, range(processes)))


def drawn() -> tuple[str, list[Fault]]:
    """Return the commit and the faults that were drawn from it, in their order."""
    read = json.loads(DRAWN.read_text("utf-8"))
    return read["commit"], [Fault(**fault) for fault in read["faults"]]


def outcomes(
    number: int, fault: Fault, tree: Path, suites: Mapping[str, set[str]], reach: Reach
) -> Iterator[tuple[str, str]]:
    """Yield each suite with the test that finds the fault, "" if none does, up to the first suite that finds it."""
    file = tree / fault.file
    source = file.read_bytes()
    for cached in file.parent.glob(f"__pycache__/{file.stem}.*"):
        cached.unlink()
    file.write_bytes(fault.apply(source))
    try:
        for suite, tests in suites.items():
            selected = reach.nearest(number, fault.file, tests, MOST_SECONDS)
            failed = first_failure(tree, selected, reach) if selected else ""
            yield suite, failed
            if failed:
                return
    finally:
        file.write_bytes(source)


def read_results() -> dict[int, dict[str, str]]:
    """Return for each fault that was run the suites that it was run against, and the test that found it in each."""
    results: dict[int, dict[str, str]] = defaultdict(dict)
    for line in read_lines(RESULTS):
        results[line["number"]][line["suite"]] = line["test"]
    return results


def first_failure(tree: Path, tests: list[str], reach: Reach) -> str:
    """Return the first of the tests that fails in ``tree``, "no end" if they take far too long, "" if all pass."""
    order, outcome = tree.parent / f"{tree.name}-order.json", tree.parent / f"{tree.name}-failed.txt"
    order.write_text(json.dumps(tests), "utf-8")
    outcome.unlink(missing_ok=True)
    seconds = 120 + 4 * sum(map(reach.seconds, tests))
    command = [sys.executable, "-B", "-m", "tests.mutation.ordered", str(order), str(outcome)]
    with subprocess.Popen(
        command, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return "no end"
    if code == 0:
        return ""
    return outcome.read_text("utf-8") if outcome.exists() else "collection"


def report() -> None:
    """Print the share of faults that each suite finds, before and after, and the faults that it does not find."""
    _, faults = drawn()
    finders = {
        number: next((suite for suite in SUITES if by_suite.get(suite)), "")
        for number, by_suite in sorted(read_results().items())
        if any(by_suite.values()) or len(by_suite) == len(SUITES)
    }
    suites, n = Counter(finders.values()), len(finders)
    fast, moved = suites[SUITES[0]], suites[SUITES[1]]
    for name, count in (
        ("make test", fast),
        ("make test as it was", fast + moved),
        ("make test and the rest", n - suites[""]),
        ("the difference of the first two", moved),  # paired: every fault that the first finds, the second finds
    ):
        share = wilson(count, n)
        print(f"{name:32} {count:3} of {n}: {share.value:.1%} ({share.low:.1%} to {share.high:.1%})")
    for number, suite in finders.items():
        if suite != SUITES[0]:
            fault = faults[number]
            print(f"{suite or 'not found'}: {fault.file}:{fault.line} {fault.kind} {fault.text!r}")


def all_faults(tree: Path) -> list[Fault]:
    """Return every fault in the functions of the product's modules."""
    faults = []
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            faults += faults_of(str(path.relative_to(tree)), path.read_bytes())
    return faults


def collect(marks: str, commit: str) -> set[str]:
    """Return the node ids of the tests of a commit with these marks."""
    tree = copied_tree("collected", commit)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", marks]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    return {line for line in done.stdout.splitlines() if "::" in line}


def copied_tree(name: str, commit: str) -> Path:
    """Return a folder with the files of ``commit``, beside which the shared data are where they are beside this tree."""
    folder = HOME / "trees" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    beside = folder.parent / "shared"
    if not beside.exists() and (ROOT.parent / "shared").exists():
        beside.symlink_to((ROOT.parent / "shared").resolve())
    return folder


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines; none if there is no file."""
    if file.exists():
        with file.open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__, formatter_class=_Lines)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="draw faults, and record which tests reach them")
    recording.add_argument("arguments", nargs="+", help='after --: "pytest ..." or "tests.rest --record"')
    recording.add_argument("--faults", type=int, default=200, help="how many; drawn once, by the first recording")
    recording.add_argument("--seed", type=int, default=1, help="of the draw")
    running = commands.add_parser("run", help="run the faults against the tests that reach them")
    running.add_argument("--earlier", required=True, metavar="COMMIT", help="the commit of the suite to compare with")
    running.add_argument("--faults", type=int, default=200)
    running.add_argument("--processes", type=int, default=2)
    running.add_argument("--only", choices=SUITES, default="", help="one of the suites")
    commands.add_parser("report", help="print the shares")
    options = parser.parse_args()
    if options.command == "record":
        return record(options.arguments, options.faults, options.seed)
    if options.command == "run":
        run(options.faults, options.earlier, options.processes, options.only)
    else:
        report()
    return 0


_Lines = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main())
