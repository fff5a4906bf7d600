"""`rashomon adopt`: a received run becomes one's own, value by value, after what it would use was shown."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from app.engine.run_plan import without_none
from app.store.run_database import DATABASE
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from tests.app.store.test_ownership import ASKED
from tests.support.command import Rashomon
from tests.support.decoy import KINDS, Outside
from tests.support.trust import elsewhere, receive, seal, tree


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a half-answered run of this machine."""
    folder = tmp_path_factory.mktemp("adopt")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    rashomon = Rashomon(folder)
    rashomon.run(*ASKED, "--limit", "4", "--name", "mine")
    return folder


@pytest.fixture
def rashomon(home: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(home / "workspace", tmp_path / "workspace")
    with RunStore.open(tmp_path / "workspace" / "runs" / "mine") as store:
        store.set_meta("data", str(tmp_path / "workspace" / "benchmarks" / "cmc-bench"))
    return Rashomon(tmp_path)


def received(rashomon: Rashomon, **values: Any) -> Path:
    """The run, moved out of the workspace as if it had come by mail."""
    folder = rashomon.home / "mail" / "theirs"
    shutil.copytree(rashomon.workspace / "runs" / "mine", folder)
    receive(folder, **values)
    return folder


def exported(rashomon: Rashomon, run: str | Path, out: str) -> dict[str, bytes]:
    rashomon.run("export", run, "--canonical", "--out", out, "--format", "csv,json")
    return {path.name: path.read_bytes() for path in (rashomon.home / out).rglob("*") if path.is_file()}


def test_what_is_valid_is_taken_over_and_can_be_gone_on_with(rashomon: Rashomon) -> None:
    folder = received(rashomon, created=1.0)
    for name in ("worker.log", "pause", "under-way.json"):
        (folder / name).symlink_to(rashomon.home / "decoy")
    (folder / "evil.txt").write_text("x")
    before = tree(folder)
    stdout = rashomon.run("adopt", folder, "--yes").stdout
    assert "policy:always-image" in stdout
    assert tree(folder) == before, "the received folder stays as it is"
    adopted = rashomon.workspace / "runs" / "theirs"
    assert {path.name for path in adopted.iterdir()} <= {DATABASE, "spec.toml"}
    theirs = exported(rashomon, folder, "a")
    ours = exported(rashomon, "theirs", "b")
    assert theirs == ours
    assert theirs, "there is something to compare"
    rashomon.run("resume", "theirs", "--repeat", "--display", "none")
    with RunStore.read(adopted) as store:
        sample = store.ids()[0]
    rashomon.run("override", "theirs", sample, "TEXT", "--as", "ann", "--reason", "so")
    assert not (rashomon.home / "decoy").exists()


def test_an_adopted_run_is_done_only_if_its_judge_was(rashomon: Rashomon) -> None:
    def adopted(name: str) -> str:
        rashomon.run("adopt", rashomon.home / "mail" / "theirs", "--yes", "--name", name)
        return read_summary(rashomon.workspace / "runs" / name).state

    with RunStore.open(rashomon.workspace / "runs" / "mine") as store:
        store.retract("match@4", instance=store.ids()[0])
    received(rashomon)
    assert adopted("unjudged") == "planned"
    rashomon.run("judge", "mine", "--judge", "match")
    shutil.rmtree(rashomon.home / "mail")
    received(rashomon)
    assert adopted("judged") == "done"


def test_nothing_is_adopted_unasked_nor_twice_under_a_name(rashomon: Rashomon) -> None:
    folder = received(rashomon, created=1.0)
    runs = rashomon.workspace / "runs"
    assert "--yes" in rashomon.run("adopt", folder, code=2).stderr
    assert [path.name for path in runs.iterdir()] == ["mine"]
    rashomon.run("adopt", folder, "--yes", "--name", "mine", code=2)
    rashomon.run("adopt", folder, "--yes", "--name", "../out", code=2)
    rashomon.run("adopt", folder, "--yes", "--name", "one")
    for again in ((), ("--yes",), ("--yes", "--name", "one")):
        assert "as one." in rashomon.run("adopt", folder, *again).stdout
    rashomon.run("adopt", folder, "--yes", "--name", "two")
    assert sorted(path.name for path in runs.iterdir()) == ["mine", "one", "two"]
    assert "was created on this machine" in rashomon.run("adopt", "one", "--yes", "--name", "copy").stdout


def test_a_run_of_the_workspace_is_not_copied_unless_it_is_damaged_or_a_name_is_asked_for(rashomon: Rashomon) -> None:
    runs = rashomon.workspace / "runs"
    for run in ("mine", "./workspace/runs/mine"):
        assert "as mine." in rashomon.run("adopt", run, "--yes").stdout
    assert [path.name for path in runs.iterdir()] == ["mine"]
    with sqlite3.connect(runs / "mine" / DATABASE) as connection:
        connection.execute(DAMAGE[0])
    connection.close()
    rashomon.run("adopt", "mine", "--yes", code=1)
    assert sorted(path.name for path in runs.iterdir()) == ["mine", "mine-adopted"]


def test_a_bundled_run_of_a_models_folder_is_not_copied_back(rashomon: Rashomon) -> None:
    folder = rashomon.workspace / "runs" / "mine"
    with RunStore._connect(folder) as store:
        for key in ("spec", "identity"):
            store.set_meta(key, {**store.meta(key), "model": "/private/models/tiny+/private/adapters/mine"})
        (folder / "spec.toml").write_text(tomli_w.dumps(without_none(store.meta("spec"))), "utf-8")
    seal(folder)
    rashomon.run("bundle", "mine", "--media", "none", "--out", "mine.zip")
    assert b"private" not in zipfile.ZipFile(rashomon.home / "mine.zip").read("runs/mine/spec.toml")
    assert "as mine." in rashomon.run("adopt", "mine.zip", "--yes").stdout
    assert "as mine." in rashomon.run("open", "mine.zip", "--import", "--yes").stdout
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]


