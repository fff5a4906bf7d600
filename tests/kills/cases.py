"""The commands that are ended: the home that each begins in, what it leaves, and the phase that a home is in."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.app.commands.data_and_models.test_get import tiny_model
from tests.app.commands.sharing.test_push_command import NAME
from tests.support.adapters import make_adapter
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT, write_table
from tests.support.fake_hub import FakeHub
from tests.support.old_runs import sealed
from tests.support.trainings import write_training_set
from tests.support.upload_hub import TOKEN, UploadHub

RUN = "killed"
SEEN = "base"
_ROWS = 4


@dataclass(frozen=True)
class Case:
    """A command. ``target`` is what it writes, a path below the home; ``runs`` the name of the run that it makes or judges.

    ``reached`` is the phase of a home by what a user could see there. ``codes`` are those of an end that nothing disturbs. A
    target that is ``whole`` appears at once; another one is a folder of files that each do. A command that starts no
    processes may be ``forked``.
    """

    name: str
    words: tuple[str, ...]
    target: str = ""
    run: str = ""
    codes: tuple[int, ...] = (0,)
    whole: bool = True
    same_bytes: bool = True
    prepare: Callable[[Path], None] = lambda home: None
    orders: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    weight: int = 1
    forked: bool = False


def make_home(home: Path) -> None:
    """Make the home that all commands begin in: sources, a question set, a build, two runs, an adapter and its data."""
    home.mkdir(parents=True)
    (home / "tmp").mkdir()
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--from", write_table(home, _ROWS))
    draw_sources(home / "sources")
    rashomon.run("build", "cmc-bench", "--source", "sources", "--out", "sourced")
    for name, policy in ((SEEN, "policy:always-text"), ("other", "policy:uniform")):
        rashomon.run(*_batch(policy, name))
    samples = home / "samples"
    rashomon.run("export", SEEN, "--format", "json", "--out", samples)
    lines = (samples / "samples.jsonl").read_text().splitlines()
    answers = [{"id": sample["id"], "answer": sample["answer"]} for sample in map(json.loads, lines)]
    (home / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    shutil.rmtree(samples)
    write_training_set(home / "rows", rows=6, validation=2)
    make_adapter(FOUR_BIT, home / "adapter")
    with sealed(home / "workspace" / "runs" / "other") as database:
        database.execute("DELETE FROM verdict")
        database.execute("DELETE FROM judged")
        database.execute("UPDATE meta SET value = ? WHERE key = 'state'", ('{"state": "interrupted"}',))


def _batch(model: str, name: str) -> tuple[str, ...]:
    return (
        "batch",
        "--benchmark",
        "cmc-bench",
        "--data",
        "charts",
        "--model",
        model,
        "--name",
        name,
        "--display",
        "none",
    )


def _edit_table(home: Path) -> None:
    write_table(home, _ROWS + 2)


def cases(hub: FakeHub, uploads: UploadHub) -> tuple[Case, ...]:
    """Return all commands; ``hub`` serves a model, and ``uploads`` takes data sets."""
    tiny_model(hub)
    sending = {"HF_ENDPOINT": uploads.url, "HF_HUB_OFFLINE": "0", "HF_TOKEN": TOKEN, "NO_PROXY": "*"}
    training = ("train", "--model", str(FOUR_BIT), "--data", "rows", "--name", "t", "--steps", "6", "--batch-size", "1")
    return (
        Case("build", ("build", "cmc-bench", "--source", "sources", "--out", "built"), "built", weight=10),
        Case(
            "build --from",
            ("build", "cmc-bench", "--from", "charts.csv"),
            "workspace/sets/charts/2",
            weight=10,
            prepare=_edit_table,
        ),
        Case(
            "import",
            (
                "import",
                "answers.jsonl",
                "--benchmark",
                "cmc-bench",
                "--data",
                "charts",
                "--model",
                "m",
                "--name",
                RUN,
                "--display",
                "none",
            ),
            run=RUN,
            weight=12,
            orders={"judge_seconds": 0.01},
        ),
        Case(
            "judge",
            ("judge", "other", "--judge", "match", "--display", "none"),
            run="other",
            weight=10,
            orders={"judge_seconds": 0.01},
        ),
        Case("batch", _batch("policy:always-image", RUN), run=RUN, weight=12, orders={"seconds": (0.0, 0.02)}),
        Case(
            "try",
            ("try", "policy:always-image", "--set", "charts", "--display", "none"),
            codes=(0, 5, 6),
            weight=8,
            orders={"seconds": (0.0, 0.01)},
        ),
        Case(
            "bundle",
            ("bundle", SEEN, "--media", "all", "--out", "runs.rashomon"),
            "runs.rashomon",
            forked=True,
            weight=12,
        ),
        Case("view --save", ("view", SEEN, "--save", "page.html"), "page.html", forked=True, weight=8),
        Case("export", ("export", SEEN, "--canonical", "--out", "out"), "out", whole=False, forked=True, weight=8),
        Case(
            "report",
            ("report", SEEN, "--out", "written"),
            "written",
            whole=False,
            same_bytes=False,
            forked=True,
            weight=5,
        ),
        Case(
            "training",
            ("training", "cmc-bench", "--data", "sourced", "--out", "set"),
            "set",
            codes=(0, 2),  # 2: the set is complete, and is not written again
            forked=True,
            weight=8,
        ),
        Case("push", ("push", SEEN, f"hub:{NAME}", "--yes"), weight=5, variables=sending),
        Case("push --out", ("push", SEEN, f"hub:{NAME}", "--out", "look"), "look", whole=False, forked=True, weight=4),
        Case("models get", ("models", "get", "org/tiny", "--yes"), weight=5, variables=hub.variables),
        Case(
            "models fuse",
            ("models", "fuse", str(FOUR_BIT), "--adapter", "adapter", "--to", "fused", "--no-check"),
            "fused",
            weight=5,
        ),
        Case("train", training, "workspace/trainings/t/adapter", whole=False, codes=(0, 5, 6), weight=4),
    )


def hear_hangups() -> None:
    """Do not ignore SIGHUP, as a process does whose parent ``nohup`` has started."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def contents(path: Path) -> dict[str, str]:
    """Return the sha256 of each file below ``path``, or of itself, by its relative path; empty where there is nothing."""
    if path.is_file():
        return {"": hashlib.sha256(path.read_bytes()).hexdigest()}
    files = [file for file in path.rglob("*") if file.is_file()]
    return {file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def names(home: Path) -> set[str]:
    """Return the names of everything below ``home``, but for what libraries and locks keep there."""
    return {
        path.relative_to(home).as_posix()
        for path in home.rglob("*")
        if not any(part in _OTHERS for part in path.relative_to(home).parts) and path.name not in _VARYING
    }


_OTHERS = ("matplotlib", "fontconfig", "mlx", "__pycache__", ".cache", "xet", "rashomon-logs")
_VARYING = (
    "run.sqlite-wal",
    "run.sqlite-shm",
    "replies.sqlite-wal",
    "replies.sqlite-shm",
    "worker.log",
    "lock",
    "parity.log",
)
