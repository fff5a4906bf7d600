"""Seconds and memory of the page with 100,000 answers in 20 runs, and in a single run.

Run it by hand: ``python -m tests.performance.view [ANSWERS [RUNS]]``. It prints, and asserts nothing.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.store.workspace import Workspace
from app.view.contents.page_contents import Contents
from app.view.contents.page_json import to_json
from tests.performance.samples import make


def main(answers: int, runs: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Workspace(Path(scratch))
        first = make(workspace, "run-0", answers // runs)
        folders = [first]
        for number in range(1, runs):
            folder = first.with_name(f"run-{number}")
            shutil.copytree(first, folder)
            folders.append(folder)
        before = _memory()
        contents = _timed("opened", lambda: Contents(workspace, folders))
        print(f"memory: {_memory() - before:.0f} MiB more than {before:.0f}")
        count = len(contents.instances)
        for name, read in (
            ("head", contents.head),
            ("index", contents.index),
            ("60 rows", lambda: contents.rows(range(60))),
            ("60 rows in the middle", lambda: contents.rows(range(count // 2, count // 2 + 60))),
            ("an instance", lambda: contents.instance(count // 2)),
            ("a search for a rare word", lambda: contents.search("4711?")),
            ("a search for a word in every answer", lambda: contents.search("Looking")),
            ("a look at runs that were just made", contents.refresh),
            ("a look at unchanged runs", contents.refresh),
            ("changes", lambda: contents.changes(contents.revision)),
        ):
            _timed(name, read)
        print(f"memory: {_memory():.0f} MiB at most")


def _timed(name: str, read: Callable[[], Any]) -> Any:
    began, worked = time.perf_counter(), time.process_time()
    value = read()
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    size = "" if isinstance(value, Contents) else f", {len(to_json(value)):,} bytes"
    print(f"{name}: {1000 * seconds:.0f} ms, {1000 * worked:.0f} ms of the processor{size}")
    return value


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    main(*(int(sys.argv[place]) if len(sys.argv) > place else default for place, default in ((1, 100_000), (2, 20))))
