"""A bundle is opened without trusting it: nothing is written elsewhere, memory stays bounded, faults are one sentence."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.store.bundles.bundle_layout_and_limits import FORMAT, MANIFEST, MAX_MEMBERS, BundleError, bundled_names
from app.store.bundles.bundle_opening import open_bundle
from app.store.integrity.run_ownership import ForeignRunError
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import StoreError, StoreFullError
from tests.support.bundles import read_members, signed, zipped
from tests.support.command import ROOT, Rashomon
from tests.support.full_disk import no_room_above
from tests.support.trust import tree

pytestmark = pytest.mark.usefixtures("without_figures")

ASKED = ("batch", "--benchmark", "cmc-bench", "--limit", "3", "--display", "none", "--model")


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with two runs, and a bundle of them with all media."""
    folder = tmp_path_factory.mktemp("bundled")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    rashomon = Rashomon(folder)
    for name in ("always-image", "always-text"):
        rashomon.run(*ASKED, f"policy:{name}", "--name", name)
    rashomon.run("bundle", "always-image", "always-text", "--media", "all", "--out", "all.zip")
    return rashomon


@pytest.fixture(scope="module")
def original(home: Rashomon) -> Path:
    return home.home / "all.zip"


@pytest.fixture
def members(original: Path) -> dict[str, bytes]:
    return read_members(original)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refused(tmp_path: Path, data: bytes) -> str:
    """Return the message with which a file is refused; nothing of it is left."""
    path = tmp_path / "received.zip"
    path.write_bytes(data)
    with pytest.raises(BundleError) as refusal:
        open_bundle(path)
    assert list((tmp_path / "cache").rglob("*.*")) == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cache", "received.zip"]
    return str(refusal.value)


# --- what opens ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_opened_bundle_is_a_workspace_of_foreign_runs_that_nothing_can_write_to(original: Path) -> None:
    workspace = Workspace.open(original)
    before = tree(workspace.path)
    assert [(run.name, run.own, run.problem) for run in workspace.summaries()] == [
        ("always-image", False, None),
        ("always-text", False, None),
    ]
    assert {oct(path.stat().st_mode & 0o777) for path in workspace.path.rglob("*")} == {"0o400", "0o500"}
    with pytest.raises(StoreError):
        workspace.make()
    with pytest.raises(ForeignRunError):
        RunStore.open(workspace.runs_folder / "always-image")
    assert tree(workspace.path) == before


def test_media_are_found_beside_the_run_whatever_path_it_names(original: Path) -> None:
    workspace = Workspace.open(original)
    with RunStore.read(workspace.runs_folder / "always-image") as store:
        assert store.meta("data", None) is None
        build = workspace.build_of(store)
    assert build.is_relative_to(workspace.path)
    assert list((build / "media").iterdir())


def test_a_bundle_is_extracted_once(original: Path, tmp_path: Path) -> None:
    first = open_bundle(original)
    stamp = (first / MANIFEST).stat()
    shutil.copyfile(original, tmp_path / "copy.zip")
    assert open_bundle(tmp_path / "copy.zip") == first
    assert (first / MANIFEST).stat().st_ino == stamp.st_ino


def test_a_file_that_is_replaced_while_it_is_opened_changes_nothing(
    original: Path, members: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, other = tmp_path / "received.zip", tmp_path / "other.zip"
    shutil.copyfile(original, received)
    other.write_bytes(zipped(signed(members, notes=["another"])))
    file_digest = hashlib.file_digest

    def replaced(stream: Any, name: str) -> Any:
        digest = file_digest(stream, name)
        if other.exists():
            os.replace(other, received)
        return digest

    monkeypatch.setattr(hashlib, "file_digest", replaced)
    assert (open_bundle(received) / MANIFEST).read_bytes() == members[MANIFEST]


def test_bundles_not_opened_for_a_month_are_removed(original: Path, members: dict[str, bytes], tmp_path: Path) -> None:
    old = open_bundle(original)
    os.utime(old, (0, 0))
    (tmp_path / "other.zip").write_bytes(zipped(signed(members, notes=["another"])))
    new = open_bundle(tmp_path / "other.zip")
    assert (new.exists(), old.exists()) == (True, False)


@pytest.mark.parametrize(("names", "bundled"), [
    (["a", "b"], ["a", "b"]),
    (["a", "A", "a"], ["a", "A-2", "a-3"]),
    (["my run", "../x", ""], ["my-run", "x", "run"]),
])  # fmt: skip
def test_names_of_runs_are_unique_file_names_on_every_disk(names: list[str], bundled: list[str]) -> None:
    assert bundled_names(names) == bundled


# --- what is refused -----------------------------------------------------------------------------


def test_a_bundle_of_a_newer_version_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    assert "newer" in refused(tmp_path, zipped(signed(members, format=FORMAT + 1)))


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside",
        "runs/../../outside",
        "runs/a/../../../outside",
        "runs/a/run.sqlite/x",
        "runs\\a\\run.sqlite",
        "C:/x",
        "runs/a/lock",
        "runs/a/",
        "report/page.js",
        "report/\u202egpj.html",
        "runs/a\0b/run.sqlite",
        "builds/" + "a" * 64 + "/media/" + "b" * 64 + ".sh/x",
        "bundle.json/x",
        "",
    ],
)
def test_a_member_of_any_other_name_is_refused(members: dict[str, bytes], tmp_path: Path, name: str) -> None:
    refused(tmp_path, zipped(signed({**members, name: b"{}"})))


