"""CONTRIBUTING.md's worked example: its package is written, installed and used as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block that has a name: its language, the name and its content."""

    language: str
    name: str
    content: str


def blocks() -> list[Block]:
    """Return the named blocks of CONTRIBUTING.md."""
    return [Block(*match.groups()) for match in _BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8"))]


@dataclass(frozen=True)
class Package:
    """The example's package in a folder, installed into another."""

    path: Path

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )

    def run(self, line: str, code: int = 0) -> str:
        """Run a command line of the document, and return what it prints."""
        result = self.execute(*line.replace("rashomon", f"{sys.executable} -m app.main", 1).split())
        assert "Traceback" not in result.stderr, result.stderr
        assert result.returncode == code, f"{line}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path / "home"),
            "RASHOMON_WORKSPACE": str(self.path / "workspace"),
            "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
            "PYTHONPATH": f"{self.path / 'installed'}{os.pathsep}{ROOT}",
            "COLUMNS": "200",
        }


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The example's package, written from its blocks and installed by pip."""
    path = tmp_path_factory.mktemp("package")
    for block in blocks():
        if block.language in ("python", "toml", "json"):
            (path / block.name).parent.mkdir(exist_ok=True)
            (path / block.name).write_text(block.content, "utf-8")
    package = Package(path)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet")
    result = package.execute(sys.executable, "-m", "pip", "install", *offline, "--target", "installed", ".")
    assert result.returncode == 0, result.stderr
    return package


@pytest.mark.slow
def test_the_installed_example_is_listed_built_run_judged_and_shown(package: Package) -> None:
    (commands,) = (block.content.splitlines() for block in blocks() if block.name == "example")
    output = {line.split("rashomon ", 1)[1].split()[0]: "" for line in commands}
    for line in commands:
        output[line.split("rashomon ", 1)[1].split()[0]] += package.run(line)
    assert "two-notes" in output["benchmarks"]
    assert "which-note@1" in output["judges"]
    assert "4 instances" in output["build"]
    printed = json.loads(package.run("rashomon show two-notes-parrot-newer two-notes-parrot-older --json"))
    tables = printed["result"]["tables"]
    (main,) = (table for table in tables if table["name"] == "main")
    shares = [[cell["value"] for cell in row["cells"].values()] for row in main["rows"]]
    assert shares == [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert "OLDER" in output["show"]


@pytest.mark.slow
def test_example_errors_are_one_sentence(package: Package) -> None:
    package.run("rashomon --batch --benchmark two-notes --model parrot:green", code=2)
    package.run("rashomon build two-notes --source notes=nowhere.jsonl", code=2)
    (package.path / "bad.jsonl").write_text('{"question": "?"}\nnot json\n')
    package.run("rashomon build two-notes --source notes=bad.jsonl --out bad", code=2)
    assert not (package.path / "bad").exists()


@pytest.mark.slow
def test_broken_package_is_named_and_others_remain(package: Package, tmp_path: Path) -> None:
    info = package.path / "installed" / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[rashomon.benchmarks]\nbroken = nowhere:Nothing\n")
    result = package.execute(sys.executable, "-m", "app.main", "build", "broken", "--source", "x=y")
    assert result.returncode == 2
    assert "broken" in result.stderr
    assert "Traceback" not in result.stderr
    assert "4 instances" in package.run("rashomon build two-notes --source notes=notes.jsonl --out again")


@pytest.mark.slow
def test_the_examples_own_test_passes(package: Package) -> None:
    (test,) = (block.name for block in blocks() if block.name.startswith("tests/"))
    result = package.execute(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(package.path), test
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_example_keeps_the_style(package: Package) -> None:
    modules = [block.name for block in blocks() if block.language == "python"]
    assert len(modules) == 4
    settings = ("--config", str(ROOT / "pyproject.toml"))
    for command in (("check", "--ignore", "I001"), ("format", "--check")):
        result = package.execute(sys.executable, "-m", "ruff", *command, *settings, *modules)
        assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_the_example_passes_the_type_checker(package: Package) -> None:
    modules = [str(package.path / block.name) for block in blocks() if block.name.startswith("two_notes/")]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *modules], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
