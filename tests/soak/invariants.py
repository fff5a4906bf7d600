"""Invariants that hold after every action, however it ended."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.soak.commands import Command, Home, Result
from tests.soak.ledger import Ledger, Run, Step
from tests.soak.servers import CONCURRENCY, ModelServer

MOST_MEGABYTES = 700.0
"""The resident memory of a command, or of a worker of it, on a run of at most a few hundred instances."""
_OF_SIGNALS = {"TERM": -15, "INT": -2, "HUP": -1, "CLOSE": -1}
_TEMPORARY = re.compile(
    r"(^\.rashomon-|^\.half-|^\.fusing|\.part$|\.tmp$|\.half$|^tmp\w{8}$|^rashomon-\w+-\w{8}$|\.new$|^\.[\w.-]+\.part$)"
)
_PRIVATE = ("state/rashomon-private", "cache/rashomon")


def ends_well(result: Result) -> Iterator[str]:
    """Yield what is wrong with the end of a command."""
    command, code = result.command, result.code
    if result.hung:
        yield f"hang: no end after {result.seconds:.0f} s"
        return
    if "Traceback (most recent call last)" in result.err + result.out:
        yield "traceback"
    codes = {*command.codes}
    if result.signalled:
        codes |= {130, _OF_SIGNALS.get(command.signal, -9)}
    left, entered = (result.out.count(f"\x1b[?1049{end}") for end in "lh")
    if left != entered and code >= 0 and command.signal != "CLOSE":
        yield "terminal: its own screen is not restored"
    if code not in codes:
        yield f"exit code {code}, not one of {sorted(codes)}"
    elif code > 0 and len(result.reason) != 1 and command.signal != "CLOSE":
        yield f"{len(result.reason)} lines say why the exit code is {code}"
    if result.megabytes > MOST_MEGABYTES:
        yield f"memory: {result.megabytes:.0f} MB"
    if command.browses and result.pages and ({*result.pages[:-2]} != {200} or not {*result.pages[-2:]} <= {403, 404}):
        yield f"page: status {result.pages}"


def run_facts(home: Home, ledger: Ledger) -> Iterator[str]:
    """Yield what is wrong with the list of runs, and note how far each is."""
    (result,) = home.run([Command(("runs", "--json"), patience=2)])
    if result.code or result.hung:
        yield f"list: `runs --json` ends with {result.code}: {result.err[-300:]}"
        return
    listed = {item["name"]: item for item in json.loads(result.out)["result"]}
    known = {run.name for run in ledger.present()}
    for name in sorted(listed.keys() - known - {"small"}):
        yield f"list: {name} was never begun, or is deleted"
    for run in ledger.present():
        item = listed.get(run.name)
        if item is None:
            if run.done:
                yield f"list: {run.name} is missing"
            continue
        if item["done"] < run.done or item["done"] > item["total"]:
            yield f"list: {run.name} has {item['done']} of {item['total']} answers, after {run.done}"
        if run.complete and item["state"] != "done":
            yield f"list: {run.name} was complete and is {item['state']}"
        run.done = item["done"]
        run.complete = item["state"] == "done" and item["done"] == item["total"]


def calls(home: Home, ledger: Ledger, server: ModelServer) -> Iterator[str]:
    """Yield where the stored calls are not those that the server got, apart from calls in flight at a kill."""
    stored, judged = {}, dict.fromkeys(ledger.judges, 0)
    for run in ledger.present():
        path = home.workspace / "runs" / run.name / "run.sqlite"
        if not path.exists():
            continue
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            if run.model:
                stored[run.model] = _number(database, "SELECT total(calls) FROM generation WHERE origin IS NULL")
            for model, total in database.execute("SELECT judge, total(calls) FROM verdict GROUP BY judge"):
                name = re.match(r"endpoint:(j\d+)@", model)
                if name is not None:
                    judged[name[1]] += int(total)
    for run in ledger.present():
        if run.model:
            yield from _differ(run.name, server.calls[run.model], stored.get(run.model, 0), run.kills)
    for model, kills in ledger.judges.items():
        if not ledger.runs[ledger.judged[model]].deleted:
            yield from _differ(f"judge {model}", server.calls[model], judged[model], kills)


def paid_twice(ledger: Ledger, server: ModelServer) -> Iterator[str]:
    """Yield questions of a run that the server answered again although no kill can have lost the answer."""
    for run in ledger.runs.values():
        number = max(server.requests.get(run.model, {"": 0}).values())
        if number > 1 + run.kills:
            yield f"paid twice: {run.name}: the server answered a question {number} times, after {run.kills} kills"


def _number(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def _differ(name: str, received: int, stored: int, kills: int) -> Iterator[str]:
    if not stored <= received <= stored + kills * 2 * CONCURRENCY:
        yield f"calls: {name}: the server got {received}, {stored} are stored, after {kills} kills"


def checks_database(home: Home, run: Run) -> Iterator[str]:
    """Yield what `rashomon doctor` finds in a run."""
    (result,) = home.run([Command(("doctor", run.name), patience=2)])
    if result.code:
        yield f"doctor: {run.name}: {result.out[-400:]} {result.err[-200:]}"


def exports(home: Home, reference: Home, run: Run) -> Iterator[str]:
    """Yield where a complete run's canonical export differs from the one before, or from the undisturbed run's."""
    files = canonical(home, run.name)
    if isinstance(files, str):
        yield f"export: {run.name}: {files}"
        return
    if run.files and files != run.files:
        names = [name for name in sorted({*files, *run.files}) if files.get(name) != run.files.get(name)]
        yield f"export: {run.name} is not as before: {names}"
    run.files = files
    if run.reference:
        expected = of_reference(reference, run)
        if isinstance(expected, str):
            yield f"reference: {expected}"
            return
        differing = [name for name in ("samples.jsonl", "samples.csv") if files.get(name) != expected.get(name)]
        if differing and not run.judged:
            yield f"export: {run.name} is not as the undisturbed run {run.reference}: {differing}"


def of_reference(reference: Home, run: Run) -> dict[str, str] | str:
    """Return the digests of the undisturbed run's export, which is made once; or why there is none."""
    name = "ref-" + hashlib.sha256(run.reference.encode()).hexdigest()[:12]
    stored = reference.folder / f"{name}.json"
    if not stored.exists():
        words = [*json.loads(run.reference), "--name", name, "--display", "none"]
        (result,) = reference.run([Command(tuple(words), patience=5)])
        if result.code:
            return f"{words} ends with {result.code}: {result.err[-300:]}"
        digests = canonical(reference, name)
        if isinstance(digests, str):
            return digests
        stored.write_text(json.dumps(digests))
    return dict(json.loads(stored.read_text()))


