"""`rashomon serve`: the interface in a browser, and in nobody else's."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from app.view.served.browser_admission import is_allowed
from tests.support.command import Rashomon, children_of, free_port

aiohttp = pytest.importorskip("aiohttp")


@pytest.mark.parametrize(
    ("asked", "origin", "host", "ours"),
    [
        ("127.0.0.1:8123", None, "127.0.0.1", True),
        ("127.0.0.1:8123", "http://127.0.0.1:8123", "127.0.0.1", True),
        ("localhost:8123", "http://localhost:8123", "127.0.0.1", True),
        ("[::1]:8123", "http://[::1]:8123", "::1", True),
        ("box.local:8123", "http://box.local:8123", "box.local", True),
        ("192.168.1.5:8123", "http://192.168.1.5:8123", "0.0.0.0", True),
        ("127.0.0.1:8123", "https://evil.example", "127.0.0.1", False),
        ("127.0.0.1:8123", "null", "127.0.0.1", False),
        ("127.0.0.1:8123", "", "127.0.0.1", False),
        ("127.0.0.1:8123", "http://127.0.0.1:9999", "127.0.0.1", False),
        ("evil.example:8123", "http://evil.example:8123", "127.0.0.1", False),  # a name that was made to lead here
        ("evil.example", None, "0.0.0.0", False),
        ("[", None, "127.0.0.1", False),
        ("", None, "127.0.0.1", False),
    ],
)
def test_only_our_own_pages_are_served(asked: str, origin: str | None, host: str, ours: bool) -> None:
    assert is_allowed(asked, origin, host) is ours


def test_a_browser_gets_the_interface_and_another_site_does_not(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, link):
        seen = asyncio.run(_visit(link, lambda: children_of(process.pid)))
        assert "No runs yet" in seen
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    assert link.partition("token=")[2] not in out + errors, "it is said once"


@contextmanager
def serving(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server, with the link that it prints."""
    port = free_port()
    process = Rashomon(home).start("serve", "--port", str(port))
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        assert link.startswith(f"http://127.0.0.1:{port}/?token=")
        yield process, link
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


async def _visit(link: str, apps: Callable[[], list[int]]) -> str:
    """Return what the interface draws; other sites, and other users of this machine, get nothing, before and after."""
    url, _, token = link.partition("/?token=")
    await _refused(url, "A" * len(token), first=True)
    assert not apps(), "nothing was started for others"
    async with _client() as session:
        opened = await session.get(link, allow_redirects=False)
        assert (opened.status, opened.headers["Location"]) == (303, "/")
        assert {"HttpOnly", "SameSite=Strict"} <= {word.strip() for word in opened.headers["Set-Cookie"].split(";")}
        (secret,) = (cookie.value for cookie in session.cookie_jar)
        page = await session.get(link)
        assert (page.status, page.url.query_string) == (200, ""), "the link again, in the browser that has the session"
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert f"{url}/static" in await page.text()
        assert token not in await page.text()
        assert secret not in await page.text()
        await _refused(url, token)
        assert not apps()
        assert (await session.get(url, headers={"Host": "evil.example"})).status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{url}/ws", headers={"Origin": "https://evil.example"})
        async with session.ws_connect(f"{url}/ws?width=100&height=30", headers={"Origin": url}) as socket_:
            await socket_.send_str(json.dumps(["resize", {"width": 100, "height": 30}]))
            seen = ""
            while not (
                "No runs yet" in seen and "0 runs in workspace" in seen
            ):  # the title may come in a frame of its own
                message: Any = await asyncio.wait_for(socket_.receive(), 60)
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                seen += message.data.decode() if isinstance(message.data, bytes) else message.data
            assert len(apps()) == 1
            return seen


async def _refused(url: str, token: str, *, first: bool = False) -> None:
    """A client without the session is refused everything, whatever token or cookie it brings."""
    async with _client() as other:
        for _ in range(600 if first else 1):
            with suppress(aiohttp.ClientConnectionError):
                await other.get(url)
                break
            await asyncio.sleep(0.1)
        port = url.rpartition(":")[2]
        for headers in ({}, {"Cookie": f"rashomon-{port}={token}"}, {"Cookie": f"rashomon-{port}="}, {"Origin": url}):
            for path in (
                "/",
                f"/?token={token}",
                "/?token=",
                "/?token=%ff",
                f"/ws?token={token}",
                "/static/css/xterm.css",
            ):
                assert (await other.get(url + path, headers=headers)).status == 403, (path, headers)
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await other.ws_connect(f"{url}/ws?width=100&height=30", headers=headers)
            assert refused.value.status == 403


def _client() -> Any:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


def test_a_port_that_is_taken_and_a_host_that_is_none_are_said(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        stderr = rashomon.run("serve", "--port", str(taken.getsockname()[1]), code=2).stderr
    assert "choose another --port" in stderr
    assert "choose another --port or --host" in rashomon.run("serve", "--host", "no such host", code=2).stderr


def test_letting_others_in_is_warned_of(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    process = rashomon.start("serve", "--host", "0.0.0.0", "--port", str(free_port()))
    try:
        assert process.stderr is not None
        assert "is not encrypted" in process.stderr.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
