"""The cost of digests: microseconds an answer on commit, and seconds to open and to read a run of many answers.

``python -m tests.performance.digests [ANSWERS]`` compares this version's runs with the same rows without digests.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from app.doctor.damaged_run_check import check_run
from app.store.database_schema import NO_DIGESTS
from app.store.integrity import row_digests
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.vocabulary import Generation, Instance, Text, Verdict
from tests.support.old_runs import as_version

GROUP = 256


def fill(folder: Path, count: int) -> float:
    """Make a run of ``count`` answers; the seconds that committing them took."""
    conditions = ("plain", "twisted")
    instances = (
        Instance(f"{n}", f"{n // 2}", conditions[n % 2], "?", (Text("word " * 300),), {"image": ("1",)}, {"kind": "x"})
        for n in range(count)
    )
    meta = {
        "spec": {"judge": ["even"], "benchmark": "toy"},
        "identity": {},
        "created": 1.0,
        "conditions": list(conditions),
        "correct": {key: ["YES"] for key in conditions},
    }
    with RunStore.create(folder, meta, instances) as store:
        store.use_engine({"engine": "x"})
        begun = time.perf_counter()
        for first in range(0, count, GROUP):
            store.commit(
                [
                    NewAnswer(
                        n,
                        conditions[n % 2],
                        0,
                        "d" * 64,
                        Generation(f"{n}#0", "an answer " * 20, "stop", tuple(range(60)), 500, 60, 0.1, 0.2, 10**9),
                        True,
                        (Verdict("even@1", "labelled", "YES", "why"),),
                    )
                    for n in range(first, min(first + GROUP, count))
                ]
            )
        return time.perf_counter() - begun


def seconds(folder: Path) -> tuple[float, float, float]:
    """The seconds of opening a run, of its line in the list of runs, and of reading all its records."""
    begun = time.perf_counter()
    RunStore.read(folder).close()
    opened = time.perf_counter()
    read_summary(folder)
    listed = time.perf_counter()
    with RunStore.read(folder) as store:
        for _ in store.records():
            pass
    return opened - begun, listed - opened, time.perf_counter() - listed


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs" / "run"
        folder.mkdir(parents=True)
        total = fill(folder, count)
        row = (*range(8), "an answer " * 20, bytes(240), *range(10))
        begun = time.perf_counter()
        for _ in range(10_000):
            row_digests.row_digest("generation", row)
        digest_time = (time.perf_counter() - begun) * 100
        print(f"{count} answers: commit {1e6 * total / count:.0f} us an answer, one digest {digest_time:.1f} us")
        names = ("open", "list", "read all")
        now = seconds(folder)
        begun = time.perf_counter()
        assert all(finding.ok for finding in check_run(Workspace(Path(place)), folder))
        examined = time.perf_counter() - begun
        as_version(folder, NO_DIGESTS)
        before = seconds(folder)
        for name, with_digests, without in zip(names, now, before, strict=True):
            print(
                f"{name:<9} {with_digests:8.4f} s, without digests {without:8.4f} s, ratio {with_digests / without:.2f}"
            )
        print(f"doctor    {examined:8.2f} s")


if __name__ == "__main__":
    main()
