"""`rashomon view`: a real server, which answers one browser and nobody else."""

from __future__ import annotations

import hashlib
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from PIL import Image

from app.commands.results import view_command
from app.store.run_references import newest_of_a_build
from app.store.workspace import Workspace
from app.view.served.browser_admission import Admission, AdmissionRequest, RefusedError
from benchmarks.vocabulary import Mark, Media, Text
from tests.support.command import Rashomon, free_port
from tests.support.runs import instances, make_run, says
from tests.support.tui_stage import Stage
from tests.support.viewed import ADDRESSES, Viewer, viewing

JSON = "application/json"
SAFE = {200, 206, 303, 400, 403, 404, 405, 416}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two runs, a picture, a file of another type with a picture's name, and a missing one."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "build" / "media"
    folder.mkdir(parents=True)
    drawn = folder / "drawn.png"
    Image.new("RGB", (200, 100), (250, 10, 10)).save(drawn)
    markup = folder / "markup.png"
    markup.write_text("<script>alert(1)</script>")
    media = []
    for file in (drawn, markup):
        media.append(Media(hashlib.sha256(file.read_bytes()).hexdigest(), ".png"))
        file.rename(folder / media[-1].name)
    media += [Media("0" * 64, ".png"), Media("../" * 20 + "etc/passwd", ".png"), Media("1" * 64, ".svg")]
    marked = Media(media[0].sha256, ".png", marks=(Mark("1", (10, 10, 90, 90)),))
    items = instances(2)
    parts = (Text("Look."), *media, marked)
    items[0] = type(items[0])(**{name: getattr(items[0], name) for name in items[0].__slots__} | {"parts": parts})
    for name, text in (("first", "12"), ("second", "15")):
        make_run(Workspace(home / "workspace"), name, items, says(text), model=f"policy:{name}", data=home / "build")
    return home


@pytest.fixture(scope="module")
def viewer(home: Path) -> Iterator[Viewer]:
    """A viewer that has the session of a server."""
    with viewing(home, "first", "second") as (_, viewer):
        assert viewer.open().status == 303
        yield viewer


# --- who is answered -----------------------------------------------------------------------------


def test_a_link_opens_one_session(home: Path) -> None:
    with viewing(home, "first") as (process, viewer):
        token = viewer.link.partition("token=")[2]
        name = f"rashomon-view-{viewer.port}"
        for cookie in ("", f"{name}={token}", f"{name}=", f"{name}=\xff"):
            for path in (*ADDRESSES, "/?token=", "/?token=%ff", f"/?token={'A' * len(token)}"):
                assert viewer.get(path, Cookie=cookie).status == 403, (path, cookie)
        assert viewer.get(f"/?token={token}", "POST", "{}").status == 403
        opened = viewer.open()
        assert (opened.status, opened.headers["location"]) == (303, "/")
        assert {"HttpOnly", "SameSite=strict"} <= {word.strip() for word in opened.headers["set-cookie"].split(";")}
        page = viewer.get("/")
        assert page.status == 200
        assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
        assert page.headers["x-content-type-options"] == "nosniff"
        assert viewer.get(f"/?token={token}").status == 303, "the link again, in the browser that has the session"
        other = Viewer(viewer.link)
        assert other.open().status == 403
        secret = viewer.cookie.partition("=")[2]
        for path in ADDRESSES:
            reply = viewer.get(path)
            assert reply.status == 200, reply
            assert secret.encode() not in reply.body
            assert token.encode() not in reply.body
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
        assert token not in out, "it is printed once"


@pytest.mark.parametrize("path", ADDRESSES)
def test_other_sites_are_refused(viewer: Viewer, path: str) -> None:
    assert viewer.get(path, Host="evil.example").status == 403
    assert viewer.get(path, Host=f"evil.example:{viewer.port}").status == 403
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", f"http://localhost:{viewer.port}"):
        assert viewer.get(path, Origin=origin).status == 403
    assert viewer.get(path, Origin=viewer.origin).status == 200