@pytest.mark.parametrize("change", ["verdict", "answer", "damage"])
def test_other_content_under_the_same_name_is_adopted_under_its_own(rashomon: Rashomon, change: str) -> None:
    folder = received(rashomon, created=1.0)
    rashomon.run("adopt", folder, "--yes")
    with elsewhere(), RunStore._connect(folder) as store:
        if change == "verdict":
            store.retract("match@4", instance=store.ids()[0])
        elif change == "answer":
            store.repeat(["aligned"])
        else:
            store._db.execute("UPDATE verdict SET label = 'TEXT' WHERE id = 1")
    code = int(change == "damage")
    rashomon.run("adopt", folder, "--yes", code=code)
    rashomon.run("adopt", folder, "--yes")  # what was left out of a damaged run is no other content
    runs = rashomon.workspace / "runs"
    assert sorted(path.name for path in runs.iterdir()) == ["mine", "theirs", "theirs-adopted"]


def test_the_longest_name_is_kept_and_shortened_only_where_it_is_taken(rashomon: Rashomon) -> None:
    folder = received(rashomon, created=1.0)
    folder = folder.rename(folder.with_name("z" * 80))
    rashomon.run("adopt", folder, "--yes")
    with elsewhere(), RunStore._connect(folder) as store:
        store.repeat(["aligned"])
    rashomon.run("adopt", folder, "--yes")
    names = {path.name for path in (rashomon.workspace / "runs").iterdir()}
    assert names == {"mine", "z" * 80, f"{'z' * 64}-adopted"}


