"""Fetching files: what breaks off goes on, what is wrong is not kept, and nothing half-written is taken as whole."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fetch import benchmark_downloads
from app.fetch.fetch_plan import make_plan
from benchmarks.errors import SpecError
from benchmarks.fetch.file_download import DownloadProgress, Timeouts, download
from benchmarks.fetch.hub_repository import repository
from benchmarks.fetch.remote_file import JPEG, Digest, FetchError, RemoteFile, path_inside
from tests.support.fake_hub import FakeHub, Repo
from tests.support.full_disk import no_room_above
from tests.support.recording_proxy import RecordingProxy

PATIENCE = Timeouts(silence=10, wait=0.001)
DATA = hashlib.shake_256(b"weights").digest(400_000)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub().running() as running:
        monkeypatch.setenv(benchmark_downloads.MIRROR, f"{running.url}/mirror")
        running.files["raw.githubusercontent.com/a/b/c/data.bin"] = DATA
        yield running


def data(folder: Path, *, digest: bool = True, size: int | None = len(DATA)) -> RemoteFile:
    known = Digest("sha256", hashlib.sha256(DATA).hexdigest()) if digest else None
    return RemoteFile(benchmark_downloads.github("a/b", "c", "data.bin"), folder / "data.bin", "somebody", size, known)


def test_a_file_that_breaks_off_again_and_again_goes_on_where_it_was(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["data.bin"] = ["cut 100000", "503", "cut 50000", "429", "cut 1"]
    file, heard = data(tmp_path), list[DownloadProgress]()
    assert download([file], heard.append, PATIENCE) == {}
    assert file.path.read_bytes() == DATA
    assert os.listdir(tmp_path) == ["data.bin"]
    begins = [int((request.range or "bytes=0-")[6:-1]) for request in hub.gets("data.bin")]
    assert begins == sorted(begins)
    assert begins[-1] > 100_000
    assert heard[-1] == DownloadProgress(1, len(DATA))  # no byte came twice


def test_the_next_process_goes_on_with_what_the_last_one_left(hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path)
    file.part.write_bytes(DATA[:123_456])
    assert not file.is_complete()
    assert make_plan("it", tmp_path, [file], []).bytes == len(DATA) - 123_456
    download([file], timeouts=PATIENCE)
    assert [request.range for request in hub.gets("data.bin")] == ["bytes=123456-"]
    assert file.is_complete()


def test_a_beginning_that_is_not_the_files_is_found_and_fetched_anew(hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path)
    file.part.write_bytes(b"x" * 1000)
    assert download([file], timeouts=PATIENCE) == {}
    assert file.path.read_bytes() == DATA
    assert [request.range for request in hub.gets("data.bin")] == ["bytes=1000-", None]


@pytest.mark.parametrize("left", [DATA, DATA + b"more"], ids=["all of it", "too much"])
def test_a_part_that_has_it_all_or_too_much(left: bytes, hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path)
    file.part.write_bytes(left)
    assert download([file], timeouts=PATIENCE) == {}
    assert file.path.read_bytes() == DATA
    assert len(hub.gets("data.bin")) == (0 if left == DATA else 1)


@pytest.mark.parametrize("fault", ["whole", "elsewhere"])
def test_a_server_that_does_not_know_ranges_is_asked_for_all_of_it(fault: str, hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["data.bin"] = [fault]
    file = data(tmp_path)
    file.part.write_bytes(DATA[:1000])
    assert download([file], timeouts=PATIENCE) == {}
    assert file.path.read_bytes() == DATA


def test_without_a_checksum_a_part_is_not_continued(hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path, digest=False, size=None)
    file.part.write_bytes(DATA[:1000])
    hub.faults["data.bin"] = ["cut 2000"]
    assert download([file], timeouts=PATIENCE) == {}
    assert [request.range for request in hub.gets("data.bin")] == [None, None]
    assert file.path.read_bytes() == DATA


def test_a_wrong_checksum_is_tried_once_more_and_then_told(hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path)
    hub.faults["data.bin"] = ["flip"]
    assert download([file], timeouts=PATIENCE) == {}
    file.path.unlink()
    hub.faults["data.bin"] = ["flip!"]
    assert download([file], timeouts=PATIENCE) == {file: "its checksum differs from the published one, twice"}
    assert os.listdir(tmp_path) == []


def test_a_page_in_place_of_an_image_is_not_taken_for_it(hub: FakeHub, tmp_path: Path) -> None:
    name = "s3.amazonaws.com/images.cocodataset.org/val2017/000000000139.jpg"
    hub.files[name] = JPEG + b"a picture"
    image = RemoteFile(benchmark_downloads.coco("val2017", "000000000139.jpg"), tmp_path / "a.jpg", "COCO", begins=JPEG)
    hub.faults[".jpg"] = ["html!"]
    assert download([image], timeouts=PATIENCE) == {image: "the content is of another type, twice"}
    assert os.listdir(tmp_path) == []
    hub.faults.clear()
    assert download([image], timeouts=PATIENCE) == {}
    assert image.is_complete()


def test_an_image_that_breaks_off_is_not_taken_as_whole(hub: FakeHub, tmp_path: Path) -> None:
    hub.files["s3.amazonaws.com/images.cocodataset.org/val2017/1.jpg"] = JPEG + DATA
    image = RemoteFile(benchmark_downloads.coco("val2017", "1.jpg"), tmp_path / "1.jpg", "COCO", begins=JPEG)
    hub.faults["1.jpg"] = ["cut 5000!"]
    with pytest.raises(
        FetchError, match=r"1\.jpg cannot be fetched from 127.*, tried 6 times: it was reached, but stopped"
    ):
        download([image], timeouts=PATIENCE)
    assert not image.is_complete()


def test_what_is_missing_is_told_and_the_others_come(hub: FakeHub, tmp_path: Path) -> None:
    gone = RemoteFile(benchmark_downloads.github("a/b", "c", "gone"), tmp_path / "gone", "somebody")
    file = data(tmp_path)
    assert download([gone, file], timeouts=PATIENCE) == {gone: "it does not exist (404)"}
    assert file.is_complete()


def test_another_hosts_refusal_is_not_blamed_on_the_account(hub: FakeHub, tmp_path: Path) -> None:
    file = replace(data(tmp_path), page="the page of the repository")
    hub.faults["data.bin"] = ["403"]
    with pytest.raises(FetchError, match="hf auth login"):
        download([file], timeouts=PATIENCE)

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("location", file.url)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        hub.faults["data.bin"] = ["403"]
        with pytest.raises(FetchError) as raised:
            download([replace(file, url=f"http://127.0.0.1:{server.server_port}/data.bin")], timeouts=PATIENCE)
        server.shutdown()
    assert "hf auth login" not in str(raised.value)


@pytest.mark.parametrize(("status", "says"), [("401", "(401)"), ("403", "(403)")])
def test_refused_access_ends_it_at_once(status: str, says: str, hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["data.bin"] = [f"{status}!"]
    with pytest.raises(FetchError) as raised:
        download([data(tmp_path / str(n)) for n in range(50)], timeouts=PATIENCE, parallel=1)
    assert f"somebody denies access {says}" in str(raised.value)
    assert len(hub.gets("data.bin")) == 1


def test_a_full_disk_is_one_sentence_and_leaves_no_file(hub: FakeHub, tmp_path: Path) -> None:
    file = data(tmp_path)
    with no_room_above(10), pytest.raises(FetchError, match="is full; complete files are kept"):
        download([file], timeouts=PATIENCE)
    assert not file.path.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    with pytest.raises(FetchError, match=r"cannot write .*taken"):
        download([data(tmp_path / "taken")], timeouts=PATIENCE)


def test_a_server_that_falls_silent_is_asked_again(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["data.bin"] = ["wait 70000"]
    file = data(tmp_path)
    assert download([file], timeouts=Timeouts(silence=0.2, wait=0.001)) == {}
    assert file.path.read_bytes() == DATA
    assert hub.gets("data.bin")[1].range is not None


def test_a_slow_server_is_waited_for(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["data.bin"] = ["wait 70000"]

    def told(progress: DownloadProgress) -> None:
        if progress.bytes >= 60_000:  # it came that far and stopped
            hub.released.set()

    assert download([data(tmp_path)], told, PATIENCE) == {}
    assert len(hub.gets("data.bin")) == 1


def test_who_stops_it_waits_for_no_server_and_keeps_the_beginning(hub: FakeHub, tmp_path: Path) -> None:
    class Stop(BaseException):
        pass

    hub.faults["data.bin"] = ["wait 70000!"]
    file = data(tmp_path)

    def told(progress: DownloadProgress) -> None:
        if progress.bytes:
            raise Stop

    before = set(threading.enumerate())
    with pytest.raises(Stop):
        download([file], told, Timeouts(silence=600))
    hub.released.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert not file.path.exists()
    assert 0 < file.part.stat().st_size < len(DATA)
    hub.faults.clear()
    assert download([file], timeouts=PATIENCE) == {}
    assert file.path.read_bytes() == DATA


def test_a_server_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(benchmark_downloads.MIRROR, "http://127.0.0.1:9")
    with pytest.raises(FetchError, match=r"it cannot be reached; check the network"):
        download([data(tmp_path)], timeouts=Timeouts(wait=0.001, attempts=2))


def test_a_mirror_on_this_machine_is_not_asked_through_a_proxy(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = data(tmp_path, size=None)
    with RecordingProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert make_plan("it", tmp_path, [file], []).bytes == len(DATA)
        assert download([file], timeouts=PATIENCE) == {}
        for name, value in hub.constants.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        hub.repos["org/name"] = Repo("model", {"config.json": b"{}"})
        assert [file.name for file in repository("org/name", "model", bool).files] == ["config.json"]
    assert proxy.carried == []
    assert file.path.read_bytes() == DATA


def test_a_file_of_another_machine_comes_through_the_proxy(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", hub.url.replace("//", "//somebody:secret@"))
    monkeypatch.setenv(benchmark_downloads.MIRROR, "http://mirror.invalid/mirror")
    file = data(tmp_path)
    assert download([file], timeouts=PATIENCE) == {}
    assert {request.host for request in hub.asked} == {"mirror.invalid"}


@pytest.mark.parametrize("url", ["socks4://h:1", "http://", "http://secret@h:x", "ftp://secret:secret@h", "h h"])
def test_what_is_no_proxy_is_one_sentence_without_it(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    monkeypatch.setenv(benchmark_downloads.MIRROR, "http://mirror.invalid/mirror")
    for fetch in (
        lambda: download([data(tmp_path)], timeouts=PATIENCE),
        lambda: make_plan("it", tmp_path, [data(tmp_path, size=None)], []),
        lambda: repository("org/name", "model", bool),
    ):
        with pytest.raises(SpecError, match="HTTP_PROXY") as error:
            fetch()
        assert "secret" not in str(error.value)


def test_many_files_come_a_few_at_a_time(hub: FakeHub, tmp_path: Path) -> None:
    files = []
    for number in range(200):
        content = JPEG + hashlib.sha256(b"%d" % number).digest() * 20
        hub.files[f"s3.amazonaws.com/images.cocodataset.org/val2017/{number}.jpg"] = content
        files.append(
            RemoteFile(
                benchmark_downloads.coco("val2017", f"{number}.jpg"), tmp_path / f"{number}.jpg", "COCO", begins=JPEG
            )
        )
    before = threading.active_count()
    seen = []
    assert download(files, lambda progress: seen.append(threading.active_count()), PATIENCE, parallel=4) == {}
    assert all(file.is_complete() for file in files)
    assert len(list(tmp_path.iterdir())) == 200
    assert max(seen) - before <= 4 + 4 + 1  # ours, and the server's for ours
    plan = make_plan("all", tmp_path, files, [])
    assert (plan.missing, plan.bytes) == ((), 0)


def test_files_of_one_content_are_one_file_of_the_plan(hub: FakeHub, tmp_path: Path) -> None:
    """As the Hub's cache names files by their digest."""
    hub.files["raw.githubusercontent.com/a/b/c/copy.bin"] = DATA
    digest = Digest("sha256", hashlib.sha256(DATA).hexdigest())
    files = [
        RemoteFile(benchmark_downloads.github("a/b", "c", name), tmp_path / digest.value, "somebody", len(DATA), digest)
        for name in ("data.bin", "copy.bin")
    ]
    plan = make_plan("it", tmp_path, files, [])
    assert (len(plan.files), len(plan.missing), plan.bytes) == (1, 1, len(DATA))
    heard = list[DownloadProgress]()
    assert download(plan.missing, heard.append, PATIENCE) == {}
    assert heard[-1] == DownloadProgress(1, len(DATA))
    assert os.listdir(tmp_path) == [digest.value]
    assert "1 file already here" in next(make_plan("it", tmp_path, files, []).lines())