def test_only_the_page_changes_anything(viewer: Viewer) -> None:
    path = "/api/head"
    assert viewer.get(path, "POST", "{}", Content_Type=JSON).status == 403, "no Origin"
    assert viewer.get(path, "POST", "{}", Content_Type=JSON, Origin="https://evil.example").status == 403
    assert viewer.get(path, "POST", "a=b", Origin=viewer.origin).status == 400
    assert viewer.get(path, "POST", "a=b", Content_Type="text/plain", Origin=viewer.origin).status == 400
    assert viewer.get(path, "POST", "x" * 100_000, Content_Type=JSON, Origin=viewer.origin).status == 400
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert viewer.get(path, method).status == 405


def test_a_token_is_exchanged_by_reading_the_page_alone() -> None:
    admission = Admission("rashomon view", "127.0.0.1", "cookie")
    request = AdmissionRequest("GET", "/api/head", "127.0.0.1:1", None, admission.token, None)
    with pytest.raises(RefusedError):
        admission.admit(request)
    assert admission.exchange(admission.token)
    assert admission.exchange(admission.token) is None


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/api",
            "/api/",
            "/api/nothing",
            "/../main.js",
            "/..%2fmain.js",
            "/%2e%2e/contents/contents.py",
            "//etc/passwd",
        ),
        *("/media/", "/media/../main.js", "/media/..%2f..%2fcontents.py", "/media/x.png", f"/media/{'0' * 64}.png"),
        *("/drawn/main.js", "/__init__.py", "/main.js/", "/index.html/x", "/static", "/\x7f"),
    ],
)
def test_nothing_else_is_served(viewer: Viewer, path: str) -> None:
    viewer.json("/api/instance?number=0")
    connection = socket.create_connection(("127.0.0.1", viewer.port), timeout=30)
    with connection:
        head = f"Host: 127.0.0.1:{viewer.port}\r\nCookie: {viewer.cookie}\r\nConnection: close\r\n\r\n"
        connection.sendall(f"GET {path} HTTP/1.1\r\n{head}".encode("latin-1"))
        reply = connection.makefile("rb").read()
    assert reply.split()[1] in (b"400", b"404"), reply[:200]
    assert len(reply.partition(b"\r\n\r\n")[2]) < 200


@pytest.mark.parametrize(
    "path",
    [
        *(
            "rows",
            "rows?numbers=",
            "rows?numbers=1,,2",
            "rows?numbers=-1",
            "rows?numbers=999999",
            "rows?numbers=%D9%A3",
        ),
        f"rows?numbers={','.join(['1'] * 501)}",
        *("instance", "instance?number=", "instance?number=1e3", "instance?number=12", "instance?number=9999999999"),
        *("number", "number?id=nothing", f"number?id={'x' * 1001}"),
        *("answer?number=0&run=0", "answer?number=0&run=9&from=0", "answer?number=0&run=0&from=-1"),
        *("changes", "changes?since=x", f"search?words={'x' * 1001}"),
    ],
)
def test_wrong_numbers_are_refused(viewer: Viewer, path: str) -> None:
    reply = viewer.get(f"/api/{path}")
    assert (reply.status, reply.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert len(reply.body) < 120


def test_a_thousand_mutated_requests_are_answered_in_short(home: Path) -> None:
    with viewing(home, "first", "second") as (process, viewer):
        viewer.open()
        chance = random.Random(57)
        statuses = [_mutated(viewer, chance) for _ in range(1_000)]
        assert set(filter(None, statuses)) <= SAFE, set(statuses)
        assert statuses.count(403) > 50
        assert statuses.count(400) > 50
        assert viewer.get("/api/head").status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def _mutated(viewer: Viewer, chance: random.Random) -> int | None:
    """Send a request with a few bytes changed; return the status, None if the connection was closed without one."""
    addresses = (*ADDRESSES[:-1], "/media/" + "0" * 64 + ".png", "/api/changes?since=9")
    head = [
        f"GET {chance.choice(addresses)} HTTP/1.1",
        f"Host: 127.0.0.1:{viewer.port}",
        f"Cookie: {viewer.cookie}",
        f"Origin: {viewer.origin}",
        "Range: bytes=0-9",
        "Connection: close",
    ]
    request = bytearray("\r\n".join([*head, "", ""]).encode())
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(request) - 4)
        kind = chance.randrange(4)
        if kind == 0:
            request[place] = chance.randrange(256)
        elif kind == 1:
            del request[place : place + chance.randint(1, 9)]
        elif kind == 2:
            request[place:place] = chance.choice((b"%00", b"../", b"\r\n", b"?", b"&number=1", b"\xff\xfe", b"a" * 99))
        else:
            request[place:place] = request[place : place + chance.randint(1, 40)]
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        reply = connection.makefile("rb").read()
    if not reply:
        return None
    status = int(reply.split()[1])
    assert b"Traceback" not in reply
    assert status in (200, 206) or len(reply.partition(b"\r\n\r\n")[2]) < 300, reply
    return status