def canonical(home: Home, name: str) -> dict[str, str] | str:
    """Return the digests of a run's canonical export, or why there is none."""
    words = ("export", name, "--canonical", "--format", "csv,json", "--out", "{home}/desk/canonical")
    (result,) = home.run([Command(words, patience=2)])
    if result.code:
        return f"exit code {result.code}: {result.err[-300:]}"
    out = home.desk / "canonical"
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}
    shutil.rmtree(out)
    return digests


def written_elsewhere(folder: Path, expected: dict[str, str]) -> Iterator[str]:
    """Yield whether the samples in a folder, which is removed, are not the expected ones; without a folder, nothing."""
    if folder.exists():
        digest = hashlib.sha256((folder / "samples.csv").read_bytes()).hexdigest()
        if expected and digest != expected.get("samples.csv"):
            yield f"export: {folder.name} differs from the run that it is a copy or a repetition of"
        shutil.rmtree(folder)


def files(home: Home, since: float) -> Iterator[str]:
    """Yield temporary files that nobody owns, keys in files that were written since then, open modes, and writes elsewhere."""
    key = home.key.encode()
    for folder, folders, names in os.walk(home.user):
        inside = Path(folder).relative_to(home.user)
        for name in (*folders, *names):
            if _TEMPORARY.search(name):
                yield f"leftover: {inside / name}"
        for name in names:
            yield from _file(Path(folder) / name, str(inside / name), since, key)
    for place in _PRIVATE:
        if (home.user / place).exists() and stat.S_IMODE((home.user / place).stat().st_mode) != 0o700:
            yield f"mode: {place} is {stat.S_IMODE((home.user / place).stat().st_mode):o}"
    for path in home.tmp.iterdir():
        yield f"leftover: tmp/{path.name}"
    for path in home.folder.iterdir():  # also what a process in another language wrote, or one that was killed at once
        if path not in (home.user, home.io, home.outside):
            yield f"outside: {path.name} is beside the home"
    if home.outside.exists():
        for line in sorted({*home.outside.read_text("utf-8").splitlines()}):
            yield f"outside: {line}"
        home.outside.unlink()


def _file(path: Path, name: str, since: float, key: bytes) -> Iterator[str]:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_ctime < since:
            return
        if key in path.read_bytes():
            yield f"key: {name} holds it"
    except FileNotFoundError:
        return
    if name.startswith(_PRIVATE[0]) and stat.S_IMODE(status.st_mode) != 0o600:
        yield f"mode: {name} is {stat.S_IMODE(status.st_mode):o}"


def outputs(home: Home, step: Step, results: list[Result]) -> Iterator[str]:
    """Yield keys in what commands printed."""
    for result in results:
        if home.key in result.out + result.err:
            yield f"key: {step.action} prints it"
