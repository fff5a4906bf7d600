"""Received folders with links, FIFOs, devices and hard links in every place: nothing outside changes, and nothing hangs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.engine.requests_in_flight import InFlight, read_leftover
from app.engine.run_control import is_paused, pause
from app.exports.export_writer import write_files
from app.parity import probe_store
from app.store.file_locks import FileLock
from app.store.run_database import DATABASE
from app.store.workspace import Workspace
from benchmarks.build import Build, BuildWriter
from benchmarks.errors import MediaError, RashomonError, SourceError, StoreFullError
from benchmarks.media import MISSING, UNSAFE, read_media
from benchmarks.untrusted.safe_files import UnsafeFileError
from benchmarks.vocabulary import Media, digest
from mlx_backends.core.response_cache import ResponseCache
from tests.support.command import ROOT, Rashomon
from tests.support.decoy import KINDS, SECRET, Outside, copy_home
from tests.support.every_command import COMMANDS, OTHER, RUN, SEEING, THEIRS
from tests.support.full_disk import no_room_above
from tests.support.hostile_home import make_home
from tests.support.runs import instances, make_run, says

_RUN, _BUILD = f"workspace/runs/{RUN}", "workspace/benchmarks/cmc-bench"
_SEEING = f"workspace/runs/{SEEING}"
_FOREIGN = "cache/rashomon/foreign-runs/PLACE"
"""The folder of a received run's probes; its name depends on the path of the run."""
NAMES = (
    *(
        f"{_RUN}/{name}"
        for name in ("lock", "pause", "worker.log", "under-way.json", "spec.toml", "parity.log", "probes")
    ),
    *(f"{_RUN}/{DATABASE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")),
    *(f"{_SEEING}/{name}" for name in ("parity.log", "probes", "probes/probes.json", "probes/pixels.npz")),
    *(f"{_BUILD}/{name}" for name in ("manifest.json", "instances.jsonl", "skipped.jsonl", "media", "media/*.png")),
    *(f"workspace/benchmarks/{name}" for name in (".cmc-bench.building", ".cmc-bench.replaced")),
    "workspace/runs/.rashomon-00000000",
    *(f"workspace/replies.sqlite{suffix}" for suffix in ("", "-wal", "-shm", "-journal")),
    *(f"workspace/{name}" for name in ("jobs", "jobs/new.toml", "runs/.trash")),
    *(f"workspace/runs/.trash/{name}" for name in ("left", "left/.lock", "left/0000-gone")),
    *(f"workspace/rashomon-demo{name}" for name in ("", "/demo.lock", "/cmc-bench")),
    *(f"{_FOREIGN}{name}" for name in ("", "/parity.log", "/probes", "/probes/probes.json", "/probes/pixels.npz")),
    *(f"state/rashomon-private{name}" for name in ("", "/ownership.key", "/agreed-addresses", "/checks.json")),
    *(f"cache/rashomon/vision-features{name}" for name in ("", "/encoders.json", "/*.features")),
    "cache/rashomon/device.lock",
    "cache/rashomon/weights.json",
    *(f"export/{name}" for name in ("tables.md", "samples.jsonl", "main.csv", ".rashomon-00000000")),
    "comparison/differences.csv",
    "sheet.csv",
    ".config/rashomon/settings.toml",
)
"""Every name that a command or the interface writes or reads in a run, build, workspace, cache or export folder."""