def test_names_that_differ_in_capitals_alone_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    refused(tmp_path, zipped(signed({**members, "report/CMC-bench.html": b"x"})))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_refused(original: Path, members: dict[str, bytes], tmp_path: Path) -> None:
    twice = io.BytesIO(original.read_bytes())
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("report/cmc-bench.md", members["report/cmc-bench.md"])
    refused(tmp_path, twice.getvalue())


@pytest.mark.parametrize("mode", [0o120777, 0o040755, 0o010644, 0o020644, 0o060644])
def test_links_folders_pipes_and_devices_are_refused(members: dict[str, bytes], tmp_path: Path, mode: int) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr = 3, (mode if name.endswith("spec.toml") else 0o100644) << 16
            archive.writestr(entry, data)
    refused(tmp_path, made.getvalue())


def test_a_zip_bomb_is_refused_before_it_is_read(members: dict[str, bytes], tmp_path: Path) -> None:
    members["report/bomb.html"] = bytes(100 << 20)
    refused(tmp_path, zipped(signed(members)))


def test_a_member_that_is_larger_than_it_says_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    name = "report/cmc-bench.html"
    data = bytearray(zipped(signed({**members, name: bytes(1 << 20)})))
    size = struct.pack("<L", 1 << 20)
    while (place := data.find(size)) >= 0:
        data[place : place + 4] = struct.pack("<L", 100)
    refused(tmp_path, bytes(data))


def test_too_many_members_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    many = {f"report/r{number}.md": b"" for number in range(MAX_MEMBERS + 1)}
    refused(tmp_path, zipped({**members, **many}, zipfile.ZIP_STORED))


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_compressions_are_refused(members: dict[str, bytes], tmp_path: Path, method: int) -> None:
    refused(tmp_path, zipped(members, method))


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"[" * 100_000,
        b'{"format": true}',
        b'{"format": 1}',
        b'{"format": 1, "members": []}',
        b'{"format": 1, "members": {}}',
        b'{"format": 1, "members": {"runs/a/run.sqlite": {"sha256": "x", "bytes": 1}}}',
        b'{"format": 1e400}',
        b'{"format": "1"}',
        b"\xff\xfe",
        None,
    ],
)
def test_a_manifest_of_another_form_is_refused(
    members: dict[str, bytes], tmp_path: Path, manifest: bytes | None
) -> None:
    others = {name: data for name, data in members.items() if name != MANIFEST}
    refused(tmp_path, zipped(others if manifest is None else {MANIFEST: manifest, **others}))


@pytest.mark.parametrize("change", ["changed", "added", "missing", "size"])
def test_members_must_be_those_of_the_manifest(members: dict[str, bytes], tmp_path: Path, change: str) -> None:
    name = "runs/always-text/spec.toml"
    facts = json.loads(members[MANIFEST])
    if change == "changed":
        members[name] = members[name].replace(b"p", b"q")
    elif change == "added":
        members["report/more.md"] = b"more"
    elif change == "missing":
        del members[name]
    else:
        facts["members"][name]["bytes"] += 1
        members[MANIFEST] = json.dumps(facts).encode()
    refused(tmp_path, zipped(members))


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"PK\5\6" + bytes(18), b"text", bytes(100_000)])
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    refused(tmp_path, data)


def test_a_zip_with_a_comment_is_refused(original: Path, tmp_path: Path) -> None:
    commented = io.BytesIO(original.read_bytes())
    with zipfile.ZipFile(commented, "a") as archive:
        archive.comment = b"hello"
    refused(tmp_path, commented.getvalue())


@pytest.mark.parametrize("kind", ["fifo", "folder", "nothing", "/dev/zero"])
def test_what_is_no_file_is_refused_without_waiting(home: Rashomon, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "received.zip"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(BundleError):
        open_bundle(Path(kind) if kind.startswith("/") else path)


def test_a_full_disk_leaves_nothing_and_can_be_tried_again(original: Path, cache: Path) -> None:
    with no_room_above(20_000), pytest.raises(StoreFullError):
        open_bundle(original)
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    assert open_bundle(original).is_dir()


# --- mutations -----------------------------------------------------------------------------------


def read_mutants(original: Path, home: Path, first: int, count: int) -> dict[str, Any]:
    (home / "outside").write_text("unchanged")
    before = tree(home)
    cache = str(home / "cache")
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": cache,
        "MPLCONFIGDIR": cache,
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.mutated_bundles", original, home / "work", str(first), str(count)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = {name: what for name, what in tree(home).items() if "/cache" not in name and "/work" not in name}
    assert after == {name: what for name, what in before.items() if "/work" not in name}
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize(
    ("first", "count"), [(0, 12), pytest.param(12, 988, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_mutated_bundles_are_read_or_refused(original: Path, tmp_path: Path, first: int, count: int) -> None:
    home = tmp_path / "elsewhere"
    (home / "work").mkdir(parents=True)
    report = read_mutants(original, home, first, count)
    assert report["crashes"] == []
    assert sum(report["ends"].values()) == count
    assert report["ends"]["BundleError"] > count / 4
    assert report["ends"].get("read", 0) + report["ends"].get("DamagedError", 0) > 0
