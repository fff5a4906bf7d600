"""Runs passed on as one file: equal bytes for equal runs, equal tables on another machine, and nothing written unasked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.exports.bundle_export import write_bundle
from app.report.samples.sample_media import media_path, preview_media
from app.store.bundles.bundle_layout_and_limits import MANIFEST
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.errors import StoreFullError
from benchmarks.source_licences import LICENCES, source_licences
from benchmarks.vocabulary import Media
from tests.support.bundles import read_members
from tests.support.command import Rashomon, kill_all
from tests.support.decoy import KINDS, Outside
from tests.support.full_disk import no_room_above
from tests.support.old_runs import as_version
from tests.support.trust import elsewhere, tree

pytestmark = pytest.mark.usefixtures("without_figures")

ASKED = ("batch", "--benchmark", "cmc-bench", "--limit", "3", "--display", "none", "--model")
RUNS = ("always-image", "always-text")


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with two runs."""
    folder = tmp_path_factory.mktemp("bundled")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    rashomon = Rashomon(folder)
    for name in RUNS:
        rashomon.run(*ASKED, f"policy:{name}", "--name", name)
    return rashomon


@pytest.fixture(scope="module")
def bundle(home: Rashomon) -> Path:
    home.run("bundle", *RUNS, "--media", "all", "--out", "all.zip")
    return home.home / "all.zip"