@pytest.fixture(scope="session")
def template(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("template") / "home"
    make_home(home, built.parents[1], seeing=False)
    return home


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return copy_home(template, tmp_path / "home")


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path / "outside")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail a test that hangs."""

    def over(*_: object) -> None:
        raise AssertionError(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- locks, pauses, notes, logs ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_linked_lock_is_refused_by_name(home: Path, outside: Outside, kind: str) -> None:
    place = home / _RUN / "lock"
    outside.put(place, kind)
    before = outside.state()
    rashomon = Rashomon(home)
    with at_most(60):
        listed = rashomon.json("runs")
        assert {run["name"] for run in listed} == {RUN, OTHER}
        refused = rashomon.run("judge", RUN, "--judge", "match", "--retry-failed", "--display", "none", code=2)
        assert str(place) in refused.stderr
        rashomon.run("resume", RUN, "--repeat", "--display", "none", code=2)
    assert outside.state() == before


@pytest.mark.parametrize("kind", KINDS)
def test_run_notes_are_not_written_through_links(tmp_path: Path, outside: Outside, kind: str) -> None:
    folder = make_run(Workspace(tmp_path), "r", instances(1), says("12"))
    for name in ("pause", "under-way.json", "probes"):
        outside.put(folder / name, kind)
    before = outside.state()
    with at_most(20), FileLock(folder / "lock") as lock:
        assert lock.acquire(f"process {os.getpid()}")
        with pytest.raises(UnsafeFileError, match="pause"):
            pause(folder)
        assert is_paused(folder)
        with pytest.raises(UnsafeFileError, match="under-way"), InFlight(folder, 1, {}):
            pass
        if kind != "hard link":
            assert read_leftover(folder) is None
            with pytest.raises(UnsafeFileError, match="probes"):
                probe_store.load(folder)
            with pytest.raises(UnsafeFileError, match="probes"):
                probe_store.save(folder, probe_store.StoredProbes({}))
    assert outside.state() == before


def test_probes_inside_their_folder_are_replaced_and_never_followed(tmp_path: Path, outside: Outside) -> None:
    folder = make_run(Workspace(tmp_path), "r", instances(1), says("12"))
    for name in ("probes.json", "pixels.npz"):
        outside.put(folder / "probes" / name, "link to a file")
    before = outside.state()
    with pytest.raises(UnsafeFileError, match=r"probes\.json"):
        probe_store.load(folder)
    probe_store.save(folder, probe_store.StoredProbes({"engine": "x"}))
    assert probe_store.load(folder) == probe_store.StoredProbes({"engine": "x"})
    assert outside.state() == before


@pytest.mark.parametrize(
    "stored", ["[]", '{"asked": 1}', '{"width": 1, "engine": {}, "asked": [[1, "a"]]}', "[" * 10**5]
)
def test_malformed_in_flight_file_is_ignored(tmp_path: Path, stored: str) -> None:
    (tmp_path / "under-way.json").write_text(stored)
    assert read_leftover(tmp_path) is None


@pytest.mark.parametrize("kind", ["link to a file", "FIFO", "hard link"])
def test_linked_log_is_not_written(home: Path, outside: Outside, kind: str) -> None:
    log = home / _RUN / "worker.log"
    outside.put(log, kind)
    before = outside.state()
    with at_most(60):
        refused = Rashomon(home).process("resume", RUN, "--repeat", "--display", "none", code=2)
    assert str(log) in refused.stderr
    assert outside.state() == before


# --- builds and their media -----------------------------------------------------------------------------


def _image(home: Path) -> Media:
    path = next((home / _BUILD / "media").glob("*.png"))
    return Media(path.stem, path.suffix)


@pytest.mark.parametrize("kind", KINDS)
def test_media_are_regular_files_of_their_build(home: Path, outside: Outside, kind: str) -> None:
    build = Build.open(home / _BUILD)
    media = _image(home)
    place = build.media_path(media)
    assert read_media(place, media)
    outside.put(place, kind)
    before = outside.state()
    with at_most(20):
        if kind == "hard link":  # reading one does no harm
            assert read_media(build.media_path(media), media)
        else:
            with pytest.raises(MediaError) as refused:
                build.media_path(media)
            assert refused.value.reason == UNSAFE
            with pytest.raises(MediaError):
                read_media(place, media)
    assert outside.state() == before


@pytest.mark.parametrize(
    ("sha256", "suffix"),
    [
        ("/dev/zero", ""),
        ("../" * 12 + "dev/zero", ""),
        ("../manifest", ".json"),
        ("a" * 64, "/../../../manifest.json"),
        ("a" * 64, ".sh"),
        ("a" * 64, ".png\0"),
        ("", ""),
        ("a" * 63 + "\n", ".png"),
        ("A" * 64, ".png"),
    ],
)
def test_media_names_must_be_digests(home: Path, sha256: str, suffix: str) -> None:
    with at_most(20), pytest.raises(MediaError):
        Build.open(home / _BUILD).media_path(Media(sha256, suffix))
    with pytest.raises(MediaError) as lost:
        Build.open(home / _BUILD).media_path(Media("a" * 64, ".png"))
    assert lost.value.reason == MISSING


def test_a_folder_of_media_that_is_a_link_is_refused(home: Path, outside: Outside) -> None:
    media = _image(home)
    outside.put(home / _BUILD / "media", "link to a folder")
    with pytest.raises(MediaError) as refused:
        Build.open(home / _BUILD).media_path(media)
    assert refused.value.reason == UNSAFE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["manifest.json", "instances.jsonl"])
def test_the_rows_of_a_build_are_regular_files(home: Path, outside: Outside, name: str, kind: str) -> None:
    outside.put(home / _BUILD / name, kind)
    with at_most(20):
        if kind == "hard link":
            assert list(Build.open(home / _BUILD).rows())
        else:
            with pytest.raises(SourceError, match=name):
                Build.open(home / _BUILD)
            Rashomon(home).run("benchmarks")


def test_oversized_build_files_are_refused_unread(home: Path) -> None:
    os.truncate(home / _BUILD / "manifest.json", 1 << 40)
    with at_most(20), pytest.raises(SourceError, match=r"manifest\.json"):
        Build.open(home / _BUILD)


@pytest.mark.parametrize("kind", KINDS)
def test_build_does_not_write_through_links(tmp_path: Path, outside: Outside, kind: str) -> None:
    out = tmp_path / "out"
    (outside.path / "empty").mkdir()
    for place in (tmp_path / ".out.building", tmp_path / ".out.replaced", out):
        outside.put(place, kind)
    before = outside.state()
    with at_most(20), pytest.raises((SourceError, OSError)), BuildWriter(out) as writer:
        writer.finish({}, replace=True)
    assert outside.state() == before
    for left in (".out.building", "out"):
        (tmp_path / left).unlink()
    if kind == "link to a folder":
        out.symlink_to(outside.path / "empty")
    with BuildWriter(out) as writer:
        writer.add_media(b"a picture", ".png")
        writer.finish({"benchmark": "x"}, replace=True)
    assert not out.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "outside"]
    assert outside.state() == before


# --- full disks and the umask -----------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 200, 5000])
def test_build_on_a_full_disk_leaves_nothing_and_reports_it(home: Path, room: int) -> None:
    rashomon = Rashomon(home)
    before = sorted(path.name for path in (home / "workspace" / "benchmarks").iterdir())
    with no_room_above(room):
        full = rashomon.run("build", "cmc-bench", "--source", "sources", "--seed", "1", "--replace", code=3)
    assert "nothing was written" in full.stderr
    assert sorted(path.name for path in (home / "workspace" / "benchmarks").iterdir()) == before
    Build.open(home / _BUILD)


def test_planning_and_export_on_a_full_disk_exit_3_and_leave_nothing(home: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(home)
    planned = (
        "batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:always-text",
        "--name",
        "new",
        "--display",
        "none",
    )
    for room in (0, 100, 20_000):
        with no_room_above(room):
            rashomon.run(*planned, code=3)
        assert sorted(path.name for path in (home / "workspace" / "runs").iterdir()) == [OTHER, RUN]
    with no_room_above(0):
        rashomon.run("judge", RUN, "--judge", "match", "--retry-failed", "--display", "none", code=3)
    with no_room_above(10):
        rashomon.run("export", RUN, "--format", "md", code=3)
    assert list((home / "export" / RUN).iterdir()) == []
    with no_room_above(10), pytest.raises(StoreFullError):
        write_files(tmp_path / "out", {"a/b.md": "x" * 100})
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_new_files_honour_the_umask(tmp_path: Path, template: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copytree(template / "sources", home / "sources")
    rashomon = Rashomon(home)
    before = os.umask(0o077)
    try:
        rashomon.run("build", "cmc-bench", "--source", "sources")
        rashomon.process("batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--limit", "1")
        rashomon.run("export", "cmc-bench", "--format", "csv,html")
    finally:
        os.umask(before)
    paths = [path for top in ("workspace", "export", "cache") for path in (home / top).rglob("*")]
    assert len(paths) > 20
    assert not [path for path in paths if path.stat().st_mode & 0o077]


# --- caches, exports, sheets ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_exports_and_caches_do_not_write_through_links(tmp_path: Path, outside: Outside, kind: str) -> None:
    places = [tmp_path / "out" / name for name in ("tables.md", ".rashomon-00000000", "figures")]
    for place in (*places, tmp_path / "replies.sqlite"):
        outside.put(place, kind)
    before = outside.state()
    with at_most(20):
        write_files(tmp_path / "out", {"tables.md": "a table"})
        with pytest.raises(RashomonError):
            write_files(tmp_path / "out", {"figures/main.svg": "a figure"})
        with pytest.raises(RashomonError):
            write_files(tmp_path / "out", {"../outside/authorized_keys": "theirs"})
        cache = ResponseCache(tmp_path / "replies.sqlite")
        assert cache.get("who", "what") is None
        cache.close()
    assert (tmp_path / "out" / "tables.md").read_text() == "a table"
    assert outside.state() == before


@pytest.mark.parametrize("kind", KINDS)
def test_labelling_sheet_is_not_written_through_a_link(home: Path, outside: Outside, kind: str) -> None:
    outside.put(home / "sheet.csv", kind)
    before = outside.state()
    with at_most(30):
        Rashomon(home).run("label", RUN, "--as", "me", "--n", "2", "--export", "sheet.csv", code=2)
    assert outside.state() == before


# --- everything -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def whole_template(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    make_home(home, built.parents[1], seeing=True)
    return home


def _place(home: Path, name: str) -> Path:
    """The path of a name in a home; the first one that is there, where it is a pattern."""
    name = name.replace("PLACE", digest(str((home / "workspace" / "runs" / THEIRS).absolute())))
    return next(iter(sorted((home / name).parent.glob((home / name).name))), home / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_command_hangs_or_changes_outside_files(name: str, whole_template: Path, tmp_path: Path) -> None:
    names = [command for command in COMMANDS if command != "demo" or "demo" in name]
    if "foreign" not in name:
        names.remove("parity theirs")
    if name.endswith("worker.log"):
        names.append("apart")  # a worker that works here writes no log
    names.append(f"interface-{NAMES.index(name) % len(KINDS)}")
    homes, outsides, before, places = [], [], [], []
    for number, kind in enumerate(KINDS):
        home = copy_home(whole_template, tmp_path / str(number))
        outside = Outside(tmp_path / f"outside-{number}")
        place = _place(home, name)
        for run in (SEEING,) if place.name == "parity.log" else (THEIRS,) if "foreign" in name else ():
            shutil.rmtree(
                home / "workspace" / "runs" / run / "probes", ignore_errors=True
            )  # to look at the model again
        outside.put(place, kind)
        places.append(place)
        homes.append(home)
        outsides.append(outside)
        before.append(outside.state())
    process = subprocess.run(
        [sys.executable, "-m", "tests.support.every_command", ",".join(names), *map(str, homes)],
        env=Rashomon(tmp_path).environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    assert len(rows) == len(KINDS), process.stderr
    wrong: dict[tuple[str, str], str] = {}
    for kind, row, outside, was, home, place in zip(KINDS, rows, outsides, before, homes, places, strict=True):
        _report(name, kind, row, place.name, outside.state() == was)
        wrong |= {
            (kind, command): how for command, (code, err) in row.items() if (how := _wrong(command, code, err, place))
        }
        wrong |= {(kind, "outside"): "changed"} if outside.state() != was else {}
        shutil.rmtree(home)
    assert not wrong
    assert SECRET in {path.read_bytes() for outside in outsides for path in outside.path.rglob("auth*")}


def _report(name: str, kind: str, row: dict[str, list[str]], last: str, safe: bool) -> None:
    """Append the cells of a row to the file that the variable MATRIX names, to be counted and read."""
    if path := os.environ.get("MATRIX"):
        with open(path, "a") as file:
            for command, (code, err) in row.items():
                file.write(json.dumps([name, kind, command, code, last in err, safe, err[-300:]]) + "\n")


def _wrong(command: str, code: str, err: str, place: Path) -> str:
    """Return what is wrong with a command's end: a refusal must name the obstacle, and a traceback is never allowed."""
    if code not in ("0", "1", "2", "3"):
        return code
    if "Traceback" in err or (code != "0" and not err.strip()):
        return f"exit code {code}: {err[-900:]}"
    if code not in ("2", "3") or command == "remote":  # which is not asked before its address is agreed to
        return ""
    for line in err.splitlines():
        # Without the machine's own key no run is known to be its own.
        named = place.name in line or place.parent.name in line or "was not made on this machine" in line
        if not named or line.count(". ") > 1:
            return f"it is not said in two sentences what is in the way: {line[-900:]}"
    return ""
