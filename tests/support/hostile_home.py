"""A home with a build, runs and what commands leave there, to put decoys into."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from mlx_backends.remote.allowed_addresses import ADDRESSES_FILE
from tests.support.command import ROOT, Rashomon
from tests.support.every_command import OTHER, RUN, SEEING, THEIRS
from tests.support.trust import receive

MODEL = ROOT / "assets" / "demo" / "model-4bit"


def make_home(home: Path, built: Path, *, seeing: bool) -> None:
    """The home in which ``built`` was built, and two runs; with ``seeing`` a model's, with its probes, and a received copy."""
    shutil.copytree(built, home)
    rashomon = Rashomon(home)
    limit = ("--limit", "2", "--display", "none")
    for name, model in ((RUN, "policy:always-image"), (OTHER, "policy:always-text")):
        rashomon.run("batch", "--benchmark", "cmc-bench", "--model", model, "--name", name, *limit)
    if seeing:
        rashomon.run("batch", "--benchmark", "cmc-bench", "--model", MODEL, "--name", SEEING, *limit)
        rashomon.process("parity", SEEING, OTHER, "--probe", "2")
        theirs = home / "workspace" / "runs" / THEIRS
        shutil.copytree(theirs.with_name(SEEING), theirs)
        receive(theirs)
    shutil.copytree(os.environ["XDG_STATE_HOME"], home / "state", dirs_exist_ok=True)
    (home / "state" / "rashomon-private" / ADDRESSES_FILE).write_text("https://agreed.example:443\n")
    with sqlite3.connect(home / "workspace" / "runs" / RUN / "run.sqlite") as database:
        (home / "instance").write_text(database.execute("SELECT id FROM instance").fetchone()[0])
