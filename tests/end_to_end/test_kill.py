"""SIGKILL at random moments of the build, the answers, the judging and a schema migration, then resume."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from app.engine.group_commit import GROUP_SIZE
from app.store.run_database import DATABASE
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.charts import draw_sources
from tests.support.command import Rashomon, kill_all
from tests.support.old_runs import sealed

KILLS = {"judging": 5, "build": 5, "migration": 5}
RUN = "killed"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with sources, a build of them, and an undisturbed run's canonical export in ``expected``."""
    home = tmp_path_factory.mktemp("home")
    draw_sources(home / "sources")
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--source", home / "sources")
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN, "--display", "none")
    rashomon.run("export", RUN, "--canonical", "--out", home / "expected")
    return home


def fresh(home: Path, where: Path) -> Rashomon:
    """A home of its own with the same build and no runs."""
    shutil.copytree(home / "workspace" / "benchmarks", where / "workspace" / "benchmarks")
    return Rashomon(where)


def batch(rashomon: Rashomon) -> subprocess.Popen[str]:
    return rashomon.start(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN, "--display", "json"
    )


def query(rashomon: Rashomon, sql: str) -> list[tuple[int, ...]]:
    with sqlite3.connect(rashomon.workspace / "runs" / RUN / DATABASE) as connection:
        return connection.execute(sql).fetchall()


def same_export(rashomon: Rashomon, home: Path) -> None:
    """The canonical export is byte for byte that of the undisturbed run."""
    out = rashomon.home / "export"
    rashomon.run("export", RUN, "--canonical", "--out", out)
    expected = {path.name: path.read_bytes() for path in (home / "expected").iterdir()}
    assert {path.name: path.read_bytes() for path in out.iterdir()} == expected
    assert len(expected) >= 5


def calls_in(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def more_calls_than(log: Path, count: int) -> bool:
    return len(calls_in(log)) > count


def judged_more_than(rashomon: Rashomon, count: int) -> bool:
    return query(rashomon, "SELECT count(*) FROM verdict")[0][0] > count


@pytest.mark.parametrize(
    ("kills", "seconds", "in_flight"),
    [
        (4, (0.0, 0.025), 1 + GROUP_SIZE),
        pytest.param(12, (0.0, 0.025), 1 + GROUP_SIZE, marks=pytest.mark.slow),
        pytest.param(4, (0.06, 0.09), 1, marks=pytest.mark.slow),
    ],
)
def test_killed_while_answering(
    home: Path, tmp_path: Path, kills: int, seconds: tuple[float, float], in_flight: int
) -> None:
    chance = random.Random(7)
    calls = tmp_path / "calls"
    rashomon = fresh(home, tmp_path).ordered(calls=str(calls), seconds=seconds)
    accepted: set[tuple[int, ...]] = set()
    asked_again = effective = 0
    for number in range(kills):
        process = batch(rashomon)
        if number % 4 == 0:  # anywhere, also before there is a worker or a plan
            time.sleep(chance.uniform(0, 1))
        else:
            wait_until(partial(more_calls_than, calls, len(accepted) + asked_again + chance.randrange(2, 9)))
            time.sleep(chance.uniform(0, seconds[1]))
        reported = _kill_and_last_report(process)
        if not (rashomon.workspace / "runs" / RUN / DATABASE).exists():
            continue  # killed before there was anything to lose
        durable = set(query(rashomon, "SELECT id, instance, step FROM generation WHERE accepted"))
        assert durable >= accepted, "an answer that was durable is gone"
        assert len(durable) >= reported, "an answer that was reported done is gone"
        effective += len(durable) > len(accepted)
        accepted = durable
        calls_made = calls_in(calls)
        lost = len(calls_made) - asked_again - len(durable)
        assert 0 <= lost <= in_flight
        asked_again += lost
    rashomon.run("resume", RUN, "--display", "none")
    (total,) = query(rashomon, "SELECT count(*) FROM instance")[0]
    assert effective >= kills // 2, "too few kills came while it was answering to mean anything"
    assert query(rashomon, "SELECT count(*), count(DISTINCT instance) FROM generation") == [(total, total)]
    counted = Counter(calls.read_text().splitlines())
    assert sum(counted.values()) - total == asked_again
    print(f"{kills} kills, {total} answers, {asked_again} asked again")
    same_export(rashomon, home)


@pytest.mark.slow
def test_killed_while_judging(home: Path, tmp_path: Path) -> None:
    chance = random.Random(8)
    rashomon = fresh(home, tmp_path).ordered(judge_seconds=0.1)
    Rashomon(tmp_path).run(
        "batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", RUN, "--display", "none"
    )
    with sealed(rashomon.workspace / "runs" / RUN) as database:
        database.execute("DELETE FROM verdict")
        database.execute("DELETE FROM judged")
    before = 0
    for _ in range(KILLS["judging"]):
        process = batch(rashomon)
        wait_until(partial(judged_more_than, rashomon, before + chance.randrange(12)))
        time.sleep(chance.uniform(0, 0.05))
        _kill_and_last_report(process)
        ((judged,),) = query(rashomon, "SELECT count(*) FROM verdict")
        assert judged > before, "a verdict that was durable is gone"
        before = judged
    assert before < query(rashomon, "SELECT count(*) FROM instance")[0][0], "every kill came while there was work to do"
    rashomon.ordered().run("resume", RUN, "--display", "none")
    same_export(rashomon, home)


def test_killed_while_building(home: Path, tmp_path: Path) -> None:
    chance = random.Random(9)
    rashomon = Rashomon(tmp_path)
    out = tmp_path / "built"
    slow = rashomon.ordered(row_seconds=0.003)
    hidden = tmp_path / ".built.building" / "instances.jsonl"
    hits = 0
    for _ in range(KILLS["build"]):
        process = slow.start("build", "cmc-bench", "--source", home / "sources", "--out", out)
        wait_until(hidden.exists)
        time.sleep(chance.uniform(0, 0.6))
        kill_all(process)
        assert not out.exists() or (out / "manifest.json").exists(), "half a build looks like a build"
        hits += hidden.exists()
        if out.exists():
            shutil.rmtree(out)
    assert hits > KILLS["build"] // 2, "most kills came while it was being built"
    rashomon.run("build", "cmc-bench", "--source", home / "sources", "--out", out)
    files = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    expected = home / "workspace" / "benchmarks" / "cmc-bench"
    assert files == {path.relative_to(expected): path.read_bytes() for path in expected.rglob("*") if path.is_file()}
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".building")]


