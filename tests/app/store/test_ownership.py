"""A run that this machine has not made is read, and changed by nothing until it is adopted."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from app.parity import probe_store
from app.store.integrity import run_ownership
from app.store.integrity.run_ownership import ForeignRunError
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.untrusted import private_state
from tests.support.command import Rashomon
from tests.support.trust import elsewhere, receive, tree

ASKED = ("batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--display", "none")


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a finished run of this machine."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    Rashomon(folder).run(*ASKED, "--limit", "3", "--name", "mine")
    return folder


@pytest.fixture
def rashomon(home: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(home / "workspace", tmp_path / "workspace")
    return Rashomon(tmp_path)


def received(rashomon: Rashomon, **values: Any) -> Path:
    folder = rashomon.workspace / "runs" / "theirs"
    shutil.copytree(folder.with_name("mine"), folder)
    receive(folder, **values)
    return folder


CHANGES = (
    ("resume", "theirs"),
    ("resume", "theirs", "--repeat"),
    ("resume", "theirs", "--retry-errors"),
    ("resume", "theirs", "--data", "workspace/benchmarks/cmc-bench"),
    ("judge", "theirs", "--judge", "match"),
    ("judge", "theirs", "--judge", "match", "--retry-failed"),
    ("label", "theirs", "--as", "ann"),
    ("label", "theirs", "--as", "ann", "--export", "sample.csv"),
    ("label", "theirs", "--as", "ann", "--import", "labels.csv"),
    ("override", "theirs", "1", "IMAGE", "--as", "ann", "--reason", "so"),
    ("override", "theirs", "1", "--as", "ann", "--undo"),
    (*ASKED, "--limit", "3", "--name", "theirs"),
)


def test_nothing_changes_a_received_run(rashomon: Rashomon) -> None:
    folder = received(rashomon)
    (rashomon.home / "labels.csv").write_text("id,label\n")
    with RunStore.read(folder) as store:
        sample = store.ids()[0]
    before = tree(folder)
    for command in CHANGES:
        stderr = rashomon.run(*(sample if word == "1" else word for word in command), code=2).stderr
        assert stderr.count("\n") == 1, stderr
        assert f"`rashomon adopt {folder}`" in stderr, command
        assert tree(folder) == before, command


def test_a_received_run_is_shown_compared_and_exported(rashomon: Rashomon) -> None:
    folder = received(rashomon)
    before = tree(folder)
    (main,) = rashomon.json("show", "theirs", "--table", "main")["tables"]
    assert main["rows"]
    rashomon.run("compare", "mine", "theirs")
    rashomon.run("parity", "mine", "theirs", "--display", "none")
    rashomon.run("export", "theirs", "--out", "export", "--format", "csv,json")
    rashomon.run("judge", "theirs", "--judge", "match", "--dry-run")
    assert {run["name"] for run in rashomon.json("runs")} == {"mine", "theirs"}
    assert tree(folder) == before


def test_what_parity_keeps_of_a_received_run_lies_elsewhere(
    rashomon: Rashomon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = received(rashomon)
    before = tree(folder)
    probe_store.save(folder, probe_store.StoredProbes({"engine": "x"}))
    load = probe_store.load(folder)
    assert load is not None
    assert load.engine == {"engine": "x"}
    assert tree(folder) == before


def test_a_copy_on_this_machine_stays_ones_own(rashomon: Rashomon) -> None:
    mine = rashomon.workspace / "runs" / "mine"
    shutil.copytree(mine, mine.with_name("copy"))
    rashomon.run("resume", "copy", "--repeat", "--display", "none")


@pytest.mark.parametrize("key", run_ownership.SEALED)
def test_a_run_of_ones_own_that_was_altered_is_foreign(rashomon: Rashomon, key: str) -> None:
    folder = rashomon.workspace / "runs" / "mine"
    with RunStore.read(folder) as store:
        value = store.meta(key)
        before = store._sealed()[run_ownership.SEAL]
    changed = {**value, "model": "policy:always-text"} if isinstance(value, dict) else 1.5 if key == "created" else "/x"
    with RunStore._connect(folder) as store:
        store.set_meta(key, changed)
        store.set_meta(run_ownership.SEAL, json.loads(before))  # whoever alters it has no key
    with pytest.raises(ForeignRunError):
        RunStore.open(folder)
    with RunStore._connect(folder) as store:
        store.set_meta(key, value)
    RunStore.open(folder).close()


@pytest.mark.parametrize("seal", ["", "0" * 64, None, 1, [], {"a": 1}])
def test_no_other_seal_is_taken(rashomon: Rashomon, seal: Any) -> None:
    folder = rashomon.workspace / "runs" / "mine"
    with RunStore._connect(folder) as store:
        store.set_meta(run_ownership.SEAL, seal)
    with pytest.raises(ForeignRunError):
        RunStore.open(folder)


def test_what_we_change_ourselves_is_sealed_again(rashomon: Rashomon) -> None:
    folder = rashomon.workspace / "runs" / "mine"
    with RunStore.open(folder) as store:
        store.change_meta("data", lambda _: "/elsewhere")
        store.set_meta("created", 1.5)
    RunStore.open(folder).close()


def test_the_key_is_the_users_alone_and_made_once() -> None:
    with elsewhere():
        assert private_state.read("ownership.key") is None
        assert run_ownership.is_own({"id": "1", run_ownership.SEAL: '""'}) is False
        assert not private_state.state_folder().exists(), "reading makes nothing"
        seals = {run_ownership.seal({"id": "1"}) for _ in range(2)}
        assert len(seals) == 1
        key = private_state.state_folder() / "ownership.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
        assert [path.name for path in key.parent.iterdir()] == ["ownership.key"]


@pytest.mark.parametrize("instead", ["link", "fifo", "folder", "short"])
def test_what_stands_in_the_keys_place_is_refused(rashomon: Rashomon, tmp_path: Path, instead: str) -> None:
    state = tmp_path / "state" / "rashomon-private"
    state.mkdir(parents=True)
    key = state / "ownership.key"
    match instead:
        case "link":
            (tmp_path / "other").write_text("0" * 64)
            key.symlink_to(tmp_path / "other")
        case "fifo":
            os.mkfifo(key)
        case "folder":
            key.mkdir()
        case _:
            key.write_text("00")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        stderr = rashomon.run(*ASKED, "--limit", "1", "--name", "new", code=2).stderr
    assert "ownership.key" in stderr
    assert stderr.count("\n") == 1


def test_a_home_that_cannot_be_written_is_said(rashomon: Rashomon, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        stderr = rashomon.run(*ASKED, "--limit", "1", "--name", "new", code=2).stderr
        assert rashomon.run("show", "mine", "--table", "main").stdout
        assert "adopt" in rashomon.run("resume", "mine", code=2).stderr
    assert "XDG_STATE_HOME" in stderr
    assert stderr.count("\n") == 1
    assert Workspace(rashomon.workspace).run_names() == ["mine"]
