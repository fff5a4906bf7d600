"""Memory and time of every command on tables of a user's own rows, from the table to the exported run and its comparison.

Run it by hand: ``python -m tests.performance.memory [ROWS ...]``, by default with 1,000, 10,000 and 100,000 rows, each with an
image of its own and eight instances. It prints one table: for each command and size the time, the processor time and the peak
memory of its process, and of the largest that it starts, such as a run's worker; and what an instance adds to these peaks from
one size to the next. It asserts nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.store.run_store import RunStore
from benchmarks.plugins.find_plugins import VARIABLE
from judges.judge_registry import GROUP
from tests.performance.first_word import FirstWord
from tests.support.command import ROOT, Rashomon, children_of

EXAMPLE = 8  # instances: the four conditions, and each source alone
FOLDER = 1_000  # images in a folder
POLL_SECONDS = 0.05
MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """The time of a command in seconds, and the peak memory in bytes of its process, and of the largest that it started.

    ``processor`` is the processor time of all, which other processes on the machine hardly change.
    """

    seconds: float
    processor: float
    peaks: tuple[int, ...]


def picture(number: int) -> bytes:
    """Return a PNG of two by two pixels that shows ``number`` as colours."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = number.to_bytes(12, "big")
    lines = b"\0" + pixels[:6] + b"\0" + pixels[6:]
    header = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b"")


def write_rows(folder: Path, count: int) -> Path:
    """Write a table of ``count`` rows with an image each, and return it. Some are years, and a third have passages."""
    table = folder / "rows.jsonl"
    folder.mkdir(parents=True)
    with table.open("w") as rows:
        for number in range(count):
            image = folder / f"images-{number // FOLDER}" / f"{number}.png"
            image.parent.mkdir(exist_ok=True)
            image.write_bytes(picture(number))
            answer = str(1900 + number % 200) if number % 4 == 0 else f"{number * 7 + 11}"
            row = {
                "image": f"{image.parent.name}/{image.name}",
                "question": f"What is the value of bar {number % 1000} in the chart of this row?",
                "answer": answer,
                "group": f"group {number % 50}",
            }
            if number % 3 == 0:
                row["passage"] = (
                    f"The chart of row {number * 3 + 1_000_000_007} shows {answer}. " + "It is one of many. " * 20
                )
            rows.write(json.dumps(row) + "\n")
    return table


def peak(pid: int) -> int:
    """Return the peak memory of a process in bytes, or 0 if it has ended; without /proc its present memory."""
    status = Path(f"/proc/{pid}/status")
    try:
        if Path("/proc/self/status").exists():
            return next(
                (int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM")), 0
            )
    except (FileNotFoundError, ProcessLookupError):
        return 0
    process = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return int(process.stdout.strip() or 0) * 1024


def cost(rashomon: Rashomon, *arguments: str | Path) -> Cost:
    """Run a command to its end."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            rashomon.command(*arguments), env=rashomon.environment, cwd=rashomon.home, stdout=output, stderr=output
        )
        parent = worker = 0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            parent = max(parent, peak(process.pid))
            worker = max([worker, *(peak(child) for child in children_of(process.pid))])
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        output.seek(0)
        assert process.returncode == 0, output.read().decode()[-2000:]
    return Cost(seconds, ended[2].ru_utime + ended[2].ru_stime, (parent, worker) if worker else (parent,))


def unfinish(folder: Path) -> None:
    """Set the answers of the last example aside."""
    with RunStore.open(folder) as store, store._transaction():
        ((count,),) = store._rows("SELECT count(*) FROM instance")
        store._change(
            "generation",
            store._ids("SELECT id FROM generation WHERE accepted AND instance >= ?", (count - EXAMPLE,)),
            accepted=0,
            counted=(True, False),
        )
        for (digest,) in store._rows(
            "SELECT v.digest FROM verdict v JOIN generation g ON g.id = v.generation WHERE g.instance >= ? AND v.accepted",
            (count - EXAMPLE,),
        ):
            store._count("verdict", digest, -1)
        store._change("instance", list(range(count - EXAMPLE, count)), done=0)
        store._recount()


def measure(scratch: Path, count: int) -> Iterator[tuple[str, Cost]]:
    """Yield the name and the cost of each command with ``count`` rows."""
    registered = {GROUP: {FirstWord.name: [f"{FirstWord.__module__}:FirstWord", str(ROOT)]}}
    rashomon = Rashomon(scratch, variables={VARIABLE: json.dumps(registered)})
    table, data = write_rows(scratch / "rows", count), scratch / "data"
    source = ("build", "cmc-bench", "--from", table, "--per-stratum", str(count))
    run = ("batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--data", data, "--display", "none")
    judge = ("judge", "full", "--judge", FirstWord.name, "--display", "none")
    folder = rashomon.workspace / "runs" / "full"
    yield "build --check", cost(rashomon, *source, "--check")
    yield "build", cost(rashomon, *source, "--out", data)
    yield "plan (--dry-run)", cost(rashomon, *run, "--name", "full", "--dry-run")
    yield "run", cost(rashomon, *run, "--name", "full")
    unfinish(folder)
    yield "resume", cost(rashomon, "resume", "full", "--display", "none")
    yield "judge, by a second rule", cost(rashomon, *judge)
    yield "show", cost(rashomon, "show", "full")
    yield "export (csv, json)", cost(rashomon, "export", "full", "--format", "csv,json", "--out", scratch / "export")
    shutil.copytree(folder, folder.with_name("copy"))
    yield "compare, with a copy", cost(rashomon, "compare", "full", "copy")
    yield "run of half (--limit)", cost(rashomon, *run, "--name", "half", "--limit", str(count // 2))
    yield "run, --until-width", cost(rashomon, *run, "--name", "narrow", "--until-width", "0.0001")


def cells(costs: Cost, before: Cost | None, more: int) -> str:
    """Return the figures of a command at one size; ``before`` are those with ``more`` instances fewer."""
    peaks = " and ".join(f"{peak / MIB:.0f}" for peak in costs.peaks)
    text = f"{costs.seconds:.1f} s, {costs.processor:.1f} s, {peaks} MiB"
    if before is None:
        return text
    growth = [(now - then) / more for now, then in zip(costs.peaks, before.peaks, strict=False)]
    return f"{text} ({' and '.join(f'{size:+.0f}' for size in growth)} bytes an instance)"


def main(counts: Sequence[int]) -> None:
    """Print the figures."""
    columns: list[dict[str, Cost]] = []
    for count in counts:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["XDG_STATE_HOME"] = scratch  # of the key with which runs are sealed, here and in the commands
            columns.append({})
            for name, costs in measure(Path(scratch), count):
                columns[-1][name] = costs
                print(f"{count:,} rows, {name}: {cells(costs, None, 0)}", file=sys.stderr, flush=True)
    print("| wall time, processor time, peak memory | " + " | ".join(f"{count:,} rows" for count in counts) + " |")
    print("|---" * (len(counts) + 1) + "|")
    for name in columns[0]:
        row = [
            cells(
                column[name],
                columns[number - 1][name] if number else None,
                EXAMPLE * (counts[number] - counts[number - 1]),
            )
            for number, column in enumerate(columns)
        ]
        print(f"| {name} | " + " | ".join(row) + " |")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1_000, 10_000, 100_000])
