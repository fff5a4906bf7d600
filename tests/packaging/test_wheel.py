"""The wheel, built and installed beside the libraries of this environment, far from the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.wheel import FOLDERS, MAX_BYTES, sizes

pytestmark = pytest.mark.slow

SCRIPT = '''
"""A user's script: every value has a type, under both names."""

from pathlib import Path
from typing import assert_type

import rashomon
from benchmarks.vocabulary import Table
from rashomon.app.report.tables.run_tables import tables_of
from rashomon.benchmarks.registry import get_benchmark
from rashomon.benchmarks.vocabulary import Estimate, Record
from rashomon.judges.base import FunctionJudge


class Short:
    """IMAGE for a short answer."""

    name = "short"
    version = "1"
    benchmarks = ("cmc-bench",)

    def label(self, record: Record) -> str | None:
        return "IMAGE" if record.answer and len(record.answer.text) < 5 else None


class Wrong:
    name = "wrong"
    version = "1"
    benchmarks = ("cmc-bench",)


workspace = rashomon.open("somewhere")
started = workspace.start(benchmark="cmc-bench", model=["policy:random"], limit=3, strata={"type": ["factual"]})
for run in started.wait(timeout=60):
    assert_type(run, rashomon.Run)
    for record in run.records():
        assert_type(record, rashomon.Record)
    table = run.table("main", published=True)
    cell = table.cell(table.rows[0], "Aligned")
    if isinstance(cell, rashomon.Estimate):
        assert_type(cell, Estimate)
        assert_type(cell.value, float | None)
    assert_type(table.table, Table)
    table.plot().axes[0].set_title("Mine")
    run.judge(rashomon.register_judge(Short)())
    count: int = run.judge(Short())
tables: list[Table] = tables_of([Path("run")])
names: tuple[str, ...] = get_benchmark("cmc-bench").conditions
judge: rashomon.FunctionJudge | None = None
other_name: FunctionJudge | None = judge
version: str = rashomon.__version__
'''

MISTAKES = """
import rashomon

workspace = rashomon.open(3)
workspace.start(limits=3)
workspace.start(limit="3")
workspace.run("a").table().nothing
workspace.run("a").judge("match")
rashomon.opne("a")
"""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel: pip's result, without its downloads."""

    path: Path

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.path), "platbase": str(self.path)}))

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run its Python in an empty folder, and nothing of this process's surroundings."""
        variables = {"HOME": str(self.path), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(self.path / "state")}
        elsewhere = self.path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return subprocess.run(
            [self.python, *arguments], cwd=elsewhere, env=variables, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    installed = Installed(tmp_path_factory.mktemp("environment"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", installed.path], check=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed.packages)
    # Libraries come from this environment; what is installed there in editable form does not.
    (installed.packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return installed


def test_the_wheel_is_small_and_complete(wheel: Path) -> None:
    folders = {name.partition("/")[0] for name in sizes(wheel)}
    assert {name for name in folders if not name.endswith(".dist-info")} == FOLDERS
    assert wheel.stat().st_size < MAX_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert "rashomon = rashomon.__main__:main" in entry_points
    for package in ("app", "benchmarks", "judges", "mlx_backends"):
        modules = {f"{path.relative_to(ROOT).with_suffix('')}" for path in (ROOT / package).rglob("*.py")}
        assert {f"{module}.py" for module in modules} <= names
        assert {f"rashomon/{module}.pyi" for module in modules} <= names
        assert f"{package}/py.typed" in names
    assert "rashomon/py.typed" in names
    assert "assets/demo/model-4bit/model.safetensors" in names
    assert {f"judges/examination/{name}.jsonl" for name in ("labelled_set", "hostile_answers")} <= names


def test_the_installed_command_works_far_from_the_repository(installed: Installed) -> None:
    result = installed.run("-m", "rashomon", "--version")
    assert result.stdout.startswith("rashomon "), result.stderr
    checks = {
        item["check"]: item for item in json.loads(installed.run("-m", "rashomon", "doctor", "--json").stdout)["result"]
    }
    assert checks["names"]["ok"]
    assert checks["demo"]["ok"]
    script = """
import rashomon, benchmarks.vocabulary, rashomon.benchmarks.vocabulary, pathlib
assert rashomon.benchmarks.vocabulary is benchmarks.vocabulary
print(pathlib.Path(benchmarks.vocabulary.__file__).parents[1], rashomon.demo_model())
"""
    assert installed.run("-c", script).stdout.split() == [
        str(installed.packages),
        str(installed.packages / "assets" / "demo" / "model-4bit"),
    ]


@contextmanager
def other_app(packages: Path) -> Iterator[None]:
    """Install another package called ``app`` as pip does: its files replace Rashomon's of the same name."""
    files = {packages / "app" / "__init__.py": b"", packages / "app" / "main.py": b"def main():\n    print('theirs')\n"}
    before = {path: path.read_bytes() for path in files}
    try:
        for path, content in files.items():
            path.write_bytes(content)
        yield
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def test_another_app_in_the_same_environment_is_noticed(installed: Installed) -> None:
    with other_app(installed.packages):
        result = installed.run("-m", "rashomon", "--version")
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        script = """
import rashomon
import rashomon.benchmarks.registry
try:
    rashomon.open()
except rashomon.CollisionError as error:
    print(len(rashomon.benchmarks.registry.benchmark_names()) > 5)
"""
        result = installed.run("-c", script)
        assert (result.stdout, result.stderr) == ("True\n", "")
    assert installed.run("-m", "rashomon", "--version").returncode == 0


def check_types(installed: Installed, text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(text, "utf-8")
    options = ["--strict", "--python-executable", str(installed.python), "--cache-dir", str(installed.path / "mypy")]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, "script.py"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_users_script_passes_the_strict_type_checker(installed: Installed, tmp_path: Path) -> None:
    result = check_types(installed, SCRIPT, tmp_path)
    assert result.returncode == 0, result.stdout


def test_a_users_mistakes_do_not(installed: Installed, tmp_path: Path) -> None:
    result = check_types(installed, MISTAKES, tmp_path)
    lines = [int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line]
    assert sorted(set(lines)) == [4, 5, 6, 7, 8, 9], result.stdout


def test_all_that_can_be_measured_is_from_the_wheel_with_an_empty_home(installed: Installed) -> None:
    result = installed.run("-m", "rashomon", "doctor", "--full")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    skipped = {"pilot"} if sys.platform == "darwin" else {"metal", "pilot"}
    assert {name for state, name, *_ in lines if state == "skipped"} == skipped
    assert {name for state, name, *_ in lines if state == "ok"} >= {"demo", "tokens", "memory", "speed", "report"}
    report = installed.path / "elsewhere" / "rashomon-report.txt"
    assert "the demo's model: of 20 answers, 20 one at a time and 20 as in a run" in report.read_text()
    assert installed.run("-m", "rashomon", "doctor", "--read", report).returncode == 0
