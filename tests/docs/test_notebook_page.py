"""The code of the tutorial and of the API's page, run as printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import rashomon
from app.tui.tui_processes import Job, RunProcesses
from benchmarks.plugins import find_plugins
from tests.docs.pages import ROOT, fences
from tests.support.command import Rashomon
from tests.support.inside import run_inside
from tests.support.notebook import code_cells, mime_bundle, run_cells

NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"
CELLS = ["".join(cell["source"]) for cell in code_cells(json.loads(NOTEBOOK.read_text("utf-8")))]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder and an environment of its own, which the processes that the code starts inherit."""
    for name, value in Rashomon(tmp_path).environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    find_plugins.forget()


class Ended:
    """A process that has ended with ``code``."""

    def __init__(self, code: int) -> None:
        self._code = code

    def wait(self, timeout: float | None = None) -> int:
        return self._code

    def poll(self) -> int:
        return self._code


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a script starts run in this process; tests/rashomon/test_starting.py starts processes."""

    def start(processes: RunProcesses, arguments: Sequence[str]) -> Job:
        words = ["--workspace", str(processes.workspace.path), *arguments]
        code, _, errors = run_inside(words, dict(os.environ), Path.cwd())
        assert code == 0, errors
        return Job(Ended(code), Path("none.log"), arguments[0])  # type: ignore[arg-type]

    monkeypatch.setattr(RunProcesses, "start_job", start)


def displayed(cells: list[str]) -> list[dict[str, str]]:
    """Run cells, and return what each displays."""
    return [{} if value is None else mime_bundle(value) for value in run_cells(cells)]


@pytest.mark.slow
def test_the_tutorial_runs_with_the_demo_model() -> None:
    bundles = displayed(CELLS)
    stored = [output for cell in code_cells(json.loads(NOTEBOOK.read_text("utf-8"))) for output in cell["outputs"]]
    assert [set(bundle) for bundle in bundles if bundle] == [set(output["data"]) for output in stored]
    assert sum("model-4bit" in bundle.get("text/html", "") for bundle in bundles) >= 3


@pytest.mark.usefixtures("here")
def test_the_tutorial_runs_with_a_policy_in_place_of_the_model() -> None:
    policy = "policy:random"
    cells = [cell.replace("rashomon.demo_model()", repr(policy)).replace("model-4bit", policy) for cell in CELLS]
    assert policy in "".join(cells)
    bundles = displayed(cells)
    assert sum("image/png" in bundle for bundle in bundles) == 1
    assert sum("text/html" in bundle for bundle in bundles) >= 5


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_code_of_the_api_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rashomon, "demo_model", lambda: "policy:always-text")
    cells = [text for _, _, text in fences("docs/api.md", "python")]
    assert len(cells) >= 6
    displayed(cells)
    assert Path("labels.pdf").stat().st_size > 1000
