"""Runs that a script starts: options, own judges and benchmarks in workers, errors, and the wait for the end."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import rashomon
from app.cli.run_commands import batch
from app.store.workspace import Workspace as Folders
from benchmarks.errors import SpecError
from benchmarks.plugins import find_plugins
from rashomon.starting import BatchOptions
from tests.support.command import Rashomon
from tests.support.runs import instances, make_run, says
from tests.test_contributing import blocks

JUDGE = '''
import rashomon


class Longest:
    """TEXT for a long answer, IMAGE for a short one."""

    name = "longest"
    version = "2"
    benchmarks = ("cmc-bench",)

    def label(self, record: rashomon.Record) -> str | None:
        return "TEXT" if record.answer and len(record.answer.text) > 3 else "IMAGE"
'''


@pytest.fixture
def home(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


@pytest.fixture
def workspace(built: Path, home: Rashomon, monkeypatch: pytest.MonkeyPatch) -> Iterator[rashomon.Workspace]:
    """A workspace with CMC-Bench from drawn charts, in an environment without a network, and no plugins of scripts."""
    shutil.copytree(built, home.workspace / "benchmarks")
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(find_plugins.VARIABLE, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    find_plugins.forget()
    yield rashomon.open(home.workspace)
    monkeypatch.undo()
    find_plugins.forget()


def write_module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a module that only this process can import by its own means."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module(name)


def test_a_name_with_the_time_is_that_of_the_run_that_is_started(workspace: rashomon.Workspace, home: Rashomon) -> None:
    started = workspace.start(benchmark="cmc-bench", model="policy:always-image", limit=1, name="night-{date}-{time}")
    started.wait()
    assert [run.name for run in started.runs] == Folders(home.workspace).run_names()


def test_policies_from_start_to_tables(workspace: rashomon.Workspace) -> None:
    started = workspace.start(
        benchmark="cmc-bench",
        model=["policy:always-image", "policy:always-text"],
        limit=4,
        conditions="image-correct",
        strata={"type": ["factual", "temporal"]},
        judge="match",
    )
    assert [run.spec["limit"] for run in started.wait()] == [4, 4]
    assert not started.running
    assert [run.state for run in started.runs] == ["done", "done"]
    table = started.runs.tables().main
    values = {row: table.cell(row, "Img-Cor") for row in table.rows}
    assert {row: cell.value for row, cell in values.items() if isinstance(cell, rashomon.Estimate)} == {
        "policy:always-image": 1,
        "policy:always-text": 0,
    }
    assert {record.instance.condition for record in started.runs[0].records()} == {"image-correct"}


def test_runs_are_stopped_and_resumed(
    workspace: rashomon.Workspace, home: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.held().environment.items():
        monkeypatch.setenv(name, value)
    started = workspace.start(benchmark="cmc-bench", model="policy:always-text", limit=3)
    (run,) = started.runs
    with pytest.raises(TimeoutError):
        started.wait(timeout=0.1)
    wait_until(lambda: run.summary().problem is None and run.done >= 8)
    assert started.running
    started.stop()
    assert run.state == "interrupted"
    with pytest.raises(rashomon.RunFailedError):
        started.wait()
    home.go_on()
    workspace.resume(run.name).wait()
    assert run.done == run.total > 8


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until ``condition``, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_registered_judge_labels_in_the_worker_and_an_unknown_one_is_an_error(
    workspace: rashomon.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = write_module(tmp_path / "mine", "my_judges", JUDGE, monkeypatch)
    assert rashomon.register_judge(module.Longest) is module.Longest
    rashomon.register_judge(module.Longest)  # as a cell that is run again does
    (run,) = workspace.start(
        benchmark="cmc-bench", model="policy:always-image", limit=2, judge=["longest", "match"]
    ).wait()
    assert run.records().judge == "longest@2"
    assert set(run.records().arrow()["label"].to_pylist()) <= {"TEXT", "IMAGE"}
    assert run.tables(judge="match").main.rows
    with pytest.raises(rashomon.RashomonError) as error:
        workspace.judge(run.name, "nobody").wait()
    assert error.value.exit_code == 2


def test_a_registered_benchmark_is_built_run_and_shown(
    workspace: rashomon.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {block.name: block.content for block in blocks()}
    modules = {
        name: write_module(tmp_path / "mine", f"two_notes_{name}", files[f"two_notes/{name}.py"], monkeypatch)
        for name in ("benchmark", "judge", "engine")
    }
    rashomon.register_judge(modules["judge"].WhichNote)
    rashomon.register_benchmark(modules["benchmark"].TwoNotes)
    find_plugins.register("rashomon.engines", "parrot", "two_notes_engine:ParrotEngine", str(tmp_path / "mine"))
    (tmp_path / "notes.jsonl").write_text(files["notes.jsonl"], "utf-8")
    workspace.build("two-notes", {"notes": tmp_path / "notes.jsonl"})
    (run,) = workspace.start(benchmark="two-notes", model="parrot:newer").wait()
    assert run.done == run.total == 4
    newer = run.table().cell("parrot:newer / disagree", "NEWER")
    assert isinstance(newer, rashomon.Estimate)
    assert newer.value == 1


def test_what_cannot_be_registered_says_so(workspace: rashomon.Workspace) -> None:
    class Local:
        name = "local"
        version = "1"
        benchmarks = ("cmc-bench",)

        def label(self, record: rashomon.Record) -> str | None:
            return None

    with pytest.raises(rashomon.RashomonError):
        rashomon.register_judge(Local)
    with pytest.raises(rashomon.RashomonError):
        rashomon.register_judge(import_module("judges.clash_string_match_judge").Strict)


WRONG: dict[str, BatchOptions] = {
    "no benchmark": {"model": "policy:random"},
    "unknown benchmark": {"benchmark": "nothing", "model": "policy:random"},
    "unknown model": {"benchmark": "cmc-bench", "model": "nothing/here"},
    "unknown judge": {"benchmark": "cmc-bench", "model": "policy:random", "judge": "nobody"},
    "negative limit": {"benchmark": "cmc-bench", "model": "policy:random", "limit": -1},
    "limit is a flag": {"benchmark": "cmc-bench", "model": "policy:random", "limit": True},
    "fraction of a seed": {"benchmark": "cmc-bench", "model": "policy:random", "seed": 2.0},  # type: ignore[typeddict-item]
    "text for a number": {"benchmark": "cmc-bench", "model": "policy:random", "max_tokens": "8"},  # type: ignore[typeddict-item]
    "number of thousands of digits": {"benchmark": "cmc-bench", "model": "policy:random", "limit": 10**5000},
    "no number": {"benchmark": "cmc-bench", "model": "policy:random", "temperature": float("nan")},
    "too many restarts": {"benchmark": "cmc-bench", "model": "policy:random", "restarts": 10**30},
    "no width": {"benchmark": "cmc-bench", "model": "policy:random", "until_width": float("nan")},
    "text for a flag": {"benchmark": "cmc-bench", "model": "policy:random", "exact": "yes"},  # type: ignore[typeddict-item]
    "number for a flag": {"benchmark": "cmc-bench", "model": "policy:random", "force": 1},  # type: ignore[typeddict-item]
    "not built": {"benchmark": "clash", "model": "policy:random"},
    "unknown option": {"benchmark": "cmc-bench", "model": "policy:random", "limits": 3},  # type: ignore[typeddict-unknown-key]
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_wrong_options_raise_before_anything_runs(workspace: rashomon.Workspace, options: BatchOptions) -> None:
    with pytest.raises(rashomon.RashomonError) as error:
        workspace.start(**options)
    assert error.value.exit_code == 2
    assert not workspace.runs
    assert not list(workspace.path.glob("jobs/*"))


def test_options_are_those_of_the_command() -> None:
    known = {parameter.name for parameter in batch.params if isinstance(parameter, click.Option)}
    renamed = {"allowed": "allow_address"}
    assert {renamed.get(name or "", name) for name in known} - {"display", "dry_run", "yes"} == set(
        BatchOptions.__annotations__
    )


@pytest.mark.slow
def test_options_that_resuming_and_judging_do_not_have_raise(workspace: rashomon.Workspace) -> None:
    make_run(Folders(workspace.path), "mine", instances(1), says("12"))
    options: Any = {"workers": "ray"}
    with pytest.raises(SpecError):
        workspace.resume("mine", **options)
    with pytest.raises(SpecError):
        workspace.judge("mine", "match", **options)
    assert not list(workspace.path.glob("jobs/*"))