def test_who_would_be_asked_is_shown_with_the_address(rashomon: Rashomon) -> None:
    with RunStore.read(rashomon.workspace / "runs" / "mine") as store:
        spec = store.meta("spec")
    judge = "endpoint:j@http://collector.example:8080/v1"
    changed = {**spec, "model": "endpoint:m@https://evil.example/v1", "judge": ["match", judge, "openai:gpt-5"]}
    stdout = rashomon.run("adopt", received(rashomon, spec=changed), "--yes").stdout
    for address in ("https://evil.example:443", "http://collector.example:8080", "https://api.openai.com:443"):
        assert f"at {address}" in stdout
    assert stdout.count("new on this machine") == 2


def test_media_come_from_a_build_of_that_digest_never_from_the_runs_word(rashomon: Rashomon) -> None:
    own = rashomon.workspace / "benchmarks" / "cmc-bench"
    away = rashomon.home / "away"
    with RunStore.read(rashomon.workspace / "runs" / "mine") as store:
        spec = store.meta("spec")
    folder = received(rashomon, data=str(away), spec={**spec, "data": str(away)})
    shutil.copytree(own, away)

    def data_of(name: str) -> list[str | None]:
        with RunStore.read(rashomon.workspace / "runs" / name) as store:
            return [store.meta("data"), store.meta("spec")["data"]]

    rashomon.run("adopt", folder, "--yes", "--name", "here")
    assert data_of("here") == [str(own)] * 2
    own.rename(rashomon.home / "hidden")
    assert "was not confirmed" in rashomon.run("adopt", folder, "--yes", "--name", "nowhere").stdout
    assert data_of("nowhere") == [None, None]
    rashomon.run("adopt", folder, "--yes", "--name", "given", "--data", rashomon.home / "hidden")
    assert data_of("given") == [str(rashomon.home / "hidden")] * 2
    manifest = json.loads((away / "manifest.json").read_text())
    (away / "manifest.json").write_text(json.dumps({**manifest, "seed": 99}))
    rashomon.run("adopt", folder, "--yes", "--name", "other", "--data", away, code=2)


DAMAGE = (
    "UPDATE instance SET body = '[' WHERE ordinal = 1",
    "UPDATE instance SET body = '{}' WHERE ordinal = 1",
    "UPDATE instance SET body = json_set(body, '$.condition', 'none such') WHERE ordinal = 1",
    "UPDATE generation SET tokens = x'010203' WHERE instance = 1",
    "UPDATE generation SET request = x'00' WHERE instance = 1",
    "UPDATE generation SET step = 1 WHERE instance = 1",
    "UPDATE engine SET info = '['",
    "UPDATE verdict SET label = 'NO SUCH LABEL' WHERE id = 2",
    "UPDATE verdict SET flags = '{' WHERE id = 2",
    "UPDATE meta SET value = '[' WHERE key = 'created'",
    "UPDATE meta SET value = '[' WHERE key = 'excluded'",
    "INSERT INTO meta (key, value, digest) VALUES ('labelling human:ann@1', '[', x'00')",
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_left_out_and_said(rashomon: Rashomon, damage: str) -> None:
    folder = received(rashomon, created=1.0)
    with sqlite3.connect(folder / DATABASE) as connection:
        connection.execute(damage)
    connection.close()
    done = rashomon.run("adopt", folder, "--yes", code=1)
    assert "left out" in done.stdout
    rashomon.run("show", "theirs", "--table", "main")
    with RunStore.open(rashomon.workspace / "runs" / "theirs") as store:
        done, total = (sum(getattr(p, what) for p in store.progress()) for what in ("done", "total"))
    lost = "instance SET" in damage
    assert total == 32 - lost
    assert done == (0 if "engine SET" in damage else total - ("generation SET" in damage))


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_the_place_of_the_new_run_is_not_written_through(
    rashomon: Rashomon, tmp_path: Path, kind: str
) -> None:
    folder, outside = received(rashomon), Outside(tmp_path / "outside")
    place = rashomon.workspace / "runs" / "new"
    outside.put(place, kind)
    before = outside.state()
    rashomon.run("adopt", folder, "--yes", "--name", "new", code=2)
    assert outside.state() == before
    assert sorted(path.name for path in place.parent.iterdir()) == ["mine", "new"]