# --- media ---------------------------------------------------------------------------------------


def test_media_are_served_as_pictures_alone(viewer: Viewer) -> None:
    drawn, markup, missing, outside, svg, marked = viewer.json("/api/instance?number=0")["media"]
    original = viewer.get(f"/{drawn['original']}")
    assert (original.status, original.headers["content-type"]) == (200, "image/png")
    assert original.headers["content-disposition"].startswith("inline; filename=")
    part = viewer.get(f"/{drawn['original']}", Range="bytes=1-3")
    assert (part.status, part.body) == (206, b"PNG")
    assert viewer.get(f"/{drawn['original']}", Range="bytes=999999-").status == 416
    preview = viewer.get(f"/{drawn['preview']}")
    assert (preview.status, preview.headers["content-type"], preview.body[8:12]) == (200, "image/webp", b"WEBP")
    of_marked = viewer.get(f"/{marked['preview']}")
    assert of_marked.status == 200
    assert (marked["marks"], of_marked.body != preview.body) == (["1"], True)
    assert (markup["original"], markup["preview"]) == (None, None)
    assert "is a web page, not a picture" in markup["facts"]
    for medium in (missing, outside, svg):
        assert (medium["original"], medium["preview"]) == (None, None)
        assert "not there" in medium["facts"]


def test_a_file_that_was_replaced_is_not_served(home: Path, viewer: Viewer) -> None:
    drawn = viewer.json("/api/instance?number=0")["media"][0]["original"]
    file = home / "build" / drawn
    content = file.read_bytes()
    for other in (b"<svg onload='alert(1)'/>", content[:8] + b"<script>", b""):
        file.write_bytes(other)
        assert viewer.get(f"/{drawn}").status == 404
    file.write_bytes(content)
    assert viewer.get(f"/{drawn}").body == content


# --- the runs ------------------------------------------------------------------------------------


def test_answers_appear_on_the_page_as_they_come(tmp_path: Path) -> None:
    stage, items = Stage(tmp_path / "workspace"), instances(2)
    folder = stage.run("run", asked=items, done=2, state="running")
    try:
        with viewing(tmp_path, "run") as (process, viewer):
            viewer.open()
            revision = viewer.json("/api/head")["revision"]
            replies = []
            waiting = [
                threading.Thread(target=lambda: replies.append(viewer.json(f"/api/changes?since={revision}")))
                for _ in range(2)
            ]
            for thread in waiting:
                thread.start()
            time.sleep(0.6)
            assert not replies
            stage.answer(folder, items[:5], says("15"))
            for thread in waiting:
                thread.join(30)
            assert [[change["number"] for change in reply["changes"]] for reply in replies] == [[2, 3, 4]] * 2
            assert replies[0]["runs"][0]["done"] == 5
            began = time.monotonic()
            open_poll = threading.Thread(target=_ignore, args=(viewer, replies[0]["revision"]))
            open_poll.start()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            process.wait(10)
            assert time.monotonic() - began < 5, "an open poll does not hold the server"
            assert process.returncode == 0
            open_poll.join(30)
    finally:
        stage.close()


def _ignore(viewer: Viewer, revision: int) -> None:
    with suppress(OSError, HTTPException):
        viewer.get(f"/api/changes?since={revision}")