@pytest.mark.slow
def test_killed_while_the_schema_is_migrated(home: Path, tmp_path: Path) -> None:
    chance = random.Random(10)
    rashomon = Rashomon(tmp_path)
    shutil.copytree(home / "workspace", tmp_path / "workspace")
    rows = query(rashomon, "SELECT id, instance, step, accepted FROM generation ORDER BY id")
    ((version,),) = query(rashomon, "PRAGMA user_version")
    migrating = rashomon.ordered(migration=True)
    command = ("judge", RUN, "--judge", "match", "--retry-failed", "--display", "none")  # it writes, if only the schema
    run = tmp_path / "workspace" / "runs" / RUN
    log = run / (DATABASE + "-wal")
    hits = 0
    for _ in range(KILLS["migration"]):
        shutil.rmtree(run)
        shutil.copytree(home / "workspace" / "runs" / RUN, run)
        process = migrating.start(*command)
        wait_until(log.exists)
        time.sleep(chance.uniform(0, 1.2))
        kill_all(process)
        ((now,),) = query(rashomon, "PRAGMA user_version")
        hits += now == version
        tables = query(rashomon, "SELECT count(*) FROM sqlite_schema WHERE name IN ('slow', 'copied', 'slower')")
        assert (now, tables) in [(version, [(0,)]), (version + 1, [(3,)])], "half a migration"
        assert query(rashomon, "SELECT id, instance, step, accepted FROM generation ORDER BY id") == rows
    assert hits > KILLS["migration"] // 3, "the kills came too late to mean anything"
    migrating.run(*command)
    assert query(rashomon, "PRAGMA user_version") == [(version + 1,)]
    same_export(migrating, home)


def _kill_and_last_report(process: subprocess.Popen[str]) -> int:
    """Kill a batch and its worker, and return the number of answers it had reported done."""
    out = kill_all(process)
    reports = [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    return max((int(report["done"]) for report in reports), default=0)


@pytest.mark.slow
def test_a_signal_after_the_last_line_changes_no_exit_code(tmp_path: Path) -> None:
    """The interpreter drops the handlers of signals while it ends, which takes a tenth of a second."""
    chance = random.Random(1)
    codes = list[int | None]()
    for number in range(24):
        process = Rashomon(tmp_path).start("--version")
        assert process.stdout is not None
        assert process.stdout.readline()
        time.sleep(0.15 * chance.random())
        process.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[number % 3])
        process.communicate()
        codes.append(process.returncode)
    assert set(codes) == {0}
