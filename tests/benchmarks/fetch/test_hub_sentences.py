"""Sentences on a Hub that was reached and does not do what was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from benchmarks.fetch import hub_repository
from benchmarks.fetch.hub_replies import RepositoryInfo
from benchmarks.fetch.hub_repository import is_private, repository
from benchmarks.fetch.remote_file import FetchError

INFO = b'{"private": false, "sha": "' + b"a" * 40 + b'", "tags": []}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(INFO)
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nX-Error-Code: RepoNotFound\r\nContent-Length: 0\r\n\r\n"

Replying = Callable[[bytes, bool], None]


@pytest.fixture
def reply_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replying]:
    """A Hub that sends some bytes to each request, then nothing more, or closes."""
    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve(data: bytes, close: bool) -> None:
            while not ended.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(data)
                    if not close:
                        ended.wait(20)

        def start(data: bytes, close: bool) -> None:
            threading.Thread(target=serve, args=(data, close), daemon=True).start()

        monkeypatch.setattr(hub_repository, "endpoint", lambda: f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(hub_repository, "LISTING_SECONDS", 0.5)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield start
        ended.set()


def sentence() -> str:
    with pytest.raises(FetchError) as caught:
        is_private("org/it", "model")
    return str(caught.value)


@pytest.mark.parametrize("data", [b"", HEAD, HEAD + INFO[:20]], ids=["silent", "head", "half"])
@pytest.mark.parametrize("close", [False, True], ids=["waits", "closes"])
def test_a_hub_that_stops_was_reached(reply_with: Replying, data: bytes, close: bool) -> None:
    reply_with(data, close)
    assert sentence() == (
        "the Hub was reached, but stopped before its reply was complete (about org/it); run the same command later."
    )


def test_a_hub_that_is_not_there_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    monkeypatch.setattr(hub_repository, "endpoint", lambda: f"http://127.0.0.1:{port}")
    monkeypatch.setattr(hub_repository, "LISTING_SECONDS", 0.5)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert sentence() == "the Hub cannot be reached (about org/it); check the network, then run the same command."


@pytest.mark.parametrize("ask", [is_private, lambda name, kind: repository(name, kind, bool)])
def test_a_refused_token_is_said_to_be_refused_and_never_shown(
    reply_with: Replying, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str, hub_repository.Kind], object]
) -> None:
    reply_with(REFUSED, True)
    monkeypatch.setenv("HF_TOKEN", "hf_verysecret")
    with pytest.raises(FetchError) as caught:
        ask("org/it", "model")
    message = str(caught.value)
    assert message.startswith(
        "the Hub refuses the token from HF_TOKEN for model org/it on the Hub (401): it is wrong or"
    )
    assert "verysecret" not in message


def test_without_a_token_a_repository_may_be_private(reply_with: Replying) -> None:
    reply_with(REFUSED, True)
    assert "or it is private" in sentence()


def test_every_licence_of_a_card_counts_once() -> None:
    tags = ["license:mit", 3, "x", "license:apache-2.0", "license:mit"]
    assert RepositoryInfo(sha="a" * 40, tags=tags).licence == "mit, apache-2.0"