def test_the_newest_runs_on_the_same_data_are_the_default(home: Path) -> None:
    with viewing(home, "--at", instances(2)[3].id) as (process, viewer):
        assert process.stdout is not None
        assert process.stdout.readline() == (
            "The newest runs on the same data: first, second. For runs that start later, run it again.\n"
        )
        assert viewer.link.endswith("#instance=3")
        viewer.open()
        assert [run["name"] for run in viewer.json("/api/head")["runs"]] == ["first", "second"]
        with viewing(home, "first", "--judge", "match", "--trust", "image") as (_, other):
            other.open()
            assert other.json("/api/head")["rule"] == "the image should win"
            assert other.port != viewer.port
            assert viewer.json("/api/rows?numbers=0")[0]["answers"] == ["12", "15"]
            assert other.json("/api/rows?numbers=0")[0]["answers"] == ["12"]
            assert other.get("/api/head", Cookie=viewer.cookie).status == 403


def test_runs_of_several_benchmarks_are_no_page_and_no_default(home: Path, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "workspace")
    for name, benchmark in (("old", "cmc-bench"), ("other", "clash"), ("new", "cmc-bench")):
        stage.run(name, asked=instances(1), benchmark=benchmark)
    assert [folder.name for folder in newest_of_a_build(stage.workspace)] == ["old", "new"]
    stage.run("newest", asked=instances(1), done=2)
    assert [folder.name for folder in newest_of_a_build(stage.workspace)] == ["old", "newest", "new"]
    assert [folder.name for folder in newest_of_a_build(stage.workspace, most=1)] == ["newest"]
    stderr = Rashomon(tmp_path).run("view", "old", "other", code=2).stderr
    assert "several benchmarks (clash, cmc-bench); view runs of one." in stderr


def test_a_bundle_is_viewed_and_takes_no_labels(home: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(home)
    bundle = tmp_path / "all.rashomon"
    rashomon.run("bundle", "first", "second", "--out", bundle)
    with viewing(home, f"{bundle}:first", "second") as (_, viewer):
        viewer.open()
        bundled, own = viewer.json("/api/head")["runs"]
        assert (bundled["writable"], own["writable"]) == (False, True)
        assert bundled["read_only"].startswith("this is a bundle's run")
        assert own["read_only"] == ""
        assert viewer.json("/api/rows?numbers=0")[0]["answers"] == ["12", "15"]
    with viewing(home, "--workspace", str(bundle)) as (_, viewer):
        viewer.open()
        assert [run["writable"] for run in viewer.json("/api/head")["runs"]] == [False, False]


def test_what_cannot_be_viewed_is_said(home: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(home)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        stderr = rashomon.run("view", "first", "--port", str(taken.getsockname()[1]), code=2).stderr
        assert "choose another --port." in stderr
    assert "first is named twice" in rashomon.run("view", "first", "first", code=2).stderr
    assert "is no instance" in rashomon.run("view", "first", "--at", "nothing", code=2).stderr
    assert "no judge" in rashomon.run("view", "first", "--judge", "nobody", code=2).stderr
    assert "there is no run 'nothing'" in rashomon.run("view", "nothing", code=2).stderr
    assert "there is no run" in Rashomon(tmp_path).run("view", code=2).stderr


def test_the_port_is_the_same_at_each_start_and_a_free_one_where_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(view_command, "PORT", port)
    for _ in range(2):
        with view_command.page_socket(None) as first, view_command.page_socket(None) as second:
            assert first.getsockname()[1] == port != second.getsockname()[1]


def test_an_address_works_again_once_the_new_link_is_open(home: Path) -> None:
    port, cookie = str(free_port()), ""
    for _ in range(2):
        with viewing(home, "first", "--port", port) as (_, viewer):
            refused = viewer.get("/", Cookie=cookie)
            assert refused.status == 403
            assert b"then this address works too" in refused.body
            viewer.open()
            cookie = viewer.cookie
            assert viewer.get("/").status == 200


def test_a_given_port_is_used(home: Path) -> None:
    port = free_port()
    with viewing(home, "first", "--port", str(port)) as (_, viewer):
        assert viewer.port == port