@pytest.mark.parametrize("other", ["data.bin", ".data.bin.part"], ids=["the same path", "the part file's path"])
def test_different_files_that_would_overwrite_one_another_are_refused(other: str, tmp_path: Path) -> None:
    file = data(tmp_path)
    clash = RemoteFile(
        benchmark_downloads.github("a/b", "c", "x"), tmp_path / other, "somebody", 3, Digest("sha256", "0" * 64)
    )
    for files in ([file, clash], [clash, file]):
        with pytest.raises(FetchError):
            make_plan("it", tmp_path, files, [])


def test_a_file_that_another_process_has_fetched_since_the_plan_is_not_fetched_again(
    hub: FakeHub, tmp_path: Path
) -> None:
    plan = make_plan("it", tmp_path, [data(tmp_path)], [])
    (tmp_path / "data.bin").write_bytes(DATA)
    assert download(plan.missing, timeouts=PATIENCE) == {}
    assert hub.asked == []


def test_a_size_that_a_server_does_not_tell_is_no_exact_one(hub: FakeHub, tmp_path: Path) -> None:
    gone = RemoteFile(benchmark_downloads.github("a/b", "c", "gone"), tmp_path / "gone", "somebody")
    plan = make_plan("it", tmp_path, [data(tmp_path, size=None), gone], [])
    assert (plan.bytes, plan.estimated) == (2 * len(DATA), True)


