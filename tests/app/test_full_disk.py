"""Commands that write to a full disk: exit code 3, one line that says what to do, and nothing half-written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kills.cases import SEEN, make_home
from tests.support.command import Rashomon
from tests.support.demo import FOUR_BIT
from tests.support.full_disk import disk

COMMANDS = {
    "build": ("build", "cmc-bench", "--source", "sources", "--out", "disk/built"),
    "bundle": ("bundle", SEEN, "--media", "all", "--out", "disk/runs.rashomon"),
    "view --save": ("view", SEEN, "--save", "disk/page.html"),
    "export": ("export", SEEN, "--out", "disk/out"),
    "report": ("report", SEEN, "--out", "disk/written"),
    "training": ("training", "cmc-bench", "--data", "sourced", "--out", "disk/set"),
    "push --out": ("push", SEEN, "hub:me/results", "--out", "disk/look"),
    "models fuse": ("models", "fuse", str(FOUR_BIT), "--adapter", "adapter", "--to", "disk/fused", "--no-check"),
    "models adapter": ("models", "adapter", "adapter", "--model", str(FOUR_BIT), "--to-peft", "disk/peft"),
    "batch": (
        "--workspace",
        "disk",
        "batch",
        "--benchmark",
        "cmc-bench",
        "--data",
        "sourced",
        "--model",
        "policy:uniform",
    ),
    "train": (
        "--workspace",
        "disk",
        "train",
        "--model",
        str(FOUR_BIT),
        "--data",
        "rows",
        "--steps",
        "2",
        "--name",
        "t",
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a full disk in it, but for a few kilobytes."""
    folder = tmp_path_factory.mktemp("full") / "home"
    make_home(folder)
    with disk(folder / "disk", "48k") as full:
        (full / "rest").write_bytes(b"0" * 24_000)
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_ends_every_command_with_3(home: Path, command: str) -> None:
    done = Rashomon(home).run(*COMMANDS[command], code=3)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("rashomon: ")]
    assert "space" in line or "room" in line or "disk" in line
    left = [path.name for path in (home / "disk").rglob("*") if path.is_file() and path.name.startswith(".")]
    assert left == []
