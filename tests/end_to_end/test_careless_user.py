"""Malicious run folders, and a user who tries every command on them: nothing outside changes."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.store.run_store import RunStore
from tests.app.store.test_ownership import ASKED
from tests.support.command import Rashomon
from tests.support.decoy import Outside
from tests.support.fault_server import FaultServer
from tests.support.inside import run_inside
from tests.support.old_runs import sealed
from tests.support.sampled import some_fast
from tests.support.trust import receive, tree

KEY = "endpoint-key-0123456789abcdef"
LINE = "ssh-ed25519 AAAA theirs"
HOSTILE = f"x\n{LINE}\n\x1b[2J"
"""Outside text that would be a line of its own in a log, and steer a terminal."""


class Attack:
    """An attacker's means: the run's folder, a target folder of the user's, and a server."""

    def __init__(self, folder: Path, outside: Outside, server: FaultServer) -> None:
        self.folder, self.outside, self.server = folder, outside, server
        with RunStore.read(folder) as store:
            self.spec, self.identity = store.meta("spec"), store.meta("identity")

    def values(self, **values: Any) -> None:
        """Store values in the run, on the attacker's machine."""
        receive(self.folder, **values)

    def instance(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the body of an instance, and have the digests fit."""
        with sealed(self.folder) as database:
            for ordinal, body in database.execute("SELECT ordinal, body FROM instance WHERE ordinal = 1").fetchall():
                changed = json.loads(body)
                change(changed)
                database.execute("UPDATE instance SET body = ? WHERE ordinal = ?", (json.dumps(changed), ordinal))
        self.values()

    def log(self) -> None:
        """The log is a link to a file of keys, and values of the spec are lines of such a file."""
        (self.folder / "worker.log").symlink_to(self.outside.path / "authorized_keys")
        self.values(spec={**self.spec, "model": f"policy:{HOSTILE}", "judge": [HOSTILE]})

    def lock(self) -> None:
        """Replace the file that a command truncates on start by a link."""
        for name in ("lock", "pause", "under-way.json", "parity.log"):
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / name).symlink_to(self.outside.path / "authorized_keys")
        (self.folder / "probes").symlink_to(self.outside.path / "folder")
        self.values()

    def part(self) -> None:
        """A traceback would quote the key of a part."""
        self.instance(lambda body: body["parts"].append({HOSTILE: 1}))

    def media(self) -> None:
        """Media are devices, by names that are no digests."""
        (self.folder / "media").symlink_to("/dev")
        self.instance(lambda body: body["parts"].append({"sha256": "/dev/zero", "suffix": ""}))

    def data(self) -> None:
        """The build is the system's folder."""
        self.values(data="/etc", spec={**self.spec, "data": "/etc"})

    def model(self) -> None:
        """The model is asked at the attacker's address."""
        word = f"endpoint:m@{self.server.url}"
        self.values(spec={**self.spec, "model": word}, identity={**self.identity, "model": word})

    def judge(self) -> None:
        """A judge is asked at the attacker's address."""
        self.values(spec={**self.spec, "judge": ["match", f"endpoint:j@{self.server.url}"]})

    def name(self) -> None:
        """The folder's name is a line of its own and steers the terminal."""
        self.values()
        self.folder = self.folder.rename(self.folder.with_name(f"x\n{LINE}\x1b[2J"))


ATTACKS = ("log", "lock", "part", "media", "data", "model", "judge", "name")


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two runs of this machine, one of them half answered."""
    folder = tmp_path_factory.mktemp("careless")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    for name in ("mine", "theirs"):
        Rashomon(folder).run(*ASKED, "--limit", "2", "--name", name)
    with sqlite3.connect(folder / "workspace" / "runs" / "theirs" / "run.sqlite") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.mark.parametrize("kind", some_fast(ATTACKS, 3))
def test_malicious_run_never_affects_outside_files(home: Path, tmp_path: Path, kind: str) -> None:
    shutil.copytree(home / "workspace", tmp_path / "workspace")
    rashomon, outside = Rashomon(tmp_path), Outside(tmp_path / "outside")
    environment = {**rashomon.environment, "RASHOMON_ENDPOINT_KEY": KEY}

    def run(*arguments: str | Path) -> int:
        code, out, err = run_inside([*map(str, arguments)], environment, tmp_path)
        assert code in (0, 1, 2, 3), (arguments, out, err)
        assert "Traceback" not in err, (arguments, err)
        assert "\x1b" not in out + err
        assert not [line for line in (out + err).splitlines() if line.startswith(LINE)], (arguments, out, err)
        return code

    with FaultServer(agreed=False) as server:
        attack = Attack(rashomon.workspace / "runs" / "theirs", outside, server)
        getattr(attack, kind)()
        theirs, run_name = attack.folder, attack.folder.name
        before, received = outside.state(), tree(theirs)
        assert run("runs") == 0
        run("show", run_name)
        run("export", run_name, "--format", "csv,json,md", "--out", "export")
        run("compare", "mine", run_name)
        run("doctor", run_name)
        assert run("label", run_name, "--as", "me", "--n", "1", "--export", "sheet.csv") == 2
        assert run("judge", run_name, "--judge", "match", "--display", "none") == 2
        assert run("resume", run_name, "--repeat", "--display", "none") == 2
        adopted = run("adopt", run_name, "--yes", "--name", "ours")
        assert tree(theirs) == received, "it is only read"
        ours = rashomon.workspace / "runs" / "ours"
        if ours.exists():
            assert not [path for path in ours.rglob("*") if path.is_symlink()]
            assert "Traceback" not in in_processes(rashomon, environment, "resume", "ours", "--repeat")
            run("show", "ours")
            log = ours / "worker.log"
            assert not log.exists() or not [line for line in log.read_text().splitlines() if line.startswith(LINE)]
        else:
            assert adopted == 2
        assert not server.received, "no key, question or picture was sent"
    assert outside.state() == before
    assert tree(theirs) == received
    assert KEY not in shlex.join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())


def in_processes(rashomon: Rashomon, environment: dict[str, str], *arguments: str) -> str:
    """Run a command and its worker in their own processes, and return the output."""
    done = subprocess.run(
        rashomon.command(*arguments),
        env=environment,
        cwd=rashomon.home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (0, 1, 2, 3), done.stderr
    return done.stdout + done.stderr
