"""CONTRIBUTING.md's worked example, followed to the letter in a copy of the packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("app", "benchmarks", "judges", "mlx_backends", "tests")
LISTS = ("tests/app/new_run/test_choices.py", "tests/app/report/test_published.py")
"""Existing tests that know all benchmarks."""
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block that has a name: its language, the name, and what stands in it."""

    language: str
    name: str
    content: str


def blocks() -> list[Block]:
    """The named blocks of CONTRIBUTING.md."""
    return [Block(*found.groups()) for found in _BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8"))]


def added_lines(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+")]


def apply(diff: str, file: Path) -> None:
    """Add a block's lines with ``+`` behind the line before them, which must stand in the file once."""
    after, *added = diff.splitlines()
    assert after.startswith(" ")
    assert all(line.startswith("+") for line in added)
    content = file.read_text("utf-8")
    assert content.count(f"\n{after[1:]}\n") == 1
    whole = "\n".join([after[1:], *added_lines(diff)])
    file.write_text(content.replace(f"\n{after[1:]}\n", f"\n{whole}\n"), "utf-8")


@dataclass(frozen=True)
class Contributed:
    """A copy of the packages with what the example adds."""

    path: Path

    def run(self, line: str, code: int = 0) -> str:
        """Run a command line of the document; what it prints."""
        command = line.replace("rashomon", f"{sys.executable} -m app.main", 1).split()
        done = subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path / "home"),
            "RASHOMON_WORKSPACE": str(self.path / "workspace"),
            "PYTHONPATH": str(self.path),
            "PYTHONPYCACHEPREFIX": str(self.path / "bytecode"),
            "COLUMNS": "200",
        }


@pytest.fixture(scope="module")
def contributed(tmp_path_factory: pytest.TempPathFactory) -> Contributed:
    tree = tmp_path_factory.mktemp("clone")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "assets").symlink_to(ROOT / "assets")
    shutil.copy(ROOT / "pyproject.toml", tree)
    for block in blocks():
        if block.language in ("python", "json"):
            assert not (tree / block.name).exists()
            (tree / block.name).write_text(block.content, "utf-8")
        elif block.language == "diff":
            apply(block.content, tree / block.name)
    return Contributed(tree)


def test_the_example_is_listed_built_run_judged_and_shown(contributed: Contributed) -> None:
    (commands,) = (block.content.splitlines() for block in blocks() if block.name == "example")
    told = {line.split("rashomon ", 1)[1].split()[0]: "" for line in commands}
    for line in commands:
        told[line.split("rashomon ", 1)[1].split()[0]] += contributed.run(line)
    assert "two-notes  Two notes: the newer one is right" in told["benchmarks"]
    assert "which-note@1" in told["judges"]
    assert "4 instances" in told["build"]
    shown = contributed.run("rashomon show two-notes-parrot-newer two-notes-parrot-older --json")
    (main,) = (table for table in json.loads(shown) if table["name"] == "main")
    shares = [[cell["value"] for cell in row["cells"].values()] for row in main["rows"]]
    assert shares == [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert "OLDER" in told["show"]


def test_the_example_fails_as_everything_else_does(contributed: Contributed) -> None:
    contributed.run("rashomon --batch --benchmark two-notes --model parrot:green", code=2)
    contributed.run("rashomon build two-notes --source notes=nowhere.jsonl", code=2)
    (contributed.path / "bad.jsonl").write_text('{"question": "?"}\nnot json\n')
    contributed.run("rashomon build two-notes --source notes=bad.jsonl --out bad", code=2)
    assert not (contributed.path / "bad").exists()


@pytest.mark.slow
def test_the_examples_own_test_passes_and_so_do_those_that_know_all_benchmarks(contributed: Contributed) -> None:
    (own,) = (block.name for block in blocks() if block.name.startswith("tests/"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", own, *LISTS],
        cwd=contributed.path,
        env=contributed.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_touches_seven_files_and_keeps_the_style(contributed: Contributed) -> None:
    named = blocks()
    diffs = [block for block in named if block.language == "diff"]
    written = [str(contributed.path / block.name) for block in named if block.language == "python"]
    assert (len(written), len(diffs)) == (4, 3)
    assert sum(len(added_lines(block.content)) for block in diffs) == 3
    for how in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *how, *written],
            cwd=contributed.path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_example_passes_the_type_checker_and_the_import_contracts(contributed: Contributed) -> None:
    modules = [block.name for block in blocks() if block.language == "python"]
    for command in ([sys.executable, "-m", "mypy", *modules], [str(Path(sys.executable).parent / "lint-imports")]):
        done = subprocess.run(
            command, cwd=contributed.path, env=contributed.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