def test_a_size_that_nobody_knows_is_estimated_from_a_few(hub: FakeHub, tmp_path: Path) -> None:
    files = []
    for number in range(500):
        hub.files[f"s3.amazonaws.com/images.cocodataset.org/val2017/{number}.jpg"] = JPEG + b"x" * (
            997 + number % 2 * 1000
        )
        files.append(
            RemoteFile(
                benchmark_downloads.coco("val2017", f"{number}.jpg"), tmp_path / f"{number}.jpg", "COCO", begins=JPEG
            )
        )
    plan = make_plan("all", tmp_path, files, ["a licence"])
    assert plan.estimated
    assert 1000 * 500 <= plan.bytes <= 2000 * 500
    assert len(hub.asked) == 24
    assert {item.method for item in hub.asked} == {"HEAD"}
    assert "to fetch 500 files, about" in next(plan.lines())


def test_a_disk_that_is_too_small_is_told_before_a_byte_comes(hub: FakeHub, tmp_path: Path) -> None:
    huge = RemoteFile(benchmark_downloads.github("a/b", "c", "data.bin"), tmp_path / "data.bin", "somebody", 10**18)
    plan = make_plan("all", tmp_path, [huge], [])
    with pytest.raises(FetchError, match=r"has .* free, but all needs 1,000,000,000\.0 GB; free .* more"):
        plan.check_disk_space()
    assert hub.asked == []


@given(st.text(max_size=30))
def test_no_name_of_a_server_leads_out_of_the_folder(name: str) -> None:
    folder = Path("/a/folder")
    try:
        place = path_inside(folder, name)
    except FetchError:
        return
    assert Path(os.path.normpath(place)).is_relative_to(folder)
    assert place != folder


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\..\\x", "C:/x", "", "a\x00b", "a\nb"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="nothing was fetched"):
        path_inside(tmp_path, name)


def test_gits_digest_of_a_small_file(tmp_path: Path) -> None:
    file = tmp_path / "hello"
    file.write_bytes(b"hello\n")
    assert Digest("git-sha1", "ce013625030ba8dba906f756967f9e9ca394464a").matches(file)
    assert not Digest("git-sha1", "0" * 40).matches(file)
