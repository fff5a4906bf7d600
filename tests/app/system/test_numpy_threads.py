"""Threads of numpy: one for tables, as many as there are for models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.cli import cli, run_cli
from app.engine.workers.standby_worker import worker_environment
from app.system import numpy_threads

VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@pytest.fixture(autouse=True)
def _user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user who chose the threads of MKL alone."""
    monkeypatch.setattr(numpy_threads, "_set", [])
    monkeypatch.setenv("RASHOMON_WORKSPACE", str(tmp_path))
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "4")  # so that what the test sets is undone
        monkeypatch.delenv(variable)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")


@pytest.mark.parametrize("command", ["show", "compare", "report", "learning-curve", "bundle", ""])
def test_tables_are_computed_in_one_thread_unless_the_user_says_otherwise(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.on_terminal", lambda: True)
    monkeypatch.setattr("app.tui.tui_app.open_app", lambda workspace, images: 0)
    assert run_cli([command, "--help"] if command else []) == 0
    assert [os.environ.get(name) for name in VARIABLES] == ["1", "3", "1"]
    assert [worker_environment().get(name) for name in VARIABLES] == [None, "3", None], "a model has all of them"


@pytest.mark.parametrize("command", ["batch", "judge", "train"])
def test_commands_of_models_leave_the_threads_alone(command: str) -> None:
    assert run_cli([command, "--help"]) == 0
    assert [os.environ.get(name) for name in VARIABLES] == [None, "3", None]


def test_every_command_with_tables_exists() -> None:
    from app.cli import _TABLES

    assert {name for name in _TABLES if name is not None} <= set(cli.commands)
