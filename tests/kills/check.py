"""The truth of a home between two commands: the listings, the databases, and the files that a command writes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.kills.cases import SEEN, Case, contents
from tests.support.command import Rashomon
from tests.support.inside import run_inside

AUDIT = "audit.json"
_AT_WORK = {"queued", "loading", "running", "judging", "training"}


def phase_of(case: Case, home: Path) -> str:
    """Return the phase of a command, by what a user could see in its home."""
    run = home / "workspace" / "runs" / (case.run or "-")
    if case.name == "train" and (state := home / "workspace/trainings/t/state.json").exists():
        return str(json.loads(state.read_text())["state"])
    if (run / "run.sqlite").exists():
        counts = _counts(run / "run.sqlite")
        if counts[1] < counts[0]:
            return "answering" if counts[1] else "planned"
        return "ended" if counts[2] == counts[0] else "judging" if counts[2] else "answered"
    if case.whole and case.target and (home / case.target).exists():
        return "in place"
    for path in home.rglob(".*"):
        if path.name.startswith(".rashomon-") or path.name.endswith((".building", ".part")):
            return "writing"
    return "written in part" if case.target and (home / case.target).exists() else "before writing"


def _counts(database: Path) -> tuple[int, int, int]:
    """Return the numbers of instances, of accepted answers and of verdicts."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        tables = (
            "SELECT count(*) FROM instance",
            "SELECT count(*) FROM generation WHERE accepted",
            "SELECT count(*) FROM verdict",
        )
        instances, answers, verdicts = (int(connection.execute(sql).fetchone()[0]) for sql in tables)
    connection.close()
    return instances, answers, verdicts


def untrue(case: Case, rashomon: Rashomon, expected: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong in a home while no command runs; ``expected`` are the files of an undisturbed command's target."""
    yield from _wrong_runs(rashomon)
    for words, key in ((("sets",), "sets"), (("trainings",), "trainings")):
        listing = _json(rashomon, *words)
        if isinstance(listing, str):
            yield listing
        elif key == "trainings":
            items = listing if isinstance(listing, list) else listing.get(key, [])
            yield from (f"training listed as {item['state']}" for item in items if item["state"] in _AT_WORK)
    target = contents(rashomon.home / case.target) if case.target else {}
    target = {name: digest for name, digest in target.items() if "/." not in f"/{name}"}
    if target and case.same_bytes and case.name != "train":
        target.setdefault(AUDIT, expected.get(AUDIT, ""))  # made after a build, or when it is first looked at
        if AUDIT not in expected:
            del target[AUDIT]
        if case.whole and target != expected:
            yield f"half a target: {sorted(target.items() ^ expected.items())[:4]}"
        elif not target.items() <= expected.items():
            yield f"another file in the target: {sorted(target.items() - expected.items())[:4]}"


def _wrong_runs(rashomon: Rashomon) -> Iterator[str]:
    runs = _json(rashomon, "runs")
    if isinstance(runs, str):
        yield runs
        return
    if SEEN not in [run["name"] for run in runs]:
        yield f"the run {SEEN} is gone"
    for run in runs:
        counts = _counts(rashomon.workspace / "runs" / run["name"] / "run.sqlite")
        if run["state"] in _AT_WORK or run["state"] == "unreadable":
            yield f"{run['name']} is listed as {run['state']}"
        if run["done"] != counts[1]:
            yield f"{run['name']} is listed with {run['done']} answers and has {counts[1]}"
        if run["state"] == "done" and (counts[1] < counts[0] or counts[2] < counts[0]):
            yield f"{run['name']} is listed as done with {counts}"


def _json(rashomon: Rashomon, *words: str) -> Any:
    """Return the result of a listing, or a sentence on why there is none."""
    code, out, err = run_inside([*words, "--json"], rashomon.environment, rashomon.home)
    return json.loads(out)["result"] if code == 0 else f"`rashomon {' '.join(words)}` ends with {code}: {err.strip()}"


def export(rashomon: Rashomon, run: str) -> dict[str, str]:
    """Return the files of the canonical export of a run."""
    out = rashomon.home / "canonical"
    rashomon.run("export", run, "--canonical", "--out", out)
    files = contents(out)
    for file in (*out.rglob("*"), out):
        file.unlink() if file.is_file() else None
    for folder in sorted((path for path in out.rglob("*")), reverse=True):
        folder.rmdir()
    out.rmdir()
    return files
