"""`rashomon serve` in a real browser: keys, pictures, reloading, two tabs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from PIL import Image
from textual.color import Color

from app.tui.theme import THEME
from benchmarks.vocabulary import Media
from tests.app.commands.test_serve import serving
from tests.support.command import children_of
from tests.support.runs import instances
from tests.support.tui_stage import Stage

aiohttp = pytest.importorskip("aiohttp")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]
PATIENCE = 60.0
KEY_CODES = {"Escape": 27}
RED = (250, 10, 10)
BACKGROUND = Color.parse(THEME.background or "").rgb


class NoPageError(Exception):
    """The tab is between two pages."""


class Tab:
    """A tab of a browser, driven through its debugging protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._number = socket, 0

    async def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            try:
                message = json.loads((await asyncio.wait_for(self._socket.receive(), PATIENCE / 6)).data)
            except TimeoutError as error:  # a command that comes as a page goes is never replied to
                raise NoPageError(method) from error
            if message.get("id") == self._number:
                if "error" in message:
                    raise NoPageError(message["error"]["message"])
                return message["result"]

    async def go(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"windowsVirtualKeyCode": KEY_CODES[key]}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self) -> Image.Image:
        shot = await self.call("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    async def until(self, seen: Callable[[Image.Image], bool]) -> Image.Image:
        """Return the first picture of the page that ``seen`` accepts, once it stays as it is."""
        end = asyncio.get_running_loop().time() + PATIENCE
        before = None
        while True:
            with suppress(NoPageError):
                picture = await self.picture()
                if seen(picture) and before == picture.tobytes():
                    return picture
                before = picture.tobytes()
            assert asyncio.get_running_loop().time() < end, "it never looks so"
            await asyncio.sleep(0.2)


class Browser:
    """A headless browser with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile

    async def __aenter__(self) -> Self:
        assert BROWSER is not None
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        options += ["--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={self._profile}"]
        self.process = subprocess.Popen(
            [BROWSER, *options, "--window-size=1200,800", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._client = aiohttp.ClientSession()
        file = self._profile / "DevToolsActivePort"
        for _ in range(600):
            if file.exists() and file.read_text().strip():
                break
            await asyncio.sleep(0.1)
        self._port = int(file.read_text().split()[0])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        self.process.kill()
        self.process.wait()

    async def tab(self) -> Tab:
        """Open a tab."""
        base = f"http://127.0.0.1:{self._port}/json"
        async with self._client.put(f"{base}/new?about:blank") as reply:
            address = (await reply.json())["webSocketDebuggerUrl"]
        tab = Tab(await self._client.ws_connect(address, max_msg_size=0))
        await tab.call("Page.enable")
        return tab


def _drawn(picture: Image.Image) -> bool:
    """Return whether the interface is drawn: most of the page is of its background, and there is text on it."""
    colours = picture.getcolors(1 << 24) or []
    return max(colours)[1] == BACKGROUND and len(colours) > 20


def _red(picture: Image.Image) -> int:
    return sum(
        count for count, colour in picture.getcolors(1 << 24) or [] if isinstance(colour, tuple) and _is_red(colour)
    )


def _is_red(colour: tuple[int, ...]) -> bool:
    return all(abs(value - red) < 12 for value, red in zip(colour, RED, strict=True))


def _run_with_a_red_picture(home: Path) -> Path:
    stage = Stage(home / "workspace")
    data = home / "build"
    (data / "media").mkdir(parents=True)
    file = data / "red.png"
    Image.new("RGB", (200, 150), RED).save(file)
    picture = Media(hashlib.sha256(file.read_bytes()).hexdigest(), ".png")
    file.rename(data / "media" / picture.name)
    stage.run("red", asked=instances(2, picture=picture), data=data)
    return stage.path


def _in_browser(tmp_path: Path, visit: Callable[[Browser, str, Callable[[], list[int]]], Awaitable[None]]) -> None:
    """Call ``visit`` with a browser, the link, and a function that lists the interfaces' processes."""
    home = tmp_path / "home"
    home.mkdir()
    _run_with_a_red_picture(home)

    async def perform(process: subprocess.Popen[str], link: str) -> None:
        async with Browser(tmp_path / "profile") as browser:
            await visit(browser, link, lambda: children_of(process.pid))

    with serving(home) as (process, link):
        asyncio.run(perform(process, link))


def test_keys_work_after_loading_and_pictures_are_drawn(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        tab = await browser.tab()
        await tab.go(link)
        assert not _red(await tab.until(_drawn))
        await tab.press("?")
        await tab.until(lambda picture: not _drawn(picture))  # the help dims what is under it
        await tab.press("Escape")
        await tab.until(_drawn)
        await tab.press("3")
        assert _red(await tab.until(lambda picture: _red(picture) > 1000)) > 1000

    _in_browser(tmp_path, visit)


def test_a_page_is_reloaded_and_opened_twice(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        first = await browser.tab()
        await first.go(link)
        await first.until(_drawn)
        (before,) = interfaces()
        await first.call("Page.reload")
        await first.until(lambda picture: _drawn(picture) and interfaces() not in ([], [before]))
        second = await browser.tab()
        await second.go(link)
        await second.until(lambda picture: _drawn(picture) and len(interfaces()) == 2)
        assert before not in interfaces(), "the interface of a page that is gone ends with it"

    _in_browser(tmp_path, visit)


def test_another_browser_is_refused_with_the_same_link(tmp_path: Path) -> None:
    async def visit(browser: Browser, link: str, interfaces: Callable[[], list[int]]) -> None:
        tab = await browser.tab()
        await tab.go(link)
        await tab.until(_drawn)
        async with Browser(tmp_path / "other") as other:
            refused = await other.tab()
            await refused.go(link)
            await refused.until(lambda picture: True)
            text = await refused.call("Runtime.evaluate", expression="document.body.innerText")
            assert "one session" in text["result"]["value"]
        assert len(interfaces()) == 1

    _in_browser(tmp_path, visit)