def other_machine(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as another user would elsewhere: other home, language, time zone and permissions."""
    home.mkdir(exist_ok=True)
    there = Rashomon(
        home,
        variables={"USER": "berta", "LOGNAME": "berta", "LC_ALL": "C", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},
    )
    return subprocess.run(
        there.command(*arguments),
        env={**there.environment, "XDG_STATE_HOME": str(home / "state")},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
        umask=0o077,
        stdin=subprocess.DEVNULL,
    )


CANONICAL = ("--canonical", "--format", "csv,md,latex,json,parquet,html,svg")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_equal_runs_give_equal_bytes_and_tables(home: Rashomon, bundle: Path, tmp_path: Path) -> None:
    home.run("bundle", *RUNS, "--media", "all", "--out", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()
    home.run("export", *RUNS, *CANONICAL[:2], "csv,json", "--out", tmp_path / "here")
    home.run("export", *(f"{bundle}:{run}" for run in RUNS), *CANONICAL[:2], "csv,json", "--out", tmp_path / "there")
    assert files(tmp_path / "there") == files(tmp_path / "here")


@pytest.mark.slow
def test_bytes_and_tables_are_the_same_on_another_machine(home: Rashomon, tmp_path: Path) -> None:
    """All with figures, which this process leaves empty."""
    there, bundle = tmp_path / "berta", tmp_path / "bundle.zip"
    home.process("bundle", *RUNS, "--media", "all", "--out", bundle)
    other_machine(there, "--workspace", home.workspace, "bundle", *RUNS, "--media", "all", "--out", "b.zip")
    assert (there / "b.zip").read_bytes() == bundle.read_bytes()
    other_machine(there, "--workspace", bundle, "bundle", *RUNS, "--media", "all", "--out", "passed-on.zip")
    assert (there / "passed-on.zip").read_bytes() == bundle.read_bytes()
    home.process("export", *RUNS, *CANONICAL, "--out", tmp_path / "here")
    other_machine(there, "export", *(f"b.zip:{run}" for run in RUNS), *CANONICAL, "--out", "there")
    here = files(tmp_path / "here")
    assert files(there / "there") == here
    assert {"results.json", "samples.parquet", "tables.tex", "report.html"} <= set(here)
    assert not (there / "workspace").exists()


def test_a_bundle_has_the_report_and_names_no_folder_of_its_maker(home: Rashomon, bundle: Path) -> None:
    members = read_members(bundle)
    assert b"<html" in members["report/cmc-bench.html"]
    assert b"policy:always-image" in members["report/cmc-bench.md"]
    assert [name for name, data in members.items() if str(home.home).encode() in data] == []
    runs = json.loads(members[MANIFEST])["runs"]
    assert [(run["name"], run["answered"], run["total"]) for run in runs] == [(name, 24, 24) for name in RUNS]


@pytest.mark.slow
@pytest.mark.parametrize(("media", "suffix"), [("all", ".png"), ("thumbnails", ".webp"), ("none", None)])
def test_media_are_those_that_were_chosen(home: Rashomon, tmp_path: Path, media: str, suffix: str | None) -> None:
    home.run("bundle", RUNS[0], "--media", media, "--out", tmp_path / "b.zip")
    names = {
        Path(name).suffix for name in read_members(tmp_path / "b.zip") if "/media/" in name or "/thumbnails/" in name
    }
    assert names == ({suffix} if suffix else set())
    sample = home.run("show", tmp_path / "b.zip", "--sample", "1", code=2)  # no such instance: the error lists some
    assert "closest" in sample.stderr


def test_a_thumbnail_stands_in_for_its_medium(home: Rashomon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home.run("bundle", RUNS[0], "--media", "thumbnails", "--out", tmp_path / "b.zip")
    workspace = Workspace.open(tmp_path / "b.zip")
    with RunStore.read(workspace.runs_folder / RUNS[0]) as store:
        build = workspace.build_of(store)
        media = next(part for record in store.records() for part in record.instance.parts if isinstance(part, Media))
    preview = preview_media(media, media_path(build, media), 64)
    assert preview.picture is not None
    assert "thumbnail" in preview.facts


def test_media_are_left_out_unless_a_licence_lets_them_be_passed_on(home: Rashomon, tmp_path: Path) -> None:
    facts = home.json("bundle", RUNS[0], "--out", tmp_path / "b.zip")
    assert (facts["media"], facts["media_files"], len(facts["notes"])) == ("none", 0, 1)
    assert LICENCES["cmc-bench"]["chartqa"].text in facts["notes"][0]


@pytest.mark.parametrize(
    ("manifest", "media"),
    [
        ({"benchmark": "gqa"}, True),
        ({"benchmark": "pope"}, False),
        ({"benchmark": "cmc-bench", "sources": {"rows": {}}}, False),
        ({"benchmark": "somebody's"}, False),
        ({"benchmark": "gqa", "sources": ["hostile"]}, True),
    ],
)
def test_only_a_stated_licence_permits_media(manifest: dict[str, object], media: bool) -> None:
    assert all(licence.media for licence in source_licences(manifest).values()) is media


def test_a_run_without_its_build_is_bundled_without_media(home: Rashomon, tmp_path: Path) -> None:
    shutil.copytree(home.workspace, tmp_path / "workspace")
    shutil.rmtree(tmp_path / "workspace" / "benchmarks")
    with RunStore.open(tmp_path / "workspace" / "runs" / RUNS[0]) as store:
        store.set_meta("data", str(tmp_path / "workspace" / "benchmarks" / "cmc-bench"))
    here = Rashomon(tmp_path)
    facts = here.json("bundle", RUNS[0], "--media", "all")
    assert facts["media_files"] == 0
    assert len(facts["notes"]) == 1
    here.run("show", f"{RUNS[0]}.rashomon.zip")


def test_a_run_of_an_earlier_schema_is_bundled_in_the_newest(home: Rashomon, tmp_path: Path) -> None:
    shutil.copytree(home.workspace, tmp_path / "workspace")
    as_version(tmp_path / "workspace" / "runs" / RUNS[0], 3)
    before = tree(tmp_path / "workspace" / "runs")
    here = Rashomon(tmp_path)
    here.run("bundle", RUNS[0])
    assert tree(tmp_path / "workspace" / "runs") == before
    here.run("show", f"{RUNS[0]}.rashomon.zip")


@pytest.mark.slow
def test_a_run_in_use_is_bundled_as_of_one_moment(rashomon: Rashomon) -> None:
    held = rashomon.held()
    with held.start(*ASKED, "policy:always-image", "--name", "running") as process:
        try:
            database = rashomon.workspace / "runs" / "running" / "run.sqlite"
            while process.poll() is None and (not database.exists() or _answered(database.parent) < 8):
                pass
            rashomon.run("bundle", "running", "--out", "now.zip")
            assert process.poll() is None
            held.go_on()
            assert process.wait() == 0
        finally:
            if process.poll() is None:
                kill_all(process)
    (run,) = rashomon.json("open", "now.zip")["runs"]
    assert (run["state"], run["done"], run["problem"]) == ("interrupted", 8, None)
    assert _answered(database.parent) == 24


def _answered(folder: Path) -> int:
    return sum(condition.done for condition in Workspace(folder.parent.parent).summaries()[0].progress)


def test_a_name_that_is_no_bundle_is_not_overwritten(home: Rashomon, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    home.run("bundle", RUNS[0], "--out", tmp_path / "thesis.tex", code=2)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_full_disk_leaves_nothing(home: Rashomon, tmp_path: Path) -> None:
    workspace = Workspace(home.workspace)
    with no_room_above(50_000), pytest.raises(StoreFullError):
        write_bundle(workspace, [workspace.runs_folder / RUNS[0]], tmp_path / "b.zip")
    assert list(tmp_path.iterdir()) == []


# --- opening -------------------------------------------------------------------------------------


def test_a_bundle_is_read_by_the_commands_that_read_a_workspace(home: Rashomon, bundle: Path, tmp_path: Path) -> None:
    there = Rashomon(tmp_path)
    before = tree(tmp_path)
    assert [run["name"] for run in there.json("--workspace", bundle, "runs")] == list(RUNS)
    assert there.run("show", f"{bundle}:{RUNS[0]}").stdout == home.run("show", RUNS[0]).stdout
    both = (f"{bundle}:{RUNS[0]}", f"{bundle}:{RUNS[1]}")
    assert there.run("compare", *both).stdout == home.run("compare", *RUNS).stdout
    assert {name: what for name, what in tree(tmp_path).items() if "/cache" not in name} == before
    there.run("show", bundle, code=2)  # which of the two runs?
    there.run("show", f"{bundle}:nothing", code=2)


@pytest.mark.parametrize(
    "command",
    [
        ("judge", RUNS[0]),
        ("resume", RUNS[0]),
        ("label", RUNS[0]),
        ("demo",),
        ("build", "cmc-bench"),
        (*ASKED, "policy:random"),
    ],
)
def test_commands_that_write_refuse_a_bundle(bundle: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    there = Rashomon(tmp_path)
    assert "read" in there.run("--workspace", bundle, *command, code=2).stderr


def test_importing_asks_then_copies_the_runs_and_their_build(home: Rashomon, bundle: Path, tmp_path: Path) -> None:
    with elsewhere():
        there = Rashomon(tmp_path)
        there.run("open", bundle, "--import", code=2)
        there.run("open", bundle, "--import", "--yes", "--json", code=2)
        assert not there.workspace.exists()
        there.run("open", bundle, "--import", "--yes")
        workspace = Workspace(there.workspace)
        assert [(run.name, run.own, run.done) for run in workspace.summaries()] == [(name, True, 24) for name in RUNS]
        assert Build.open(workspace.build_folder("cmc-bench")).manifest["media"] == 28
        there.run("resume", RUNS[0], "--repeat", "--display", "none")
        with RunStore.open(workspace.runs_folder / RUNS[0]) as store:
            store.retract("match@4", instance=store.ids()[0])
        there.run("open", bundle, "--import", "--yes")
        # The one that has other labels by now is copied, the other one is there.
        assert workspace.run_names() == sorted([*RUNS, f"{RUNS[0]}-adopted"])
    assert os.listdir(there.workspace / "benchmarks") == ["cmc-bench"]


def test_an_import_that_broke_off_between_two_runs_copies_the_other_one(bundle: Path, tmp_path: Path) -> None:
    with elsewhere():
        there = Rashomon(tmp_path)
        there.run("adopt", f"{bundle}:{RUNS[0]}", "--yes")
        there.run("open", bundle, "--import", "--yes")
        assert Workspace(there.workspace).run_names() == sorted(RUNS)
        there.run("open", bundle, "--import", "--yes")
        assert Workspace(there.workspace).run_names() == sorted(RUNS)


def test_a_run_that_is_there_is_not_copied_again_whichever_way_it_came(
    home: Rashomon, bundle: Path, tmp_path: Path
) -> None:
    with elsewhere():
        there = Rashomon(tmp_path)
        there.run("adopt", f"{bundle}:{RUNS[0]}", "--yes", "--name", "ours")
        assert "as ours." in there.run("adopt", f"{bundle}:{RUNS[0]}").stdout
        assert "as ours." in there.run("open", bundle, "--import", "--yes").stdout
        names = sorted(["ours", RUNS[1]])
        assert Workspace(there.workspace).run_names() == names
        assert "as ours." in there.run("open", bundle, "--import").stdout  # nothing is left to confirm
        with RunStore.open(there.workspace / "runs" / "ours") as store:
            store.retract("match@4", instance=store.ids()[0])
        there.run("adopt", f"{bundle}:{RUNS[0]}", "--yes")  # other labels by now
        assert Workspace(there.workspace).run_names() == sorted([*names, RUNS[0]])
    assert f"as {RUNS[0]}." in home.run("adopt", f"{bundle}:{RUNS[0]}").stdout  # the run that was bundled


# --- another lab's run as a published row --------------------------------------------------------


def test_a_bundles_run_is_compared_as_a_published_row(home: Rashomon, bundle: Path) -> None:
    printed = json.loads(home.run("compare", RUNS[0], f"published:{bundle}:{RUNS[1]}", "--json").stdout)
    assert [(run["name"], run["bundle"]) for run in printed["runs"]] == [(RUNS[0], None), (RUNS[1], bundle.name)]
    result = printed["result"]
    (table,) = [table for table in result["tables"] if table["name"] == "received"]
    cells = {row["label"].split(" / ")[-2]: list(row["cells"].values()) for row in table["rows"]}
    assert (cells["Img-Cor"][0]["value"], cells["Img-Cor"][1]["value"], cells["Img-Cor"][2]["value"]) == (1, 0, 1)
    assert cells["Img-Cor"][2]["low"] < 1 <= cells["Img-Cor"][2]["high"]
    assert any("24" in note for note in table["notes"])


def test_a_run_beside_itself_from_a_bundle_differs_in_nothing(home: Rashomon, bundle: Path) -> None:
    result = home.json("compare", RUNS[0], f"published:{bundle}:{RUNS[0]}")
    (table,) = [table for table in result["tables"] if table["name"] == "received"]
    assert {row["cells"]["difference"]["value"] for row in table["rows"]} - {None} == {0}


@pytest.mark.parametrize("row", ["all.zip", "all.zip:nothing", "workspace", "nothing.zip"])
def test_a_row_that_is_no_run_of_a_bundle_is_refused(home: Rashomon, bundle: Path, row: str) -> None:
    home.run("compare", RUNS[0], f"published:{row}", code=2)


def test_one_run_of_a_bundle_is_adopted_with_its_build(bundle: Path, tmp_path: Path) -> None:
    with elsewhere():
        there = Rashomon(tmp_path)
        there.run("adopt", f"{bundle}:{RUNS[1]}", "--yes")
        there.run("resume", RUNS[1], "--repeat", "--display", "none")
        there.run("adopt", f"{bundle}:{RUNS[0]}", "--yes")
    assert os.listdir(there.workspace / "benchmarks") == ["cmc-bench"]
    assert sorted(os.listdir(there.workspace / "runs")) == list(RUNS)


def test_an_import_never_replaces_another_build(home: Rashomon, bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "workspace" / "benchmarks" / "cmc-bench"
    shutil.copytree(home.workspace / "benchmarks" / "cmc-bench", other)
    facts = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**facts, "seed": 1}))
    before = tree(other)
    Rashomon(tmp_path).run("open", bundle, "--import", "--yes")
    assert tree(other) == before
    assert len(os.listdir(other.parent)) == 2


@pytest.fixture
def received(bundle: Path, tmp_path: Path) -> Path:
    """A folder that looks like an opened bundle, but was made by hand, so that nothing in it is verified."""
    folder = tmp_path / "received"
    shutil.copytree(Workspace.open(bundle).path, folder)
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_a_received_folder_is_copied_with_its_build(received: Path, tmp_path: Path, kind: str) -> None:
    outside = Outside(tmp_path / "outside")
    (build,) = (received / "builds").iterdir()
    outside.put(next((build / "media").iterdir()), kind)
    before = outside.state()
    there = Rashomon(tmp_path / "there")
    there.home.mkdir()
    with elsewhere():
        there.run("adopt", received / "runs" / RUNS[0], "--yes", code=0 if kind == "hard link" else 2)
    assert outside.state() == before
    assert not list(there.workspace.glob("benchmarks/.*"))
    assert kind == "hard link" or not list(there.workspace.glob("benchmarks/*"))


def test_only_files_of_a_build_are_copied_from_a_received_folder(received: Path, tmp_path: Path) -> None:
    (build,) = (received / "builds").iterdir()
    for name in ("notes.txt", "media/run.sh", "._x"):
        (build / name).write_text("x")
    there = Rashomon(tmp_path / "there")
    there.home.mkdir()
    with elsewhere():
        there.run("adopt", received / "runs" / RUNS[0], "--yes")
    copy = there.workspace / "benchmarks" / "cmc-bench"
    assert sorted(os.listdir(copy)) == ["instances.jsonl", "manifest.json", "media"]
    assert len(os.listdir(copy / "media")) == len(os.listdir(build / "media")) - 1
