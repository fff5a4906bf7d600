"""Malformed requests to `rashomon view`: each gets a short answer or none, and the page stays there for its browser."""

from __future__ import annotations

import resource
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.malformed.home import make_home
from tests.malformed.requests import REQUESTS, send
from tests.support.viewed import Viewer, viewing

MEGABYTES, SECONDS = 500, 10


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("requests")
    make_home(home)
    return home


@pytest.mark.slow
def test_malformed_requests_are_answered_in_short(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with viewing(home, "asked") as (process, viewer):
        viewer.open()
        for name, (statuses, raw) in REQUESTS.items():
            data = raw(viewer)
            answers = (
                [send(viewer, data, half=name == "half-closed")] if isinstance(data, bytes) else _at_once(viewer, data)
            )
            for status, answer in answers:
                assert status in statuses, (name, answer)
                head = answer.partition(b"\r\n\r\n")[0]
                assert b"Traceback" not in answer, name
                assert b"root:" not in answer, name
                assert b"\x1b" not in answer, name
                assert status in (0, 100) or b"text/plain" in head or b"application/json" in head, (name, head)
                assert name == "two requests in one" or answer.count(b"HTTP/1.1 2") <= 1, name
            start = time.monotonic()
            assert viewer.get("/api/head").status == 200, name
            assert time.monotonic() - start < 10, name
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
        assert (process.returncode, out, errors) == (0, "", "")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < SECONDS, "of all requests together"
    assert after.ru_maxrss < MEGABYTES * 1024 or after.ru_maxrss == before.ru_maxrss, "a larger child was there before"


def _at_once(viewer: Viewer, requests: list[bytes]) -> list[tuple[int, bytes]]:
    """Return the answers to requests on connections that are open at the same time; those to unfinished ones are empty."""
    with ExitStack() as opened:
        connections = [
            opened.enter_context(socket.create_connection(("127.0.0.1", viewer.port), timeout=30)) for _ in requests
        ]
        for connection, data in zip(connections, requests, strict=True):
            connection.sendall(data)
        assert viewer.get("/api/head").status == 200, "another one is served at the same time"
        if not requests[0].endswith(b"\r\n\r\n"):
            return [(0, b"")]
        return [_answer(connection) for connection in connections]


def _answer(connection: socket.socket) -> tuple[int, bytes]:
    answer = b""
    while piece := connection.recv(1 << 16):
        answer += piece
    return int(answer.split(None, 2)[1]), answer
